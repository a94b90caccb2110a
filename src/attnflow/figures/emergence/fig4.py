"""[E] Fig. 4: queries, keys and the attention between them, as leaders emerge in the plane."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from matplotlib.figure import Figure

from attnflow import initial, observe, weights
from attnflow.figures.emergence.rescaled import late
from attnflow.figures.recipe import Picture, Recipe, Size, by_size
from attnflow.figures.scipy_solution import Head, compare_with_scipy, rescaled
from attnflow.plot.matrices import draw_leaders, draw_matrix
from attnflow.simulation import simulate
from attnflow.systems import RescaledAttention
from attnflow.theory.limits import boundary_distance
from attnflow.verdicts import Quantity

TOKENS, DRAW_SHOWN = 20, 2
"""The draw that the picture shows: the first that ends with two leaders, as most end with one."""
TIMES = np.array([0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 8.0])
SAVES_SHOWN, SHARP_SAVE = (0, 3, 4, 5, 6), 5
"""In units of 1/λ₁: V is random, and so is how fast it grows."""


class Drawn(NamedTuple):
    """The weights that were drawn, and the run with them."""

    Q: np.ndarray
    V: np.ndarray
    run: Any

    @property
    def solves(self) -> Quantity:
        """Whether tokens go as [E](4) says, as long as attention is not nearly a hard maximum."""
        along = np.linalg.eigh(self.V)[1].T
        field = rescaled(Head(self.Q, None, self.V))
        ts = np.asarray(self.run.ts)
        return compare_with_scipy(
            "[E](4)", field, ts, self.run.xs, until=ts[SHARP_SAVE], along=along
        )

    @property
    def levels(self) -> float:
        """T4.1: how far the leading coordinates of z are from {a, 0, b}."""
        leading = np.linalg.eigh(self.V)[1][:, -1:]
        return float(boundary_distance(np.asarray(self.run.xs) @ leading).max())


def _run(draw: int, sign: float) -> Drawn:
    """V ≻ 0 and Q ≻ 0 random, K = I, and tokens uniform in [−1, 1]²."""
    values, queries, tokens = jax.random.split(jax.random.key(draw), 3)
    Q, V = (np.asarray(weights.wishart(2, key=key)) for key in (queries, values))
    ts = TIMES / np.linalg.eigvalsh(V)[-1]
    system = RescaledAttention(Q=Q, K=np.eye(2), V=sign * V)
    x0 = initial.cube(TOKENS, 2, side=2.0, key=tokens)
    return Drawn(Q, sign * V, simulate(system, x0, ts, method=late()))


def _make(size: Size, sign: float) -> Picture:
    drawn = [_run(draw, sign) for draw in range(by_size(size, 5, 64))]
    runs = [one.run for one in drawn]
    matrices = np.stack([observe.attention_along(run) for run in runs])
    shown = matrices[DRAW_SHOWN][list(SAVES_SHOWN)]
    ranks, led = observe.rank(shown).tolist(), observe.leaders(shown).sum(axis=-1).tolist()
    others = np.asarray(observe.rank(matrices[:, -1]))
    figure = _drawn(runs[DRAW_SHOWN], shown, ranks)
    few = f"share of {len(runs)} draws with numerical rank of P ≤ 2 at the end"
    near = f"share of {len(runs)} draws with φ₁*(z) within 1e-2 of {{a, 0, b}} (T4.1)"
    seen = (
        Quantity("numerical rank of P at the end", ranks[-1], "≤", 2),
        Quantity("numerical rank of P at the start", ranks[0], "≥", 5),
        Quantity("leaders at the end", led[-1], "≤", 2),
        Quantity("leaders at the end", led[-1], "≥", 1),
        Quantity(few, float((others <= 2).mean()), "≥", 0.75),
        Quantity(near, float(np.mean([one.levels <= 1e-2 for one in drawn])), "≥", 0.75),
        max((one.solves for one in drawn), key=lambda quantity: float(quantity.value)),
    )
    numbers = {
        "λ₁ t": TIMES[list(SAVES_SHOWN)],
        "Q": runs[DRAW_SHOWN].system.heads.Q,
        "V": runs[DRAW_SHOWN].system.heads.V,
        "numerical rank of P": ranks,
        "leaders": led,
        "numerical rank of P at the end, draw by draw": others,
    }
    return Picture(figure, numbers, seen)


def _drawn(run: Any, matrices: np.ndarray, ranks: list[int]) -> Figure:
    figure = Figure(figsize=(12.0, 4.9), layout="constrained")
    above, below = figure.subplots(2, len(SAVES_SHOWN), height_ratios=(1.35, 1.0))
    shown = np.array(SAVES_SHOWN)
    xs = np.asarray(jax.vmap(run.system.to_x)(run.ts[shown], run.xs[shown]))
    order = np.argsort(xs[-1] @ np.linalg.eigh(np.asarray(run.system.heads.V))[1][:, -1])
    for k, (ax, P) in enumerate(zip(above, matrices, strict=True)):
        draw_leaders(ax, xs[k] @ np.asarray(run.system.heads.Q).T, xs[k], P)
        ax.set_title(rf"$\lambda_1 t = {TIMES[SAVES_SHOWN[k]]:g}$")
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
