"""Tokens in R³ with planes, lines and prisms, and marks in the plane."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from mpl_toolkits.mplot3d.art3d import (  # type: ignore[import-untyped]
    Line3DCollection,
    Poly3DCollection,
)
from mpl_toolkits.mplot3d.axes3d import Axes3D  # type: ignore[import-untyped]
from scipy.spatial import ConvexHull

from attnflow.plot.style import FAINT, PALETTE, colours

MARGIN = 0.05
"""Margin of the box, as a fraction of its size."""

Box = Float[np.ndarray, "2 3"]


def box_of(x: Float[np.ndarray, "n 3"]) -> Box:
    """The lower and the upper corner of a box around the finite points, with a margin.

    >>> print(box_of(np.array([[0.0, 0.0, 0.0], [1.0, 2.0, 10.0]])))
    [[-0.05 -0.1  -0.5 ]
     [ 1.05  2.1  10.5 ]]
    """
    known = x[np.isfinite(x).all(axis=1)]
    known = known if len(known) else np.zeros((1, x.shape[1]))
    low, high = known.min(axis=0), known.max(axis=0)
    margin = MARGIN * np.maximum(high - low, 1e-9)
    return np.stack([low - margin, high + margin])


def set_space(ax: Axes3D, box: Box, eye: tuple[float, float] = (20.0, -60.0)) -> None:
    """Prepare axes for a box, each with its own scale.

    Args:
        ax: the axes.
        box: lower and upper corner, shape (2, 3).
        eye: elevation and azimuth of the viewer, in degrees.
    """
    ax.set(xlim=box[:, 0], ylim=box[:, 1], zlim=box[:, 2])
    ax.view_init(*eye)
    ax.set_box_aspect((1, 1, 1), zoom=1.12)
    ax.tick_params(labelsize=8, pad=-2, colors=FAINT)
    ax.locator_params(nbins=4)
    ax.grid(False)
    for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
        axis.set_pane_color((1, 1, 1, 0))
        axis.line.set_color(FAINT)


def eye_along(normal: Float[np.ndarray, " 3"], box: Box) -> tuple[float, float]:
    """Elevation and azimuth from which planes with this normal are seen nearly edge on."""
    across = normal * (box[1] - box[0])
    return 11.0, float(np.rad2deg(np.arctan2(across[1], across[0]))) + 73.0


def eye_before(
    first: Float[np.ndarray, " 3"], second: Float[np.ndarray, " 3"], box: Box
) -> tuple[float, float]:
    """Elevation and azimuth for which two directions lie in the plane of the picture.

    Args:
        first: a direction, shape (3,).
        second: another direction, shape (3,).
        box: lower and upper corner of the axes, shape (2, 3).
    """
    eye = np.cross(first / (box[1] - box[0]), second / (box[1] - box[0]))
    x, y, z = eye / np.linalg.norm(eye)
    return float(np.rad2deg(np.arcsin(z))), float(np.rad2deg(np.arctan2(y, x)))


def draw_space_tokens(
    ax: Axes3D, x: Float[np.ndarray, "n 3"], labels: Int[np.ndarray, " n"], size: float = 18
) -> None:
    """Draw tokens as dots, coloured by label.

    Args:
        ax: the axes.
        x: tokens, shape (n, 3).
        labels: the label of each token, shape (n,).
        size: area of the dots.
    """
    ax.scatter(*x.T, s=size, c=colours(labels), edgecolors="white", linewidths=0.4)


def draw_plane(
    ax: Axes3D, functional: Float[np.ndarray, " 3"], level: float, box: Box, colour: str = FAINT
) -> None:
    """Draw the part of the plane `functional · x = level` inside a box.

    Args:
        ax: the axes.
        functional: the functional, shape (3,).
        level: its value on the plane.
        box: lower and upper corner, shape (2, 3).
        colour: colour of the plane.
    """
    corners = plane_in_box(functional, level, box)
    if len(corners) > 2:
        _facets(ax, [corners], colour)


def plane_in_box(
    functional: Float[np.ndarray, " 3"], level: float, box: Box
) -> Float[np.ndarray, "m 3"]:
    """The corners, in order, of the polygon in which a plane meets a box.

    Args:
        functional: the normal of the plane `functional · x = level`, shape (3,).
        level: the value of the functional on the plane.
        box: lower and upper corner, shape (2, 3).

    >>> unit = np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    >>> len(plane_in_box(np.array([1.0, 1.0, 1.0]), 1.5, unit))
    6
    """
    at = np.array(np.meshgrid([0, 1], [0, 1], [0, 1], indexing="ij")).reshape(3, 8).T
    points = []
    for a in at:
        for axis in np.flatnonzero(a == 0):
            start, end = (
                box[corner, np.arange(3)] for corner in (a, a + np.eye(3, dtype=int)[axis])
            )
            before, after = start @ functional - level, end @ functional - level
            if before * after <= 0 and before != after:
                points.append(start + before / (before - after) * (end - start))
    if len(points) < 3:
        return np.zeros((0, 3))
    found = np.array(points)
    unit = (found - box[0]) / (box[1] - box[0])
    flat = np.linalg.svd(unit - unit.mean(axis=0))[2][:2]
    around = (unit - unit.mean(axis=0)) @ flat.T
    return found[np.argsort(np.arctan2(around[:, 1], around[:, 0]))]


def draw_line(
    ax: Axes3D,
    point: Float[np.ndarray, " 3"],
    direction: Float[np.ndarray, " 3"],
    box: Box,
    colour: str = FAINT,
) -> None:
    """Draw the part of the line `point + s · direction` inside a box.

    Args:
        ax: the axes.
        point: a point of the line, shape (3,).
        direction: its direction, shape (3,).
        box: lower and upper corner, shape (2, 3).
        colour: colour of the line.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.sort((box - point) / direction, axis=0)
    free = direction == 0
    low, high = np.where(free, -np.inf, ends[0]).max(), np.where(free, np.inf, ends[1]).min()
    if low < high:
        segment = point + np.array([low, high])[:, None] * direction
        ax.add_collection3d(Line3DCollection([segment], colors=colour, linewidths=1.2))


