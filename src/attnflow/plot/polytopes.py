"""Convex hulls, polytopes on the sphere, and the plane that shows a symmetric one best."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Real
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgba

from attnflow.observe.hull import Hull
from attnflow.plot.style import PALETTE
from attnflow.plot.tokens import TokenView

COPLANAR_TOL = 1e-6
"""Two triangles whose planes differ by less are one facet, without an edge between them."""

MAX_DARK_EDGES = 100
"""Up to this many edges between neighbours are drawn at full strength."""


EQUAL_TOL = 1e-6
"""Cosines and coordinates that differ by less count as equal."""


def draw_hull(ax: Axes, view: TokenView, hull: Hull, colour: str = PALETTE[1]) -> None:
    """Draw the hull of tokens in R² or R³.

    In R³ a facet is lighter the more it faces the viewer, and edges at the back are dotted.

    Args:
        ax: the axes.
        view: the view.
        hull: the hull, from `observe.hull`.
        colour: colour of edges and facets.
    """
    points, _ = view.project(hull.points)
    found = edges(hull)
    front = np.ones(len(found), bool)
    if hull.dimension == 3:
        facing = hull.normals @ hull.span.axes @ view.frame[2]
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
        if len(sides) < 2 or normals[sides[0]] @ normals[sides[1]] < 1 - COPLANAR_TOL
    }


def draw_neighbours(
    ax: Axes, view: TokenView, x: Real[np.ndarray, "n d"], colour: str = PALETTE[1]
) -> None:
    """Draw the edges between nearest neighbours on the sphere, fainter on its far side.

    For a sharp configuration these are the edges of a polytope. The more edges there are, the
    fainter each of them is.

    Args:
        ax: the axes.
        view: the view.
        x: unit tokens, shape (n, d).
        colour: colour of the edges.
    """
    cosines = x @ x.T
    np.fill_diagonal(cosines, -1.0)
    flat, near = view.project(x)
    pairs = np.argwhere(np.triu(cosines > cosines.max() - COPLANAR_TOL))
    fade = min(1.0, (MAX_DARK_EDGES / len(pairs)) ** 0.5)
    ink = [to_rgba(colour, fade * (0.75 if k >= 0 else 0.25)) for k in near[pairs].sum(axis=1)]
    lines = LineCollection(list(flat[pairs]), colors=ink, lw=max(0.3, 0.9 * fade), zorder=0.6)
    ax.add_collection(lines)


def coxeter_plane(x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "2 d"] | None:
    """An orthonormal basis of the plane that shows the points with a rotational symmetry.

    Reflections that swap two nearest neighbours are symmetries of every sharp configuration that a
    reflection group acts on (simplex, cross-polytope, icosahedron, 600-cell, E8, …). The product
    of the reflections in simple roots is a Coxeter element. It rotates one plane by 2π/h, where h
    is the Coxeter number; this is the plane. None if the points have no such symmetry.

    >>> seen = np.eye(3) @ coxeter_plane(np.eye(3)).T
    >>> np.linalg.norm(seen - np.roll(seen, 1, axis=0), axis=1).round(6).tolist()
    [1.414214, 1.414214, 1.414214]
    """
    turn = _coxeter_element(_simple(_roots(x)))
    if not all(np.abs(x - point).max(axis=1).min() < np.sqrt(EQUAL_TOL) for point in x @ turn.T):
        return None
    values, vectors = np.linalg.eig(turn)
    angles = np.abs(np.angle(values))
    turned = np.where(angles > EQUAL_TOL, angles, np.inf)
    if not turned.min() < np.pi - EQUAL_TOL:
        return None
    found = vectors[:, int(np.argmin(turned))]
    basis = np.stack([found.real, found.imag])
    return np.asarray(basis / np.linalg.norm(basis, axis=1, keepdims=True))


def _roots(x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "r d"]:
    """Unit vectors along the edges between nearest neighbours, on one side of a hyperplane.

    They are ordered by their distance from it.
    """
    cosines = x @ x.T
    np.fill_diagonal(cosines, -np.inf)
    i, j = np.argwhere(np.triu(cosines > cosines.max() - EQUAL_TOL)).T
    edges = x[i] - x[j]
    edges = edges / np.linalg.norm(edges, axis=1, keepdims=True)
    side = edges @ np.random.default_rng(0).normal(size=x.shape[1])
    return np.asarray((edges * np.sign(side)[:, None])[np.argsort(np.abs(side))])


def _simple(roots: Float[np.ndarray, "r d"]) -> list[np.ndarray]:
    """The simple roots: no two form an acute angle, and the nearest ones come first."""
    found: list[np.ndarray] = []
    for root in roots:
        if all(root @ other < EQUAL_TOL for other in found):
            found.append(root)
    return found


def _coxeter_element(roots: list[np.ndarray]) -> Float[np.ndarray, "d d"]:
    """The product of the reflections in the roots."""
    turn = np.eye(len(roots[0]))
    for root in roots:
        turn = turn - 2 * np.outer(turn @ root, root)
    return turn
