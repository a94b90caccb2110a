"""[E] Table 1: the limit that the weights predict beside the one that forms, row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnflow import initial, observe
from attnflow.errors import IncompleteRun
from attnflow.figures.emergence.rescaled import late, levels
from attnflow.figures.recipe import Picture, Recipe, Size, by_size
from attnflow.figures.scipy_solution import DEFAULT_TOL, Head, compare_with_scipy, pure, rescaled
from attnflow.plot.matrices import draw_matrix
from attnflow.plot.polytopes import draw_hull
from attnflow.plot.runs import view_of
from attnflow.plot.style import FAINT, PALETTE, colours
from attnflow.plot.tokens import TokenView
from attnflow.simulation import Trajectory, simulate
from attnflow.systems import PureAttention, RescaledAttention
from attnflow.theory import limit_geometry, measured_geometry, triples
from attnflow.theory.limits import leading_coordinates
from attnflow.verdicts import Quantity

TOKENS, D = 24, 3


class Row(NamedTuple):
    """A row of the table: random weights, the system, how large the start is, and how long."""

    weights: Callable[[Any], triples.Triple]
    system: type
    side: float
    end: float
    tol: float


def _polytopes(key: Any) -> triples.Triple:
    """V = I as a matrix, so that its runs are compiled together with those of other rows."""
    return triples.polytope(D, key)._replace(V=jnp.eye(D))


TABLE_ROWS = {
    "polytope": Row(_polytopes, RescaledAttention, 4.0, 20.0, 1e-2),
    "hyperplanes": Row(lambda key: triples.hyperplanes(D, key), RescaledAttention, 2.0, 15.0, 1e-2),
    "polytope x subspace": Row(
        lambda key: triples.subspace(D, 2, key), RescaledAttention, 2.0, 15.0, 1e-2
    ),
    "origin": Row(lambda key: triples.origin(), PureAttention, 4.0, 1000.0, 0.1),
}
"""Tokens go to the origin like t^{−1/2}, so that what counts as there is wider."""
FORMED = (*TABLE_ROWS, "unsettled")


class Outcome(NamedTuple):
    """One draw: what is predicted, what formed, the run, and how far it is off SciPy's."""

    predicted: str
    formed: str
    residual: float
    run: Trajectory | None
    off: float


def outcome(row: Row, draw: int) -> Outcome:
    """Run one draw of a row; a run that had to stop has not settled."""
    scores, tokens = jax.random.split(jax.random.key(draw))
    triple = row.weights(scores)
    predicted = limit_geometry(*triple).kind
    x0 = initial.cube(TOKENS, D, side=row.side, key=tokens)
    ts = row.end * np.linspace(0.0, 1.0, 25) ** 2
    try:
        run = simulate(row.system(**triple._asdict()), x0, ts, method=late(20_000))
    except IncompleteRun:
        return Outcome(predicted, "unsettled", np.inf, None, 0.0)
    found = measured_geometry(run, row.tol)
    return Outcome(predicted, found.kind, found.residual, run, _off(triple, row, run))


def _off(triple: triples.Triple, row: Row, run: Trajectory) -> float:
    """How far tokens are from SciPy's, coordinate by coordinate, in the first quarter of a run."""
    head = Head(*(None if W is None else np.asarray(W) for W in triple))
    field = pure(head) if row.system is PureAttention else rescaled(head)
    along = None if np.ndim(head.V) == 0 else observe.eigenbasis(head.V).dual
    until = row.end / 4
    return float(
        compare_with_scipy("", field, run.ts, run.xs, until=until, most=6, along=along).value
    )


def _make(size: Size) -> Picture:
    draws = by_size(size, 3, 50)
    found = {name: [outcome(row, k) for k in range(draws)] for name, row in TABLE_ROWS.items()}
    every = [one for ones in found.values() for one in ones]
    counts = np.array(
        [[sum(o.formed == kind for o in ones) for kind in FORMED] for ones in found.values()]
    )
    figure = Figure(figsize=(13.0, 3.2), layout="constrained")
    grid = figure.add_gridspec(1, 5, width_ratios=(1, 1, 1, 1, 1.25))
    for column, (name, draw) in enumerate(_DRAWN.items()):
        runs = [one.run for one in found[name] if one.run is not None]
        ax = figure.add_subplot(grid[column])
        if runs:
            draw(ax, max(runs, key=_places))
        ax.set_title(name.replace(" x ", " × "))
    _confusion(figure.add_subplot(grid[-1]), counts)
    numbers = {
        "draws of each row": draws,
        "rows": list(TABLE_ROWS),
        "formed": FORMED,
        "counts": counts,
        "residuals": {name: [one.residual for one in ones] for name, ones in found.items()},
    }
    named = np.array([one.predicted == name for name, ones in found.items() for one in ones])
    agree = np.array([one.formed == one.predicted for one in every])
    seen = (
        Quantity(
            "share of draws for which the row of the table is predicted",
            float(named.mean()),
            "≥",
            1.0,
        ),
        Quantity(
            "share of draws whose predicted limit is the measured one",
            float(agree.mean()),
            "≥",
            0.9,
        ),
        Quantity(
            "off SciPy's solution of [E](1), (4), over the way, in any draw",
            max(one.off for one in every),
            "≤",
            DEFAULT_TOL,
        ),
    )
    return Picture(figure, numbers, seen)