def draw_prism(
    ax: Axes3D, polygon: Float[np.ndarray, "m 2"], box: Box, colour: str = PALETTE[1]
) -> None:
    """Draw the prism over a convex polygon in the first two coordinates.

    Args:
        ax: the axes.
        polygon: corners of the polygon, in any order, shape (m, 2).
        box: lower and upper corner, shape (2, 3); the prism has its height.
        colour: colour of the prism.
    """
    around = polygon[ConvexHull(polygon).vertices]
    levels = box[:, 2]
    floors = [np.column_stack([around, np.full(len(around), z)]) for z in levels]
    sides = []
    for i in range(len(around)):
        j = (i + 1) % len(around)
        sides.append(np.array([floors[0][i], floors[0][j], floors[1][j], floors[1][i]]))
    _facets(ax, sides, colour)


def _facets(ax: Axes3D, polygons: list[Any], colour: str) -> None:
    facets = Poly3DCollection(polygons, facecolors=colour, alpha=0.13, edgecolors="none")
    ax.add_collection3d(facets)
    outlines = [np.vstack([polygon, polygon[:1]]) for polygon in polygons]
    ax.add_collection3d(Line3DCollection(outlines, colors=colour, linewidths=0.7, alpha=0.7))


def draw_level(
    ax: Axes, functional: Float[np.ndarray, " 2"], level: float, colour: str = FAINT
) -> None:
    """Draw the line `functional · x = level`.

    Args:
        ax: the axes.
        functional: the functional, shape (2,).
        level: its value on the line.
        colour: colour of the line.
    """
    foot = functional * level / (functional @ functional)
    along = np.array([-functional[1], functional[0]])
    ax.axline(foot, foot + along, color=colour, lw=1.0, ls=(0, (5, 3)), zorder=0.5)


def draw_direction(
    ax: Axes, direction: Float[np.ndarray, " 2"], length: float, colour: str = PALETTE[4]
) -> None:
    """Draw an arrow from the origin.

    Args:
        ax: the axes.
        direction: where it points, shape (2,), of any length.
        length: length of the arrow.
        colour: colour of the arrow.
    """
    across, up = length * direction / np.linalg.norm(direction)
    style = {"arrowstyle": "-|>", "color": colour, "lw": 2.0, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", xy=(across, up), xytext=(0, 0), arrowprops=style, zorder=3)
