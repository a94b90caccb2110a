"""[E] Fig. 8: a double leading eigenvalue gives a polytope in two directions, times a line."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from attnflow import observe
from attnflow.figures.emergence.rescaled import rescaled_run, solves
from attnflow.figures.recipe import Picture, Recipe, Size
from attnflow.plot.space import box_of, draw_prism, draw_space_tokens, set_space
from attnflow.plot.style import FAINT, PALETTE
from attnflow.theory import measured_geometry
from attnflow.verdicts import Quantity

V = np.diag([1.0, 1.0, -0.5])
END, SAVES_SHOWN = 12.0, (0, 10, 25, 60)


def _make(size: Size, V: Any) -> Picture:
    run = rescaled_run(V, 3, END)
    ts, zs = np.asarray(run.ts), np.asarray(run.xs)
    polygon = observe.hull(zs[-1, :, :2], 1e-3)
    corners = zs[:, polygon.vertices, :2]
    vertex = np.linalg.norm(zs[-1, :, None, :2] - polygon.points, axis=-1).argmin(axis=1)
    figure = Figure(figsize=(13.0, 2.9), layout="constrained")
    grid = figure.add_gridspec(
        1, len(SAVES_SHOWN) + 1, width_ratios=[1.0] * len(SAVES_SHOWN) + [0.9]
    )
    for column, i in enumerate(SAVES_SHOWN):
        ax = figure.add_subplot(grid[column], projection="3d")
        box = box_of(zs[i])
        set_space(ax, box, (18.0, -50.0))
        draw_prism(ax, polygon.points, box, FAINT)
        draw_space_tokens(ax, zs[i], vertex)
        ax.set_title(f"$t = {ts[i]:g}$", y=1.0)
    _from_above(figure.add_subplot(grid[-1]), zs, vertex, polygon)
    height = np.ptp(zs[..., 2], axis=1)
    formed = measured_geometry(run)
    away = polygon.distance(zs[-1, :, :2])
    numbers = {
        "t": ts[-1],
        "V": V,
        "vertices of K": polygon.points,
        "tokens at each": np.bincount(vertex),
        "limit": formed.kind,
        "way of a vertex since t = 5": np.linalg.norm(corners[-1] - corners[25], axis=-1).max(),
        "range of the third coordinate": height[list(SAVES_SHOWN)],
    }
    seen = (
        Quantity("dimension of the polytope", formed.dimension, "≤", 2),
        Quantity("dimension of the polytope", formed.dimension, "≥", 2),
        Quantity("distance to (∂K ∪ {0}) × G", formed.residual, "≤", 1e-3),
        Quantity("vertices of the polytope", len(polygon.points), "≥", 3),
        Quantity("tokens farther than 1e-2 from every vertex", int((away > 1e-2).sum()), "≤", 0),
        Quantity("growth of the range of the third coordinate", height[-1] / height[0], "≥", 100),
        solves(V, run, END / 3),
    )
    return Picture(figure, numbers, seen)


def _from_above(ax: Any, zs: np.ndarray, vertex: np.ndarray, polygon: observe.Hull) -> None:
    """The first two coordinates: ways of tokens to the vertices of K."""
    for token, corner in enumerate(vertex):
        ax.plot(*zs[:, token, :2].T, color=PALETTE[corner % len(PALETTE)], lw=0.7, alpha=0.6)
    around = polygon.points[[list(facet) for facet in polygon.facets]]
    for side in around:
        ax.plot(*side.T, color=FAINT, lw=0.9, zorder=0)
    ax.scatter(
        *polygon.points.T, s=28, color=[PALETTE[c % len(PALETTE)] for c in range(len(around))]
    )
    ax.set_aspect("equal")
    ax.set(xlabel="$z^1$", ylabel="$z^2$", title="from above")


RECIPE = Recipe(
    "E-fig8",
    "[E] Fig. 8",
    "V = diag(1, 1, −½): two coordinates cluster at the vertices of a polygon K, and tokens "
    "diverge along the third, so that the limit is K's boundary times a line. Scales differ.",
    partial(_make, V=V),
)
