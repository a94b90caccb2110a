"""[E] Fig. 4: queries, keys and the attention between them, as leaders emerge in the plane."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np
from matplotlib.figure import Figure

from attnflow import initial, observe, weights
from attnflow.figures.emergence.rescaled import attention_along, late
from attnflow.figures.recipe import Picture, Recipe, Size, sized
from attnflow.plot.leaders import draw_leaders
from attnflow.plot.matrices import draw_matrix
from attnflow.simulate import Trajectory, simulate
from attnflow.systems import RescaledAttention
from attnflow.theory.checks.base import Quantity

TOKENS, SHOWN = 20, 2
"""The draw that the picture shows: the first that ends with two leaders, as most end with one."""
TIMES = np.array([0.0, 2.0, 3.0, 4.0, 8.0])
"""In units of 1/λ₁: V is random, and so is how fast it grows."""


def _run(draw: int, sign: float) -> Trajectory:
    """V ≻ 0 and Q ≻ 0 random, K = I, and tokens uniform in [−1, 1]²."""
    values, queries, tokens = jax.random.split(jax.random.key(draw), 3)
    V = np.asarray(weights.wishart(2, key=values))
    system = RescaledAttention(weights.wishart(2, key=queries), np.eye(2), sign * V)
    ts = TIMES / np.linalg.eigvalsh(V)[-1]
    return simulate(system, initial.cube(TOKENS, 2, side=2.0, key=tokens), ts, method=late())


def _make(size: Size, sign: float) -> Picture:
    runs: list[Any] = [_run(draw, sign) for draw in range(sized(size, 5, 64))]
    matrices = np.stack([attention_along(run.system, run.ts, run.xs) for run in runs])
    shown = matrices[SHOWN]
    ranks, led = observe.rank(shown).tolist(), observe.leaders(shown).sum(axis=-1).tolist()
    others = np.asarray(observe.rank(matrices[:, -1]))
    figure = _drawn(runs[SHOWN], shown, ranks)
    few = f"share of {len(runs)} draws with numerical rank of P ≤ 2 at the end"
    seen = (
        Quantity("numerical rank of P at the end", ranks[-1], "≤", 2),
        Quantity("numerical rank of P at the start", ranks[0], "≥", 5),
        Quantity("leaders at the end", led[-1], "≤", 2),
        Quantity("leaders at the end", led[-1], "≥", 1),
        Quantity(few, float((others <= 2).mean()), "≥", 0.75),
    )
    numbers = {
        "λ₁ t": TIMES,
        "Q": runs[SHOWN].system.heads.Q,
        "V": runs[SHOWN].system.heads.V,
        "numerical rank of P": ranks,
        "leaders": led,
        "numerical rank of P at the end, draw by draw": others,
    }
    return Picture(figure, numbers, seen)


def _drawn(run: Any, matrices: np.ndarray, ranks: list[int]) -> Figure:
    figure = Figure(figsize=(12.0, 4.9), layout="constrained")
    above, below = figure.subplots(2, len(TIMES), height_ratios=(1.35, 1.0))
    xs = np.asarray(jax.vmap(run.system.to_x)(run.ts, run.xs))
    order = np.argsort(xs[-1] @ np.linalg.eigh(np.asarray(run.system.heads.V))[1][:, -1])
    for k, (ax, P) in enumerate(zip(above, matrices, strict=True)):
        draw_leaders(ax, xs[k] @ np.asarray(run.system.heads.Q).T, xs[k], P)
        ax.set_title(rf"$\lambda_1 t = {TIMES[k]:g}$")
        ax.locator_params(nbins=4)
        draw_matrix(below[k], P[np.ix_(order, order)], power=0.4)
        below[k].set_title(f"$P(t)$, num. rank {ranks[k]}")
    above[0].legend(loc="best", fontsize=9, handletextpad=0.1)
    return figure


RECIPE = Recipe(
    "E-fig4",
    "[E] Fig. 4",
    "Keys (green) and queries (purple) in the plane, joined by lines as wide as attention, for V "
    "and Q random and positive definite, K = I: in the draw that is shown two leaders are left. In "
    "most draws P ends with numerical rank at most 2 (singular values above 1e-6 of the largest).",
    partial(_make, sign=1.0),
)
