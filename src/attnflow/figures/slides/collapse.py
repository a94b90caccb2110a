"""[S]: measures of neural collapse, along the flow on the sphere and the depth of a model."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnflow import initial, observe
from attnflow.figures.recipe import Picture, Recipe, Size, by_size
from attnflow.figures.scipy_solution import compare_with_scipy, sphere
from attnflow.figures.trained import TOPICS, trained_model
from attnflow.observe import NeuralCollapse
from attnflow.plot.style import PALETTE
from attnflow.simulation import Fixed, simulate
from attnflow.systems import SA
from attnflow.verdicts import Quantity

HUB = "albert-xlarge-v2"
BETA, DIMENSION = 9.0, 3
TIMES = np.linspace(0.0, 8.0, 41)
CLUSTERED_SAVES = slice(25, None)
"""From t = 5 on, tokens are in their clusters."""
KEY = 0


def _make(size: Size) -> Picture:
    n = by_size(size, 48, 256)
    flow, clusters, solves = _along_flow(n)
    name, depth, classes = _along_depth(size)
    figure = Figure(figsize=(8.6, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw(left, TIMES, flow)
    left.set(xlabel="time $t$", ylabel="measure of collapse")
    left.set_title(rf"SA, $n = {n}$, $d = {DIMENSION}$, $\beta = {BETA:g}$: {clusters} clusters")
    _draw(right, np.arange(len(depth)), depth)
    right.set(xlabel="layer", ylabel="measure of collapse", title=f"{name}: {classes}")
    ratios = {"flow": [c.ratio for c in flow], "model": [c.ratio for c in depth]}
    angles = {"flow": [c.angle_error for c in flow], "model": [c.angle_error for c in depth]}
    seen = (
        Quantity("clusters of the flow", clusters, "≥", 2),
        Quantity("flow: within over between at the end", ratios["flow"][-1], "≤", 1e-2),
        *_rates(flow),
        solves,
    )
    numbers = {
        "model": name,
        "n of the flow": n,
        "t": TIMES,
        "within over between": ratios,
        "distance of cosines from those of a simplex": angles,
    }
    return Picture(figure, numbers, seen)


def _rates(flow: list[NeuralCollapse]) -> tuple[Quantity, ...]:
    """Within a cluster that others hardly pull at, x_i' = mean − x_i: its variance is ∝ e^{−2t}.

    Others do pull a little, and clusters themselves hardly move, in times like e^{cβ}.
    """
    within, between = (
        -np.polyfit(
            TIMES[CLUSTERED_SAVES], np.log([getattr(c, name) for c in flow[CLUSTERED_SAVES]]), 1
        )[0]
        for name in ("within", "between")
    )
    return (
        Quantity("|rate of the variance within / 2 − 1|", abs(within / 2 - 1), "≤", 0.2),
        Quantity("|rate of the variance between| / 2", abs(between / 2), "≤", 0.1),
    )


def _along_flow(n: int) -> tuple[list[NeuralCollapse], int, Quantity]:
    """Tokens labelled by the metastable cluster in which they end."""
    x0 = initial.sphere(n, DIMENSION, key=KEY)
    xs = np.asarray(simulate(SA(BETA), x0, TIMES, method=Fixed(0.05)).xs)
    found = observe.clusters(xs[-1], 0.2)
    solves = compare_with_scipy("(SA)", sphere(beta=BETA), TIMES, xs)
    return [observe.neural_collapse(x, found.labels) for x in xs], found.count, solves


def _along_depth(size: Size) -> tuple[str, list[NeuralCollapse], str]:
    """Sentences of several topics, each as the mean of its tokens, and how many there are."""
    model, name = trained_model(HUB, size)
    texts = [text for topic in TOPICS.values() for text in topic]
    labels = np.repeat(np.arange(len(TOPICS)), [len(topic) for topic in TOPICS.values()])
    states, mask = np.asarray(model.states(texts)), model.encode(texts).mask
    weights = mask / mask.sum(axis=1, keepdims=True)
    means = np.einsum("blnd,bn->lbd", states, weights)
    classes = f"{len(texts)} sentences of {len(TOPICS)} topics"
    return name, [observe.neural_collapse(x, labels) for x in means], classes


def _draw(ax: Axes, steps: np.ndarray, measures: list[NeuralCollapse]) -> None:
    """Variance within classes over that between them, and how far means are from a simplex."""
    ratio, angle = zip(*((c.ratio, c.angle_error) for c in measures), strict=True)
    ax.semilogy(steps, ratio, color=PALETTE[0], label="within / between")
    ax.semilogy(steps, angle, color=PALETTE[1], ls="--", label="angles, from a simplex")
    ax.legend(fontsize=9)


RECIPE = Recipe(
    "S-collapse",
    "[S] neural collapse",
    "Neural collapse along the flow on the sphere, whose classes are the clusters that form: the "
    "variance within them vanishes against that between them. Beside it the same along the layers "
    "of a trained model, whose classes are topics of sentences, as an open question: nothing is "
    "claimed of it, nor of the angles between class means, which are compared with a simplex.",
    _make,
    model=True,
)
