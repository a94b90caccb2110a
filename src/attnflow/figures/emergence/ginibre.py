"""[E] §4: how often a real Ginibre matrix has a leading eigenvalue that is real and positive."""

from __future__ import annotations

from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnflow.figures.recipe import Picture, Recipe, Size, by_size
from attnflow.plot.matrices import draw_spectrum
from attnflow.plot.style import FAINT, INK, PALETTE
from attnflow.theory.checks.probability import GINIBRE_SHARE, deviation, leads_positive
from attnflow.verdicts import Quantity

DIMENSIONS = (2, 4, 8, 16, 32, 64, 128)
SHARE_IN_PLANE = 2**-1.5
"""In the plane both eigenvalues are real with probability 1/√2, and half of these lead above 0."""


def _make(size: Size, tilt: float) -> Picture:
    draws = np.array(by_size(size, (4000, 2000, 1000, 500, 400, 300, 300), (10_000,) * 7))
    spectra = [_spectra(d, int(count), tilt) for d, count in zip(DIMENSIONS, draws, strict=True)]
    good = [leads_positive(values) for values in spectra]
    share = np.array([found.mean() for found in good])
    error = np.sqrt(share * (1 - share) / draws)
    figure = Figure(figsize=(10.5, 3.4), layout="constrained")
    axes = figure.subplots(1, 3, width_ratios=(1, 1, 1.3))
    for ax, kind in zip(axes, (True, False), strict=False):
        if (good[-1] == kind).any():
            draw_spectrum(ax, spectra[-1][np.argmax(good[-1] == kind)], good=kind)
        word = r"$\lambda_1$ real and positive" if kind else r"$\lambda_1$ not real and positive"
        ax.set(title=word, xlabel=r"Re $\lambda$")
    axes[0].set_ylabel(r"Im $\lambda$")
    _shares(axes[-1], share, error)
    numbers = {"d": DIMENSIONS, "draws": draws, "share": share, "standard error": error}
    seen = (
        deviation(share[-1], GINIBRE_SHARE, int(draws[-1])),
        deviation(share[0], SHARE_IN_PLANE, int(draws[0])),
        Quantity("standard error for d = 128", error[-1], "≤", 0.03),
    )
    return Picture(figure, numbers, seen)


def _spectra(d: int, count: int, tilt: float) -> np.ndarray:
    """Eigenvalues of G/√d + tilt·I, in pieces that fit into memory."""
    rng = np.random.default_rng(d)
    pieces = []
    for at in range(0, count, 500):
        G = rng.normal(scale=d**-0.5, size=(min(500, count - at), d, d))
        pieces.append(np.linalg.eigvals(G + tilt * np.eye(d)))
    return np.concatenate([piece.astype(complex) for piece in pieces])


def _shares(ax: Axes, share: np.ndarray, error: np.ndarray) -> None:
    ax.axhline(GINIBRE_SHARE, color=FAINT, lw=1.0, ls="--", label="[E]: 14% for $d = 128$")
    ax.plot([2], [SHARE_IN_PLANE], "x", ms=9, color=INK, label=r"$1/(2\sqrt{2})$ for $d = 2$")
    ax.errorbar(
        DIMENSIONS,
        share,
        2 * error,
        fmt="o-",
        ms=4,
        lw=0.9,
        capsize=2.5,
        color=PALETTE[0],
        label="measured, ± 2 standard errors",
    )
    ax.set(xscale="log", xlabel="dimension $d$", ylim=(0, 0.5), title="share of good matrices")
    ax.set_xticks(DIMENSIONS, [str(d) for d in DIMENSIONS])
    ax.minorticks_off()
    ax.legend(fontsize=9)


RECIPE = Recipe(
    "E-ginibre",
    "[E] §4",
    "Of real Ginibre matrices with d = 128 about 14% have a leading eigenvalue that is real and "
    "positive. Error bars are binomial.",
    partial(_make, tilt=0.0),
)
