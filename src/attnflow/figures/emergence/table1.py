"""[E] Table 1: the limit that the weights predict beside the one that forms, row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnflow import initial, observe
from attnflow.errors import IncompleteRun
from attnflow.figures.emergence.rescaled import late, levels
from attnflow.figures.recipe import Picture, Recipe, Size, sized
from attnflow.plot.hulls import draw_hull
from attnflow.plot.matrices import draw_matrix
from attnflow.plot.overview import stage_of
from attnflow.plot.space import box_of, draw_plane, draw_space_tokens, eye_along, set_space
from attnflow.plot.style import FAINT, PALETTE
from attnflow.simulate import Trajectory, simulate
from attnflow.systems import PureAttention, RescaledAttention
from attnflow.theory import limit_geometry, measured_geometry, triples
from attnflow.theory.checks.base import Quantity
from attnflow.theory.limits import leading_coordinates

TOKENS, D = 24, 3


class Row(NamedTuple):
    """A row of the table: random weights, the system, how large the start is, and how long."""

    weights: Callable[[Any], triples.Triple]
    system: type
    side: float
    end: float
    tol: float


ROWS = {
    "polytope": Row(lambda key: triples.polytope(D, key), RescaledAttention, 4.0, 20.0, 1e-2),
    "hyperplanes": Row(lambda key: triples.hyperplanes(D, key), RescaledAttention, 2.0, 15.0, 1e-2),
    "polytope x subspace": Row(
        lambda key: triples.subspace(D, 2, key), RescaledAttention, 2.0, 15.0, 1e-2
    ),
    "origin": Row(lambda key: triples.origin(), PureAttention, 4.0, 1000.0, 0.1),
}
"""Tokens go to the origin like t^{−1/2}, so that what counts as there is wider."""
FORMED = (*ROWS, "unsettled")


class Outcome(NamedTuple):
    """One draw: what is predicted, what formed, and the run."""

    predicted: str
    formed: str
    residual: float
    run: Trajectory | None


def outcome(row: Row, draw: int) -> Outcome:
    """Run one draw of a row; a run that had to stop has not settled."""
    scores, tokens = jax.random.split(jax.random.key(draw))
    triple = row.weights(scores)
    predicted = limit_geometry(*triple).kind
    x0 = initial.cube(TOKENS, D, side=row.side, key=tokens)
    ts = row.end * np.linspace(0.0, 1.0, 25) ** 2
    try:
        run = simulate(row.system(*triple), x0, ts, method=late(20_000))
    except IncompleteRun:
        return Outcome(predicted, "unsettled", np.inf, None)
    found = measured_geometry(run, row.tol)
    return Outcome(predicted, found.kind, found.residual, run)


def _make(size: Size) -> Picture:
    draws = sized(size, 3, 50)
    found = {name: [outcome(row, k) for k in range(draws)] for name, row in ROWS.items()}
    every = [one for ones in found.values() for one in ones]
    counts = np.array(
        [[sum(o.formed == kind for o in ones) for kind in FORMED] for ones in found.values()]
    )
    figure = Figure(figsize=(13.0, 3.2), layout="constrained")
    grid = figure.add_gridspec(1, 5, width_ratios=(1, 1.1, 1, 1, 1.25))
    for column, (name, draw) in enumerate(_DRAWN.items()):
        run = next((one.run for one in found[name] if one.run is not None), None)
        ax = figure.add_subplot(grid[column], projection="3d" if name == "hyperplanes" else None)
        if run is not None:
            draw(ax, run)
        ax.set_title(name.replace(" x ", " × "))
    _confusion(figure.add_subplot(grid[-1]), counts)
    numbers = {
        "draws of each row": draws,
        "rows": list(ROWS),
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
    )
    return Picture(figure, numbers, seen)


def _polytope(ax: Axes, run: Trajectory) -> None:
    stage = stage_of(run)
    stage.set(ax)
    draw_hull(ax, stage, observe.hull(run.final, 1e-3))
    stage.draw(ax, len(run.ts) - 1, np.zeros(TOKENS, int))


def _hyperplanes(ax: Any, run: Any) -> None:
    zs = np.asarray(run.xs)
    found, box = levels(np.asarray(run.system.heads.V), zs), box_of(zs[-1])
    set_space(ax, box, eye_along(found.functional, box))
    for number, level in enumerate(found.levels):
        draw_plane(ax, found.functional, level, box, PALETTE[number % len(PALETTE)])
    draw_space_tokens(ax, zs[-1], found.labels)


def _subspace(ax: Axes, run: Any) -> None:
    """The part of the tokens in the leading eigenspace F, where the polygon is."""
    ys = np.asarray(run.xs) @ leading_coordinates(run.system.heads.V, D).T
    corners = observe.hull(ys[-1], 1e-3)
    for token in range(TOKENS):
        ax.plot(*ys[:, token].T, color=PALETTE[0], lw=0.6, alpha=0.5)
    for facet in corners.facets:
        ax.plot(*corners.points[list(facet)].T, color=PALETTE[1], lw=0.9, zorder=0)
    across, up = ys[-1].T
    ax.scatter(across, up, 24, PALETTE[0], edgecolors="white", linewidths=0.5, zorder=2)
    ax.set_aspect("equal", adjustable="datalim")
    ax.set(xlabel="in $F$", xticks=[], yticks=[])


def _origin(ax: Axes, run: Trajectory) -> None:
    ts, lengths = np.asarray(run.ts)[1:], np.linalg.norm(np.asarray(run.xs)[1:], axis=-1)
    ax.loglog(ts, lengths, color=PALETTE[0], lw=0.7, alpha=0.6)
    ax.loglog(ts, (2 * ts) ** -0.5, color=FAINT, ls="--", lw=1.1, label="$(2t)^{-1/2}$")
    ax.set(xlabel="time $t$", ylabel="$|x_i(t)|$", ylim=(lengths.max(axis=1).min() / 30, None))
    ax.legend(fontsize=9)


_DRAWN: dict[str, Callable[[Any, Trajectory], None]] = dict(
    zip(ROWS, (_polytope, _hyperplanes, _subspace, _origin), strict=True)
)


def _confusion(ax: Axes, counts: np.ndarray) -> None:
    draw_matrix(ax, counts, top=1.4 * counts.max())
    names = [name.replace(" x ", "\n× ") for name in FORMED]
    ax.set_xticks(range(len(names)), names, rotation=60, fontsize=8)
    ax.set_yticks(range(len(ROWS)), names[:-1], fontsize=8)
    ax.set(title="predicted (rows), formed")
    for i, j in np.ndindex(*counts.shape):
        if counts[i, j]:
            ax.text(j, i, str(counts[i, j]), ha="center", va="center")


RECIPE = Recipe(
    "E-table1",
    "[E] Table 1",
    "Random weights of the four rows in R³: the limit geometry that their spectra predict is the "
    "one that forms.",
    _make,
)
