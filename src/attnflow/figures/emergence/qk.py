"""[E] Remark 2: are the vertices of a polytope still the limit where QᵀK ≻ 0 does not hold?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnflow import initial, observe, weights
from attnflow.errors import IncompleteRun
from attnflow.figures.emergence.rescaled import late
from attnflow.figures.recipe import Picture, Recipe, Size, by_size
from attnflow.figures.scipy_solution import DEFAULT_TOL, Head, compare_with_scipy, rescaled
from attnflow.plot.polytopes import draw_hull
from attnflow.plot.style import PALETTE
from attnflow.plot.tokens import TokenView
from attnflow.simulation import simulate
from attnflow.systems import RescaledAttention
from attnflow.theory.limits import SAME_POINT_TOL, boundary_distance, moved
from attnflow.theory.limits import size as size_of
from attnflow.verdicts import Quantity

TOKENS, END, MAX_STEPS = 24, 15.0, 5_000
"""A run that needs more steps has met a tie."""
SCIPY_UNTIL = (0.02, 0.05, 0.1)
"""Parts of the run at whose ends tokens are compared with SciPy's."""
TURN = np.array([[0.0, 1.0], [-1.0, 0.0]])


def _definite(key: Any) -> np.ndarray:
    return np.asarray(weights.spectrum([0.5, 1.5], key=key))


FAMILIES: dict[str, Callable[[Any], np.ndarray]] = {
    "positive definite": _definite,
    "with a rotation": lambda key: _definite(key) + TURN,
    "Ginibre": lambda key: np.asarray(weights.ginibre(2, key=key)),
    "indefinite": lambda key: np.asarray(weights.spectrum([1.0, -1.0], key=key)),
    "negative definite": lambda key: -_definite(key),
}
"""QᵀK in the plane: first as T3.1 wants it, then less and less so."""


class Ending(NamedTuple):
    """Where a run ended: its saves, how far it is from ∂K ∪ {0} and from rest, and its points.

    `off` is how far its beginning is from SciPy's solution, in units of the way gone.
    """

    zs: np.ndarray
    residual: float
    moved: float
    points: int
    at_vertices: float
    off: float

    @property
    def polytope(self) -> bool:
        """T3.1's conclusion, and more than one vertex: tokens rest at 0 or on the boundary of K."""
        return self.residual <= 1e-2 and self.moved <= 1e-2 and self.points >= 2


def _ending(B: np.ndarray, key: Any) -> Ending | None:
    """Where tokens from [−2, 2]² go with V = I and QᵀK = B, or None if the run had to stop."""
    x0 = initial.cube(TOKENS, 2, side=4.0, key=key)
    ts = END * np.array([0.0, *SCIPY_UNTIL, 0.5, 0.8, 1.0])
    try:
        run = simulate(RescaledAttention(Q=B.T), x0, ts, method=late(MAX_STEPS))
    except IncompleteRun:
        return None
    zs = np.asarray(run.xs)
    same = SAME_POINT_TOL * size_of(zs)
    return Ending(
        zs,
        float(boundary_distance(zs).max()),
        moved(zs),
        observe.clusters(zs[-1], same).count,
        float((observe.hull(zs[-1], SAME_POINT_TOL).distance(zs[-1]) <= same).mean()),
        float(
            compare_with_scipy("", rescaled(Head(B.T)), ts, zs, until=END * SCIPY_UNTIL[-1]).value
        ),
    )


def _make(size: Size) -> Picture:
    draws = by_size(size, 6, 100)
    endings = {name: [_drawn(name, k) for k in range(draws)] for name in FAMILIES}
    shares = {
        name: float(np.mean([e is not None and e.polytope for e in found]))
        for name, found in endings.items()
    }
    figure = Figure(figsize=(12.0, 3.2), layout="constrained")
    axes = figure.subplots(1, len(FAMILIES))
    for ax, (name, found) in zip(axes, endings.items(), strict=True):
        shown = next((e for e in found if e is not None), None)
        if shown is not None:
            _panel(ax, shown)
        ax.set_title(f"{name}\nvertices in {round(shares[name] * draws)} of {draws} runs")
    figure.suptitle(r"$V = I$, and $Q^\mathsf{T}K$ is", fontsize=12)
    numbers = {"t": END, "draws": draws, "share that settles at two or more vertices": shares}
    numbers |= {name: _table(found) for name, found in endings.items()}
    seen = (
        Quantity("share at two or more vertices, QᵀK ≻ 0", shares["positive definite"], "≥", 0.8),
        Quantity(
            "share at two or more vertices, QᵀK ≻ 0 and a rotation",
            shares["with a rotation"],
            "≥",
            0.8,
        ),
        Quantity("share at two or more vertices, QᵀK ≺ 0", shares["negative definite"], "≤", 0.2),
        Quantity(
            "off SciPy's solution of [E](4), over the way, in any run",
            max((e.off for found in endings.values() for e in found if e), default=0.0),
            "≤",
            DEFAULT_TOL,
        ),
    )
    return Picture(figure, numbers, seen)


def _drawn(name: str, k: int) -> Ending | None:
    scores, tokens = jax.random.split(jax.random.key(k))
    return _ending(FAMILIES[name](scores), tokens)


def _panel(ax: Axes, ending: Ending) -> None:
    view = TokenView(ending.zs, False)
    view.prepare(ax)
    for before, after in zip(ending.zs[0], ending.zs[-1], strict=True):
        ax.plot(*np.stack([before, after]).T, color=PALETTE[0], lw=0.5, alpha=0.35, zorder=0.4)
    corners = observe.hull(ending.zs[-1], SAME_POINT_TOL)
    draw_hull(ax, view, corners)
    across, up = ending.zs[-1].T
    ax.scatter(across, up, 22, PALETTE[0], edgecolors="white", linewidths=0.5, zorder=2)
    ax.plot(0, 0, "+", color=PALETTE[1], ms=7)


def _table(found: list[Ending | None]) -> dict[str, Any]:
    done = [e for e in found if e is not None]
    return {
        "runs that had to stop": len(found) - len(done),
        "distance to ∂K ∪ {0}": [e.residual for e in done],
        "way between the last two saves": [e.moved for e in done],
        "distinct points": [e.points for e in done],
        "share of tokens at vertices": [e.at_vertices for e in done],
    }


RECIPE = Recipe(
    "E-qk",
    "[E] Remark 2",
    "V = I in the plane where QᵀK ≻ 0 (first), and where it is not: how often tokens still settle "
    "at two vertices or more. Lines lead from where tokens started.",
    _make,
)
