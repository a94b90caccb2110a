"""[P] Fig. 1: overlaps of the tokens of a trained model, layer by layer."""

from __future__ import annotations

import numpy as np
from jaxtyping import Array, Float
from matplotlib.figure import Figure

from attnflow import initial, observe
from attnflow.figures.recipe import Picture, Recipe, Size
from attnflow.figures.trained import PARAGRAPH, trained_model
from attnflow.models import Model
from attnflow.plot.matrices import draw_overlaps
from attnflow.verdicts import Quantity

HUB = "albert-xlarge-v2"
HIGH_OVERLAP = 0.7
"""Overlaps above this count as mass near 1."""

MAX_STATES = 8
"""Of a model with fewer states all are shown."""


def _make(size: Size) -> Picture:
    model, name = trained_model(HUB, size)
    shown = layers_shown(model)
    states = np.asarray(model.states(PARAGRAPH, depth=shown[-1]))
    tokens = [initial.normalise(x) for x in states]
    mean, near = zip(*(_gathered(x) for x in tokens), strict=True)
    columns = (len(shown) + 1) // 2
    figure = Figure(figsize=(2.5 * columns, 4.6), layout="constrained")
    axes = figure.subplots(2, columns, sharex=True, sharey=True)
    for ax in axes.flat[len(shown) :]:
        ax.set_visible(False)
    for ax, k in zip(axes.flat, shown, strict=False):
        draw_overlaps(ax, *observe.overlap_histogram(tokens[k], 80))
        ax.set_title(f"layer {k}: mean {mean[k]:.2f}, {100 * near[k]:.1f}% above {HIGH_OVERLAP}")
    for ax in axes.flat[len(shown) - columns : len(shown)]:
        ax.set_xlabel(r"$\langle x_i, x_j\rangle$")
        ax.tick_params(labelbottom=True)
    for ax in axes[:, 0]:
        ax.set_ylabel("density")
    figure.suptitle(f"{name}, {model.layers} layers, {states.shape[1]} tokens")
    numbers = {
        "model": name,
        "trained layers": model.layers,
        "tokens": states.shape[1],
        "mean overlap by layer": mean,
        f"part of pairs above {HIGH_OVERLAP}, by layer": near,
    }
    seen = (
        Quantity("mean overlap, last layer less first", mean[-1] - mean[0], "≥", 0.05),
        Quantity(
            f"part of pairs above {HIGH_OVERLAP}, last over first", near[-1] / near[0], "≥", 2
        ),
    )
    return Picture(figure, numbers, seen)


def layers_shown(model: Model) -> tuple[int, ...]:
    """The paper's layers; of a model whose layers are not shared, at most eight of its own."""
    L = model.layers
    if not model.shared:
        return tuple(int(k) for k in np.linspace(0, L, min(L + 1, MAX_STATES)).round())
    return (0, 1, *range(L - 3, L + 1), *range(L + 1, L + 4), *range(2 * L - 2, 2 * L + 1))


def _gathered(x: Float[Array, "n d"]) -> tuple[float, float]:
    """The mean overlap of pairs, and which part of them is near 1."""
    pairs = np.asarray(observe.overlaps(x))[np.triu_indices(len(x), 1)]
    return float(pairs.mean()), float(np.mean(pairs > HIGH_OVERLAP))


RECIPE = Recipe(
    "P-fig1",
    "[P] Fig. 1",
    "Overlaps <x_i, x_j> of the tokens of a paragraph, layer by layer in a trained model: there "
    "is more mass near 1 in the last layers than in the first, though it need not grow from each "
    "layer to the next. The paper's model is albert-xlarge-v2, whose shared layers also "
    "run to depth 48; where it cannot be had, the layers are those of MiniLM.",
    _make,
    model=True,
)
