"""Convex hulls of tokens on a stage, and polytopes on the sphere: edges, facets in space."""

from __future__ import annotations

import numpy as np
from jaxtyping import Real
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgba

from attnflow.observe.hull import Hull
from attnflow.plot.style import PALETTE
from attnflow.plot.tokens import Stage

FLAT = 1e-6
"""Two triangles whose planes differ by less are one facet, and the edge between them is no edge."""


def draw_hull(ax: Axes, stage: Stage, hull: Hull, colour: str = PALETTE[1]) -> None:
    """Draw the hull of tokens in R² or R³ where the stage shows them, with transparent facets."""
    points, _ = stage.view(hull.points)
    facets = [points[list(facet)] for facet in hull.facets]
    if hull.dimension == 3:
        ax.add_collection(PolyCollection(facets, facecolors=to_rgba(colour, 0.08), zorder=0.5))
    edges = _edges(hull)
    lines = [points[list(edge)] for edge in edges]
    ax.add_collection(LineCollection(lines, colors=to_rgba(colour, 0.7), lw=0.9, zorder=0.6))


def _edges(hull: Hull) -> list[tuple[int, int]]:
    """The edges of the polytope: sides of triangles, without those inside a flat facet."""
    if hull.dimension < 2:
        return [(0, 1)] if len(hull.points) == 2 else []
    if hull.dimension < 3:
        return [(facet[0], facet[1]) for facet in hull.facets]
    beside: dict[tuple[int, int], list[int]] = {}
    for number, facet in enumerate(hull.facets):
        for a, b in ((0, 1), (1, 2), (0, 2)):
            edge = (min(facet[a], facet[b]), max(facet[a], facet[b]))
            beside.setdefault(edge, []).append(number)
    normals = hull.normals
    return [
        edge
        for edge, sides in beside.items()
        if len(sides) < 2 or normals[sides[0]] @ normals[sides[1]] < 1 - FLAT
    ]


def draw_neighbours(
    ax: Axes, stage: Stage, x: Real[np.ndarray, "n d"], colour: str = PALETTE[1]
) -> None:
    """Draw the edges between nearest neighbours on the sphere, fainter on its far side.

    For a sharp configuration these are the edges of a polytope.
    """
    cosines = x @ x.T
    np.fill_diagonal(cosines, -1.0)
    flat, near = stage.view(x)
    for i, j in np.argwhere(np.triu(cosines > cosines.max() - FLAT)):
        alpha = 0.75 if near[i] + near[j] >= 0 else 0.25
        ax.plot(*flat[[i, j]].T, color=to_rgba(colour, alpha), lw=0.9, zorder=0.6)
