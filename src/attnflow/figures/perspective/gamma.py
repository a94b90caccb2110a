"""[P] T6.8–6.9: in high dimension every cosine follows one curve, γ_β."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from attnflow import initial
from attnflow.figures.recipe import Picture, Recipe, Size, by_size
from attnflow.plot.style import FAINT, INK, PALETTE
from attnflow.simulation import Fixed, simulate
from attnflow.systems import SA
from attnflow.theory import gamma
from attnflow.theory.checks.orthogonal import cosines
from attnflow.verdicts import Quantity

BETA = 1.0
DIMS = (16, 64, 256, 1024, 4096)
DIMS_SHOWN = (16, 256, 4096)
TIMES = np.linspace(0.0, 6.0, 61)


def _make(size: Size) -> Picture:
    n, starts = by_size(size, (8, 16), (16, 128))
    x0 = np.stack(
        [initial.sphere(n, d, key=d, batch=starts, reduced=True) for d in DIMS]
        # the start of T6.8 beside them, in the same compiled run
        + [initial.orthogonal(n, n, key=0, batch=starts)]
    )
    found = cosines(simulate(SA(BETA), x0, TIMES, method=Fixed(0.1)).xs)
    curve = np.asarray(gamma(BETA, n, TIMES))
    # the largest error over pairs and times, averaged over starts
    far = np.abs(found - curve[:, None]).max(axis=(-1, -2))
    errors, exact = far[:-1].mean(axis=-1), far[-1].max()
    figure = Figure(figsize=(7.4, 3.3), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.2, 1))
    _bands(left, found[:-1], curve)
    _errors(right, errors, far[:-1].std(axis=-1) / np.sqrt(starts))
    exponent = np.polyfit(np.log(DIMS), np.log(errors), 1)[0]
    ratios = errors / _rate()
    figure.suptitle(rf"$\beta = {BETA:g}$, $n = {n}$", fontsize=11)
    numbers = {"β": BETA, "n": n, "starts": starts, "d": DIMS, "error": errors}
    numbers |= {"error / √(log d / d)": ratios}
    seen = (
        Quantity("orthogonal start: largest |<x_i,x_j> − γ_β|", exact, "≤", 1e-5),
        Quantity("exponent of the error in d", exponent, "≤", -0.4),
        Quantity("exponent of the error in d", exponent, "≥", -0.6),
        Quantity(
            f"error / √(log d / d): growth from d = {DIMS[0]}", ratios.max() / ratios[0], "≤", 1.05
        ),
        Quantity("error / √(log d / d): largest over least", ratios.max() / ratios.min(), "≤", 2.0),
        Quantity(f"error at d = {DIMS[-1]}", errors[-1], "≤", 0.1),
    )
    return Picture(figure, numbers, seen)


def _bands(ax: Axes, found: Float[np.ndarray, "D S T P"], curve: Float[np.ndarray, " T"]) -> None:
    """Between which cosines nine pairs of ten are, at some dimensions, and γ_β."""
    for d, colour in zip(DIMS_SHOWN, PALETTE, strict=False):
        low, high = np.quantile(found[DIMS.index(d)], [0.05, 0.95], axis=(0, 2))
        ax.fill_between(TIMES, low, high, color=colour, alpha=0.35, lw=0, label=f"$d = {d}$")
    ax.plot(TIMES, curve, color=INK, lw=1.3, label=r"$\gamma_\beta(t)$")
    ax.set(xlabel="time $t$", ylabel=r"$\langle x_i, x_j\rangle$", xlim=(0, TIMES[-1]))
    ax.legend(loc="lower right")


def _errors(ax: Axes, errors: Float[np.ndarray, " D"], bars: Float[np.ndarray, " D"]) -> None:
    """The errors against d, beside √(log d / d) from the first of them on."""
    rate = _rate()
    ax.errorbar(DIMS, errors, 2 * bars, fmt="o", ms=4, color=PALETTE[0], capsize=2)
    ax.plot(DIMS, errors[0] / rate[0] * rate, color=INK, lw=1, ls="--", label=r"$\sqrt{\log d/d}$")
    plain = errors[0] * np.sqrt(DIMS[0] / np.array(DIMS))
    ax.plot(DIMS, plain, color=FAINT, lw=1, ls=":", label=r"$\sqrt{1/d}$")
    ax.set(xscale="log", yscale="log", xlabel="dimension $d$")
    ax.set_xticks(DIMS, [str(d) for d in DIMS])
    ax.set_yticks([0.05, 0.1, 0.2, 0.5], ["0.05", "0.1", "0.2", "0.5"])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_ylabel(r"$\max\,|\langle x_i, x_j\rangle - \gamma_\beta|$")
    ax.legend()


def _rate() -> Float[np.ndarray, " D"]:
    return np.sqrt(np.log(DIMS) / np.array(DIMS))


RECIPE = Recipe(
    "P-gamma",
    "[P] Theorems 6.8, 6.9",
    "Cosines of uniform tokens gather around γ_β(t) as d grows (bands hold nine pairs of ten); "
    "the largest error falls no slower than √(log d / d), the rate of the theorem: here a little "
    "faster, like 1/√d.",
    _make,
)
