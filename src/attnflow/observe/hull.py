"""The convex hull of the tokens, in the affine span that they have."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import scipy
from jaxtyping import ArrayLike, Float, Int, Real

from attnflow.checks import require_finite, require_positive, require_state
from attnflow.errors import InputError, first_line

MAX_HULL_DIM = 8
"""The number of facets explodes with the dimension: Qhull is for few."""

ROUNDING = 100 * np.finfo(float).eps
"""Tokens that differ by less, in parts of their size, are equal."""


@dataclass(frozen=True)
class Span:
    """The affine subspace `origin + c · axes` that a cloud of tokens has up to `tol`."""

    origin: Float[np.ndarray, " d"]
    axes: Float[np.ndarray, "r d"]
    extents: Float[np.ndarray, " r"]
    tol: float

    def coordinates(self, y: Float[np.ndarray, "k d"]) -> Float[np.ndarray, "k r"]:
        """The coordinates c of the points nearest to y."""
        return (y - self.origin) @ self.axes.T

    def distance(self, y: Float[np.ndarray, "k d"]) -> Float[np.ndarray, " k"]:
        """How far y is from the subspace."""
        return np.linalg.norm(y - self.origin - self.coordinates(y) @ self.axes, axis=1)


@dataclass(frozen=True)
class Hull:
    """The convex hull K of a configuration.

    Attributes:
        vertices: the indices of the tokens that are extreme points, shape (m,).
        points: those tokens, shape (m, d).
        dimension: the dimension r of the affine span.
        volume: the length, area or volume in that span, 0 for a single point.
        facets: simplices, as indices into `vertices`: pairs in the plane, triangles in space, with
            flat facets cut into several.
        span: the affine span of the tokens.
        normals: the outer normal of each facet in coordinates of the span, shape (f, r).
        offsets: the b of each facet, shape (f,): the hull is where `normals @ c + offsets ≤ 0`.
    """

    vertices: Int[np.ndarray, " m"]
    points: Float[np.ndarray, "m d"]
    dimension: int
    volume: float
    facets: tuple[tuple[int, ...], ...]
    span: Span = field(repr=False)
    normals: Float[np.ndarray, "f r"] = field(repr=False)
    offsets: Float[np.ndarray, " f"] = field(repr=False)

    def depth(self, y: Real[ArrayLike, "k d"]) -> Float[np.ndarray, " k"]:
        """How far each row y is inside: its distance to the boundary relative to the affine span.

        Outside it is negative, the largest violation: minus the distance to the plane of a facet,
        or to the affine span, whichever is more.
        """
        y = self._points(y)
        off, c = self.span.distance(y), self.span.coordinates(y)
        flat = (off <= self.span.tol) & (self.dimension > 0)
        depth = np.where(flat, np.inf, -off)
        for normal, offset in zip(self.normals, self.offsets, strict=True):
            depth = np.minimum(depth, -(c @ normal + offset))
        return depth

    def distance(self, y: Real[ArrayLike, "k d"]) -> Float[np.ndarray, " k"]:
        """How far each row y is from the nearest vertex."""
        return scipy.spatial.distance.cdist(self._points(y), self.points).min(axis=1)

    def _points(self, y: ArrayLike) -> np.ndarray:
        y = np.asarray(y, dtype=float)
        if y.ndim != 2 or y.shape[1] != self.points.shape[1]:
            raise InputError(
                f"y must have shape (k, {self.points.shape[1]}), one row for each point, but its "
                f"shape is {y.shape}."
            )
        return y


class HullHistory(NamedTuple):
    """The hull along a trajectory: its volume and its number of vertices at each time."""

    volumes: Float[np.ndarray, " T"]
    counts: Int[np.ndarray, " T"]


def hull(x: Real[ArrayLike, "n d"], tol: float | int = 1e-9) -> Hull:
    """The convex hull of the tokens, which T3.1 is about, by Qhull.

    `tol`, in parts of the size of the cloud, says what is flat and what is equal: tokens that lie
    in an affine subspace up to tol have their hull there, tokens in a face up to tol are no
    vertices, and of tokens within tol of each other only the first counts. The span must have at
    most 8 dimensions. Runs on the host: its result
    has no fixed shape.

    >>> found = hull(np.array([[0, 0], [1, 1], [4, 0], [0, 4], [4, 0]]))
    >>> found.vertices.tolist(), round(found.volume, 12)
    ([0, 2, 3], 8.0)
    >>> print(found.depth(np.array([[1, 1], [1, 5]])).round(3))
    [ 1.    -1.414]
    """
    require_state(x)
    require_finite(x, "x")
    require_positive(tol, "tol")
    x = np.asarray(x, dtype=float)
    span = _span(x, tol)
    if len(span.axes) > MAX_HULL_DIM:
        raise InputError(
            f"x spans {len(span.axes)} dimensions, but a hull has too many facets above "
            f"{MAX_HULL_DIM}: project the tokens first, for example to their first coordinates."
        )
    first = _distinct(x, span.tol)
    c = span.coordinates(x[first]) / span.extents
    if len(span.axes) < 2:
        return _segment(x, first, c, span)
    rounding = ROUNDING * np.abs(x).max() / span.extents.min()
    corners, found = _corners(c, max(tol, rounding))
    kept = first[corners]
    normals = found.equations[:, :-1] / span.extents
    lengths = np.linalg.norm(normals, axis=1)
    return Hull(
        vertices=kept,
        points=x[kept],
        dimension=len(span.axes),
        volume=float(found.volume * np.prod(span.extents)),
        facets=tuple(map(tuple, found.simplices.tolist())),
        span=span,
        normals=normals / lengths[:, None],
        offsets=found.equations[:, -1] / lengths,
    )


def hull_history(xs: Real[ArrayLike, "T n d"], tol: float | int = 1e-9) -> HullHistory:
    """Volume and number of vertices of the hull at each time.

    Volumes are those of the largest dimension that the hull has at any time: where it is flatter
    they are 0. Runs on the host, as `hull` does.

    >>> shrinking = np.array([2.0, 1.0])[:, None, None] * np.eye(3, 2)
    >>> hull_history(shrinking).volumes.round(12).tolist()
    [2.0, 0.5]
    """
    hulls = [hull(x, tol) for x in np.asarray(xs)]
    dimension = max(found.dimension for found in hulls)
    volumes = [found.volume if found.dimension == dimension else 0.0 for found in hulls]
    return HullHistory(np.array(volumes), np.array([len(found.vertices) for found in hulls]))


def _span(x: Float[np.ndarray, "n d"], tol: float | int) -> Span:
    """The smallest principal subspace that every token is near."""
    origin = x.mean(axis=0)
    away = x - origin
    close = max(tol * np.linalg.norm(away, axis=1).max(), ROUNDING * np.abs(x).max())
    axes = np.linalg.svd(away, full_matrices=False)[2]
    c = away @ axes.T
    outside = np.sqrt(np.cumsum(c[:, ::-1] ** 2, axis=1)[:, ::-1]).max(axis=0)
    r = int((outside > close).sum())
    return Span(origin, axes[:r], np.abs(c[:, :r]).max(axis=0), float(close))


def _distinct(x: Float[np.ndarray, "n d"], tol: float) -> Int[np.ndarray, " k"]:
    """The tokens that are not within `tol` of an earlier one that counts."""
    tree = scipy.spatial.cKDTree(x)
    counts = np.ones(len(x), bool)
    crowded = tree.query_ball_point(x, tol, return_length=True) > 1
    for i in np.flatnonzero(crowded):
        if counts[i]:
            counts[tree.query_ball_point(x[i], tol)] = False
            counts[i] = True
    return np.flatnonzero(counts)


def _corners(
    c: Float[np.ndarray, "k r"], tol: float | int
) -> tuple[Int[np.ndarray, " m"], scipy.spatial.ConvexHull]:
    """The points that every other one is within the hull of, up to tol, and their hull.

    Qhull takes as flat what is within its bound E of rounding errors, but merges facets so freely
    that it may lose a corner: whatever is then left outside is added again.
    """
    corners = np.sort(_qhull(c, f"E{tol:.17g}").vertices)
    while True:
        found = _qhull(c[corners])
        if len(found.vertices) < len(corners):
            corners = corners[np.sort(found.vertices)]
            continue
        lost = np.setdiff1d(_farthest(c, found, 2 * tol), corners)
        if not lost.size:
            return corners, found
        corners = np.union1d(corners, lost)


def _qhull(c: Float[np.ndarray, "k r"], precision: str = "") -> scipy.spatial.ConvexHull:
    options = "Qt Qx" if c.shape[1] > 4 else "Qt"
    try:
        return scipy.spatial.ConvexHull(c, qhull_options=f"{options} {precision}".strip())
    except scipy.spatial.QhullError as error:
        if precision:
            return _qhull(c)
        raise InputError(
            f"x has no clear convex hull ({first_line(error)}): take a larger tol."
        ) from error


def _farthest(
    c: Float[np.ndarray, "k r"], found: scipy.spatial.ConvexHull, least: float | int
) -> Int[np.ndarray, " p"]:
    """The points that are farthest beyond a facet, by more than `least`."""
    far = []
    for equation in found.equations:
        beyond = c @ equation[:-1] + equation[-1]
        far += [int(beyond.argmax())] if beyond.max() > least else []
    return np.unique(np.array(far, int))


def _segment(
    x: Float[np.ndarray, "n d"], first: Int[np.ndarray, " k"], c: np.ndarray, span: Span
) -> Hull:
    """The hull of tokens on a line, or all in one place."""
    ends = sorted({int(c.argmin()), int(c.argmax())}) if len(span.axes) else [0]
    kept = first[ends]
    reach = (c[ends] * span.extents).ravel()
    signs = np.where(reach == reach.max(initial=-np.inf), 1.0, -1.0)
    return Hull(
        vertices=kept,
        points=x[kept],
        dimension=len(span.axes),
        volume=float(np.ptp(reach)) if len(span.axes) else 0.0,
        facets=((0,), (1,)) if len(span.axes) else (),
        span=span,
        normals=signs[:, None],
        offsets=-signs * reach,
    )
