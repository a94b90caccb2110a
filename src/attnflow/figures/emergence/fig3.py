"""[E] Figs. 3 and 11: on the line the attention matrix becomes Boolean, of rank at most 2."""

from __future__ import annotations

from functools import partial

import numpy as np
from matplotlib.figure import Figure

from attnflow import initial, observe
from attnflow.figures.emergence.rescaled import late
from attnflow.figures.recipe import Picture, Recipe, Size, by_size
from attnflow.figures.scipy_solution import Head, compare_with_scipy, rescaled
from attnflow.plot.matrices import draw_matrix, largest_in_blocks
from attnflow.simulation import Trajectory, simulate
from attnflow.systems import RescaledAttention
from attnflow.theory.limits import SAME_POINT_TOL, boundary_distance
from attnflow.theory.limits import size as size_of
from attnflow.verdicts import Quantity

TIMES = np.array([0.0, 0.5, 1.0, 1.5, *np.arange(2.0, 12.25, 0.5), 15.0])
SAVES_SHOWN = tuple(int(np.flatnonzero(t == TIMES)[0]) for t in (0.0, 1.0, 2.0, 4.0, 8.0, 15.0))
"""Most times are for measuring; these are drawn."""
WEIGHT_RANGE = (1e-280, 1e-3)
"""Between these weights that vanish are small, and not yet lost to underflow."""


def _make(size: Size, n: int, paper_n: int, V: float) -> Picture:
    n = by_size(size, n, paper_n)
    system = RescaledAttention(V=V)
    run = simulate(system, initial.cube(n, 1, side=2.0, key=0), TIMES, method=late())
    matrices = np.asarray(observe.attention_along(run))
    ranks = observe.rank(matrices).tolist()
    figure = Figure(figsize=(2.0 * len(SAVES_SHOWN) + 0.5, 2.55), layout="constrained")
    # Tokens in their order on the line, so that who follows whom can be seen.
    order = np.argsort(np.asarray(run.xs[0])[:, 0])
    axes = figure.subplots(1, len(SAVES_SHOWN))
    for ax, k in zip(axes, SAVES_SHOWN, strict=True):
        P = matrices[k][np.ix_(order, order)]
        image = draw_matrix(ax, largest_in_blocks(P), power=0.4)
        ax.set_title(f"$t = {TIMES[k]:g}$, rank {ranks[k]}")
    figure.colorbar(
        image, ax=axes, ticks=[0, 0.01, 0.1, 0.4, 1], label="$P_{ij}$", aspect=15, pad=0.01
    )
    figure.suptitle(f"$P(t)$ and its numerical rank, $n = {n}$", fontsize=12)
    away = np.asarray(observe.boolean_distance(matrices))
    seen = (
        Quantity("numerical rank of P at the end", ranks[-1], "≤", 2),
        Quantity("distance of P from a matrix of zeros and ones, at the end", away[-1], "≤", 1e-3),
        Quantity("numerical rank of P at the start", ranks[0], "≥", 5),
        *_theorem(matrices, order, V),
        *_places(run),
        compare_with_scipy("[E](4)", rescaled(Head(V=V)), run.ts, run.xs, until=4.0),
    )
    numbers = {"t": TIMES, "numerical rank": ranks, "boolean_distance": away, "n": n}
    return Picture(figure, numbers, seen)


def _theorem(matrices: np.ndarray, order: np.ndarray, V: float) -> tuple[Quantity, ...]:
    """T2.1: all rows but one choose the first or the last token of the line, double exponentially.

    The gap of x between the last two tokens tends to a constant while x grows like e^{Vt}, so that
    the weights of the last token's row that vanish do so like e^{−c e^{Vt}}. Were tokens z at rest,
    the gap would grow too, and it would be e^{−c e^{2Vt}}.
    """
    chosen = matrices[-1].argmax(axis=1)
    others = int((~np.isin(chosen, order[[0, -1]])).sum())
    rest = np.delete(matrices[:, order[-1]], order[-1], axis=1).sum(axis=1)
    fitted = np.flatnonzero((rest > WEIGHT_RANGE[0]) & (rest < WEIGHT_RANGE[1]))[-3:]
    growth = np.nan
    if len(fitted) == 3:
        growth = np.polyfit(TIMES[fitted], np.log(-np.log(rest[fitted])), 1)[0]
    return (
        Quantity("rows that choose neither the first nor the last token", others, "≤", 1),
        Quantity("|rate of log(−log(1 − P_nn)) / V − 1|", abs(growth / V - 1), "≤", 0.1),
    )


def _places(run: Trajectory) -> tuple[Quantity, ...]:
    """T3.1 on the line: tokens end at the ends of an interval, but for one that may be at 0."""
    zs = np.asarray(run.xs)
    count = observe.clusters(zs[-1], SAME_POINT_TOL * size_of(zs)).count
    away = boundary_distance(zs).max()
    return (
        Quantity("places where tokens z end", count, "≥", 2),
        Quantity("distance of z to the ends of its interval and 0", away, "≤", 1e-3),
    )


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