def _places(run: Any) -> int:
    """In how many places tokens are in the leading directions: most to see where there are many."""
    ys = np.asarray(run.along(leading_coordinates(run.system.heads.V, D)))[-1]
    return observe.clusters(ys, 1e-2).count


def _polytope(ax: Axes, run: Trajectory) -> None:
    view = view_of(run)
    view.prepare(ax)
    draw_hull(ax, view, observe.hull(run.final, 1e-3))
    view.draw(ax, len(run.ts) - 1, np.zeros(TOKENS, int))


def _hyperplanes(ax: Axes, run: Any) -> None:
    """φ₁* against the direction in which tokens differ most: each level is a line upwards."""
    zs = np.asarray(run.xs)
    found = levels(np.asarray(run.system.heads.V), run)
    away = zs[-1] - zs[-1].mean(axis=0)
    along = away @ np.linalg.svd(away, full_matrices=False)[2][0]
    for level in found.levels:
        ax.axvline(level, color=FAINT, lw=0.9, ls=(0, (5, 3)), zorder=0)
    ax.scatter(
        found.along[-1], along, 24, colours(found.labels), edgecolors="white", linewidths=0.5
    )
    reach = 1.25 * np.abs(found.levels).max()
    ax.set(xlabel=r"$\varphi_1^*(z_i)$", xlim=(-reach, reach), ylabel="farthest direction")
    ax.set_yticks([])


def _subspace(ax: Axes, run: Any) -> None:
    """The part of the tokens in the leading eigenspace F, where the polygon is."""
    ys = np.asarray(run.along(leading_coordinates(run.system.heads.V, D)))
    view = TokenView(ys, False)
    view.prepare(ax)
    draw_hull(ax, view, observe.hull(ys[-1], 1e-3))
    for token in range(TOKENS):
        ax.plot(*ys[:, token].T, color=PALETTE[0], lw=0.6, alpha=0.5)
    across, up = ys[-1].T
    ax.scatter(across, up, 24, PALETTE[0], edgecolors="white", linewidths=0.5, zorder=2)
    ax.set(xlabel="within $F$", xticks=[], yticks=[])


def _origin(ax: Axes, run: Trajectory) -> None:
    ts, lengths = np.asarray(run.ts)[1:], np.linalg.norm(np.asarray(run.xs)[1:], axis=-1)
    ax.loglog(ts, lengths, color=PALETTE[0], lw=0.7, alpha=0.6)
    ax.loglog(ts, (2 * ts) ** -0.5, color=FAINT, ls="--", lw=1.1, label="$(2t)^{-1/2}$")
    ax.set(xlabel="time $t$", ylabel="$|x_i(t)|$", ylim=(lengths.max(axis=1).min() / 8, None))
    ax.legend(fontsize=9)


_DRAWN: dict[str, Callable[[Any, Trajectory], None]] = dict(
    zip(TABLE_ROWS, (_polytope, _hyperplanes, _subspace, _origin), strict=True)
)


def _confusion(ax: Axes, counts: np.ndarray) -> None:
    draw_matrix(ax, counts, top=1.4 * counts.max())
    names = [name.replace(" x ", "\n× ") for name in FORMED]
    ax.set_xticks(range(len(names)), names, rotation=60, fontsize=8)
    ax.set_yticks(range(len(TABLE_ROWS)), names[:-1], fontsize=8)
    ax.set(title="predicted (rows), formed")
    for i, j in np.ndindex(*counts.shape):
        if counts[i, j]:
            ax.text(j, i, str(counts[i, j]), ha="center", va="center", color="white")


RECIPE = Recipe(
    "E-table1",
    "[E] Table 1",
    "Random weights of the four rows in R³: the limit geometry that their spectra predict is the "
    "one that forms.",
    _make,
)
