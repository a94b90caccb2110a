"""[E] Figs. 3 and 11: on the line the attention matrix becomes Boolean, of rank at most 2."""

from __future__ import annotations

from functools import partial

import numpy as np
from matplotlib.figure import Figure

from attnflow import initial, observe
from attnflow.figures.emergence.rescaled import attention_along, late
from attnflow.figures.recipe import Picture, Recipe, Size, sized
from attnflow.plot.matrices import draw_matrix, largest_in_blocks
from attnflow.simulate import simulate
from attnflow.systems import RescaledAttention
from attnflow.theory.checks.base import Quantity

TIMES = (0.0, 1.0, 2.0, 4.0, 8.0, 15.0)


def _make(size: Size, n: int, paper_n: int, V: float) -> Picture:
    n = sized(size, n, paper_n)
    system = RescaledAttention(V=V)
    run = simulate(system, initial.cube(n, 1, side=2.0, seed=0), TIMES, method=late())
    matrices = np.asarray(attention_along(system, run.ts, run.xs))
    ranks = observe.rank(matrices).tolist()
    figure = Figure(figsize=(2.0 * len(TIMES) + 0.5, 2.55), layout="constrained")
    # Tokens in their order on the line, so that who follows whom can be seen.
    order = np.argsort(np.asarray(run.xs[0])[:, 0])
    axes = figure.subplots(1, len(TIMES))
    for ax, t, P, rank in zip(axes, TIMES, matrices, ranks, strict=True):
        image = draw_matrix(ax, largest_in_blocks(P[np.ix_(order, order)]), power=0.4)
        ax.set_title(f"$t = {t:g}$, rank {rank}")
    figure.colorbar(
        image, ax=axes, ticks=[0, 0.01, 0.1, 0.4, 1], label="$P_{ij}$", aspect=15, pad=0.01
    )
    figure.suptitle(f"$P(t)$ and its numerical rank, $n = {n}$", fontsize=12)
    away = np.asarray(observe.boolean_distance(matrices))
    seen = (
        Quantity("numerical rank of P at the end", ranks[-1], "≤", 2),
        Quantity("distance of P from a matrix of zeros and ones, at the end", away[-1], "≤", 1e-3),
        Quantity("numerical rank of P at the start", ranks[0], "≥", 5),
    )
    numbers = {"t": TIMES, "numerical rank": ranks, "boolean_distance": away, "n": n}
    return Picture(figure, numbers, seen)


RECIPE = Recipe(
    "E-fig3",
    "[E] Fig. 3",
    "In dimension 1 with Q = K = V = 1 the attention matrix P(t) of rescaled attention tends to a "
    "Boolean matrix of rank at most 2. Ranks are numerical: singular values above 1e-6 of the "
    "largest. That of P(0), a smooth kernel, is low, so it first rises; the rank proper is full as "
    "long as tokens are distinct.",
    partial(_make, n=40, paper_n=40, V=1.0),
)
LARGER = Recipe(
    "E-fig11",
    "[E] Fig. 11",
    "The same as E-fig3 with more tokens: the numerical rank at the end does not grow with n.",
    partial(_make, n=100, paper_n=400, V=1.0),
)
