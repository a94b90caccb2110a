"""[E] Fig. 10: eigenvalues of the value matrices of trained heads, and which are good triples."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnflow.figures.recipe import Picture, Recipe, Size
from attnflow.figures.trained import trained_model
from attnflow.models import Model
from attnflow.plot.spectra import draw_spectrum
from attnflow.plot.style import FAINT, PALETTE
from attnflow.theory import limit_geometry
from attnflow.theory.checks.base import Quantity
from attnflow.theory.checks.probability import leads_positive

HUB = "albert-xlarge-v2"
COLUMNS = 6


class Head(NamedTuple):
    """A trained head: the eigenvalues of O V other than 0, and what they say.

    `real` is whether the leading one is real and positive, `good` whether moreover
    <Qφ₁, Kφ₁> > 0, so that (Q, K, V) is a good triple.
    """

    eigenvalues: np.ndarray
    real: bool
    good: bool


def head(Q: np.ndarray, K: np.ndarray, V: np.ndarray, O: np.ndarray) -> Head:
    """Look at a head in the range of O, which O V maps R^d to: elsewhere eigenvalues are 0.

    >>> O = np.array([[1.0], [0.0]])
    >>> head(np.eye(2), np.eye(2), np.array([[2.0, 5.0]]), O)
    Head(eigenvalues=array([2.+0.j]), real=True, good=True)
    """
    basis, R = np.linalg.qr(O)
    value = R @ V @ basis
    eigenvalues = np.linalg.eigvals(value).astype(complex)
    # For a single direction V = cI, which is a good triple in R^d all the same.
    kind = limit_geometry(Q @ basis, K @ basis, value).kind
    good = kind == "hyperplanes" or (len(value) == 1 and kind == "polytope")
    return Head(eigenvalues, bool(leads_positive(eigenvalues[None])[0]), good)


def heads_of(model: Model, layer: int, sign: float = 1.0) -> list[Head]:
    """The heads of a layer; biases play no part."""
    heads: Any = model.system.heads.at(float(layer), np.dtype(float))
    Q, K, V, O = (np.asarray(W) for W in (heads.Q, heads.K, heads.V, heads.O))
    return [head(Q[h], K[h], sign * V[h], O[h]) for h in range(len(V))]


def _make(size: Size, sign: float) -> Picture:
    model, name = trained_model(HUB, size, "float64")
    layers = [heads_of(model, k, sign) for k in range(1 if model.shared else model.layers)]
    good = np.array([[one.good for one in heads] for heads in layers])
    real = np.array([[one.real for one in heads] for heads in layers])
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
        "leading eigenvalues of the layer, real parts": [_leading(h).real for h in layers[shown]],
        "leading eigenvalues of the layer, imaginary parts": [
            _leading(h).imag for h in layers[shown]
        ],
    }
    seen = (
        Quantity("heads whose leading eigenvalue is real and positive", int(real.sum()), "≥", 1),
        Quantity("heads that are good triples", int(good.sum()), "≥", 1),
        Quantity("heads that are not", int((~good).sum()), "≥", 1),
    )
    return Picture(figure, numbers, seen)


def _leading(one: Head) -> complex:
    return complex(one.eigenvalues[np.argmax(np.abs(one.eigenvalues))])


def _drawn(heads: list[Head], good: np.ndarray, real: np.ndarray) -> Figure:
    rows = -(-len(heads) // COLUMNS)
    figure = Figure(figsize=(1.75 * COLUMNS + 2.6, 2.15 * rows + 0.5), layout="constrained")
    grid = figure.add_gridspec(rows, COLUMNS + 1, width_ratios=[1.0] * COLUMNS + [1.4])
    for h, one in enumerate(heads):
        ax = figure.add_subplot(grid[h // COLUMNS, h % COLUMNS])
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
