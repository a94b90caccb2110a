"""[E] Fig. 10: eigenvalues of the value matrices of trained heads, and which are good triples."""

from __future__ import annotations

from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnflow.figures.recipe import Picture, Recipe, Size
from attnflow.figures.trained import trained_model
from attnflow.models import HeadSpectrum, Model, head_matrices, head_spectrum
from attnflow.plot.matrices import draw_spectrum
from attnflow.plot.style import FAINT, PALETTE
from attnflow.theory.checks.probability import leads_positive
from attnflow.verdicts import Quantity

HUB = "albert-xlarge-v2"
MAX_COLUMNS = 6


def heads_of(model: Model, layer: int, sign: float = 1.0) -> list[HeadSpectrum]:
    """The heads of a layer, with the value matrices ±O V."""
    Q, K, V, O = head_matrices(model, layer)
    return [head_spectrum(*four) for four in zip(Q, K, sign * V, O, strict=True)]


def _make(size: Size, sign: float) -> Picture:
    model, name = trained_model(HUB, size, "float64")
    layers = [heads_of(model, k, sign) for k in range(1 if model.shared else model.layers)]
    good = np.array([[one.good is True for one in heads] for heads in layers])
    spectra = np.array([[one.eigenvalues for one in heads] for heads in layers])
    real = np.array([leads_positive(values) for values in spectra])
    shown = int(np.argmax(good.sum(axis=1)))
    figure = _drawn(layers[shown], good, real)
    d, k = model.system.heads.dim, len(layers[0][0].eigenvalues)
    which = "all layers" if model.shared else f"layer {shown + 1} of {len(layers)}"
    figure.suptitle(f"{name}: {which}, {good.shape[1]} heads of {k} in $d = {d}$", fontsize=12)
    numbers = {
        "model": name,
        "layer shown, from 0": shown,
        "leading eigenvalue real and positive, layer by layer": real,
        "good triples, layer by layer": good,
        "share real and positive": real.mean(),
        "share of good triples": good.mean(),
        "leading eigenvalues of the layer, real parts": spectra[shown, :, 0].real,
        "leading eigenvalues of the layer, imaginary parts": spectra[shown, :, 0].imag,
    }
    seen = (
        Quantity("heads whose leading eigenvalue is real and positive", int(real.sum()), "≥", 1),
        Quantity("heads that are good triples", int(good.sum()), "≥", 1),
        Quantity("heads that are not", int((~good).sum()), "≥", 1),
    )
    return Picture(figure, numbers, seen)


def _drawn(heads: list[HeadSpectrum], good: np.ndarray, real: np.ndarray) -> Figure:
    rows = -(-len(heads) // MAX_COLUMNS)
    figure = Figure(figsize=(1.75 * MAX_COLUMNS + 2.6, 2.15 * rows + 0.5), layout="constrained")
    grid = figure.add_gridspec(rows, MAX_COLUMNS + 1, width_ratios=[1.0] * MAX_COLUMNS + [1.4])
    for h, one in enumerate(heads):
        ax = figure.add_subplot(grid[h // MAX_COLUMNS, h % MAX_COLUMNS])
        draw_spectrum(ax, one.eigenvalues, good=one.good, size=6)
        ax.set_title(f"head {h}", color=PALETTE[2] if one.good else PALETTE[1])
        ax.tick_params(labelsize=7)
        ax.locator_params(nbins=3)
    _overview(figure.add_subplot(grid[:, -1]), good, real)
    return figure


def _overview(ax: Axes, good: np.ndarray, real: np.ndarray) -> None:
    """A dot for each head of each layer: full for good triples, a ring where λ₁ alone is right."""
    layer, h = (np.asarray(part) for part in np.indices(good.shape))
    ax.scatter(h[~real], layer[~real], 10, FAINT, linewidths=0, label="neither")
    rings = real & ~good
    ax.scatter(h[rings], layer[rings], 40, "none", edgecolors=PALETTE[2], label=r"$\lambda_1 > 0$")
    ax.scatter(h[good], layer[good], 46, PALETTE[2], linewidths=0, label="good triple")
    ax.set(xlabel="head", ylabel="layer", xticks=range(0, good.shape[1], 2))
    ax.set_yticks(range(len(good)), [str(k + 1) for k in range(len(good))])
    ax.set_ylim(len(good) - 0.5, -0.5)
    ax.legend(
        loc="lower center",
        bbox_to_anchor=(0.45, 1.0),
        ncols=3,
        fontsize=8,
        handletextpad=0.0,
        columnspacing=0.6,
    )


RECIPE = Recipe(
    "E-fig10",
    "[E] Fig. 10",
    "Eigenvalues of the value matrices O V of trained heads, the leading one ringed: green where "
    "(Q, K, V) is a good triple. The title says of which model.",
    partial(_make, sign=1.0),
    model=True,
)
