"""Convex hulls of tokens, and polytopes on the sphere: edges, and facets in R³."""

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
"""Two triangles whose planes differ by less are one facet, without an edge between them."""

MANY = 100
"""Up to this many edges between neighbours are drawn at full strength."""


def draw_hull(ax: Axes, stage: Stage, hull: Hull, colour: str = PALETTE[1]) -> None:
    """Draw the hull of tokens in R² or R³.

    In R³ a facet is lighter the more it faces the viewer, and edges at the back are dotted.

    Args:
        ax: the axes.
        stage: the view.
        hull: the hull, from `observe.hull`.
        colour: colour of edges and facets.
    """
    points, _ = stage.view(hull.points)
    found = edges(hull)
    front = np.ones(len(found), bool)
    if hull.dimension == 3:
        facing = hull.normals @ hull.span.axes @ stage.frame[2]
        seen = [number for number in range(len(facing)) if facing[number] > 0]
        ax.add_collection(
            PolyCollection(
                [points[list(hull.facets[number])] for number in seen],
                facecolors=[to_rgba(colour, 0.24 - 0.18 * facing[number]) for number in seen],
                zorder=0.5,
            )
        )
        front = np.array([(facing[list(sides)] > 0).any() for sides in found.values()])
    lines = np.array([points[list(edge)] for edge in found])
    for shown, alpha, dashes in ((front, 0.8, "-"), (~front, 0.5, (0, (1, 2)))):
        ax.add_collection(
            LineCollection(
                list(lines[shown]),
                colors=to_rgba(colour, alpha),
                linewidths=0.9,
                linestyles=dashes,
                zorder=0.6,
            )
        )


def edges(hull: Hull) -> dict[tuple[int, int], list[int]]:
    """The edges of the polytope, each with the numbers of its facets.

    These are the sides of the triangles, except those inside a flat facet.
    """
    if hull.dimension == 1:
        return {(0, 1): []}
    if hull.dimension == 2:
        return {(a, b): [] for a, b in hull.facets}
    beside: dict[tuple[int, int], list[int]] = {}
    for number, facet in enumerate(hull.facets):
        for a, b in ((0, 1), (1, 2), (0, 2)):
            edge = (min(facet[a], facet[b]), max(facet[a], facet[b]))
            beside.setdefault(edge, []).append(number)
    normals = hull.normals
    return {
        edge: sides
        for edge, sides in beside.items()
        if len(sides) < 2 or normals[sides[0]] @ normals[sides[1]] < 1 - FLAT
    }


def draw_neighbours(
    ax: Axes, stage: Stage, x: Real[np.ndarray, "n d"], colour: str = PALETTE[1]
) -> None:
    """Draw the edges between nearest neighbours on the sphere, fainter on its far side.

    For a sharp configuration these are the edges of a polytope. The more edges there are, the
    fainter each of them is.

    Args:
        ax: the axes.
        stage: the view.
        x: unit tokens, shape (n, d).
        colour: colour of the edges.
    """
    cosines = x @ x.T
    np.fill_diagonal(cosines, -1.0)
    flat, near = stage.view(x)
    pairs = np.argwhere(np.triu(cosines > cosines.max() - FLAT))
    fade = min(1.0, (MANY / len(pairs)) ** 0.5)
    ink = [to_rgba(colour, fade * (0.75 if k >= 0 else 0.25)) for k in near[pairs].sum(axis=1)]
    lines = LineCollection(list(flat[pairs]), colors=ink, lw=max(0.3, 0.9 * fade), zorder=0.6)
    ax.add_collection(lines)
