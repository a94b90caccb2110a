"""What the tokens of a rescaled run settled on: a polytope, hyperplanes, or both.

For every row of [E] Table 1 the limit is `(∂K ∪ {0}) × G`: F is the invariant subspace of the
leading eigenvalue of V, G that of the others, and K the convex hull of the parts of the tokens in
F. One leading direction gives the ends of an interval and 0, that is at most three hyperplanes;
F = R^d gives a polytope.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from attnflow.errors import InputError
from attnflow.observe import clusters, hull
from attnflow.retired import RenamedAttribute
from attnflow.simulation import Adaptive, Trajectory
from attnflow.weights import invariant_subspace

Kind = Literal["polytope", "hyperplanes", "polytope x subspace", "origin", "unsettled"]

SAME_POINT_TOL = 1e-3
"""Tokens closer than this part of the size of K are at the same point of it."""


def late(max_steps: int = 100_000) -> Adaptive:
    """The method for late times, at which attention is nearly a hard maximum.

    The limit does not need more digits. A run that needs far more steps than others has met a tie,
    and would take very long.
    """
    return Adaptive(rtol=1e-6, atol=1e-9, max_steps=max_steps)


def leading_coordinates(V: Any, d: int, tol: float = 1e-9) -> Float[np.ndarray, "m d"]:
    """Coordinates in the leading invariant subspace F of V, along the other one.

    Args:
        V: value matrix, d × d; a number is a multiple of the identity, None the identity.
        d: the dimension of the tokens.
        tol: eigenvalues whose real parts differ by less, in parts of the spectral radius, count as
            equal.

    >>> print(leading_coordinates(np.diag([1.0, 0.5]), 2))
    [[1. 0.]]
    """
    if V is None or np.ndim(V) == 0:
        return np.eye(d)
    V = np.asarray(V, dtype=float)
    eigenvalues = np.linalg.eigvals(V)
    cut = eigenvalues.real.max() - tol * np.abs(eigenvalues).max()
    return invariant_subspace(V, lambda value: value.real >= cut)[1]


def size(ys: Float[np.ndarray, "T n m"]) -> float:
    """The largest |y| of the last state, or, where it fell below 1e-3 of the first, that.

    Tokens that all go to 0 are at one point: their distances are no longer compared with the tiny
    polytope that they still span.

    >>> size(np.array([[[2.0]], [[1.0]]])), size(np.array([[[2.0]], [[1e-9]]]))
    (1.0, 0.002)
    """
    first, last = (float(np.linalg.norm(y, axis=-1).max()) for y in (ys[0], ys[-1]))
    return max(last, SAME_POINT_TOL * first)


def boundary_distance(ys: Float[np.ndarray, "T n m"]) -> Float[np.ndarray, " n"]:
    """The distance of each point of the last state to `∂K ∪ {0}`, K their hull, in units of `size`.

    >>> print(boundary_distance(np.array([[[-1.0], [2.0], [0.5], [0.0]]])))
    [0.   0.   0.25 0.  ]
    """
    y = np.asarray(ys[-1], dtype=float)
    depth = np.abs(hull(y, tol=SAME_POINT_TOL).depth(y))
    return np.minimum(depth, np.linalg.norm(y, axis=-1)) / size(ys)


def moved(ys: Float[np.ndarray, "T n m"]) -> float:
    """The longest way of a token between the last two states, in units of `size`."""
    return float(np.linalg.norm(ys[-1] - ys[-2], axis=-1).max()) / size(ys)


def still_moving(ys: Float[np.ndarray, "T n m"], tol: float) -> str | None:
    """Why a run is unresolved: a token is off the limit set, and not at rest."""
    if boundary_distance(ys).max() > tol and moved(ys) > tol:
        return f"a token moved by {moved(ys):.1g} of K's size between the last two saves"
    return None


def growing_coordinates(V: Any, d: int) -> Float[np.ndarray, "m d"]:
    """Coordinates along the eigenvalues of V with positive real part.

    >>> print(growing_coordinates(np.diag([1.0, -0.5]), 2))
    [[1. 0.]]
    """
    V = np.asarray(1.0 if V is None else V)
    return invariant_subspace(V if V.ndim else V * np.eye(d), lambda value: value.real > 0)[1]


def growing_points(V: Any, zs: Float[np.ndarray, "T n d"] | Trajectory) -> tuple[int, float]:
    """The number of points at which the growing coordinates end, and how far they `moved`.

    Growing are those along eigenvalues of V with positive real part. Points within 1e-2 of the
    `size` are one. Where nothing grows there is one point, and the subspace is all of R^d. Pass the
    trajectory rather than its states, which may have lost these coordinates.

    >>> growing_points(np.diag([1.0, -1.0]), np.array([[[1.0, 0.0], [1.0, 5.0], [-1.0, 0.0]]] * 2))
    (2, 0.0)
    """
    d = (zs.final if isinstance(zs, Trajectory) else zs).shape[-1]
    coordinates = growing_coordinates(V, d)
    if not len(coordinates):
        return 1, 0.0
    along = zs.along(coordinates) if isinstance(zs, Trajectory) else zs @ coordinates.T
    ys = np.asarray(along)
    return clusters(ys[-1], 1e-2 * size(ys)).count, moved(ys)


@dataclass(frozen=True)
class MeasuredGeometry:
    """What formed, with the numbers that say so.

    Attributes:
        kind: the shape, or "unsettled".
        residual: the largest distance of a token to `(∂K ∪ {0}) × G` in units of K's size (for the
            origin: of the start's).
        dimension: the dimension of F.
        points: the number of distinct points in F.
        tol: the residual up to which a run counts as settled.
    """

    kind: Kind
    residual: float
    dimension: int
    points: int
    tol: float

    tolerance = RenamedAttribute("tol")


def measured_geometry(trajectory: Trajectory, tol: float | int = 1e-2) -> MeasuredGeometry:
    """The limit geometry that an unbatched run on R^d has reached to within `tol`.

    Eigenvalues of V that the run's time T cannot tell apart (real parts closer than 1/T) count as
    equal, so V = I + 1e-9 N is seen as V = I. Where no eigenvalue has a positive real part the
    tokens x themselves are looked at: they went to the origin if they shrank to `tol` of their
    first size (like t^{−1/2}, so this needs a long run).

    >>> import attnflow as af
    >>> run = af.simulate(af.RescaledAttention(), af.initial.cube(n=12, d=2, key=0), [0.0, 15.0])
    >>> measured_geometry(run).kind
    'polytope'
    """
    system = trajectory.known_system
    if system is None or system.pure_attention is None or trajectory.final.ndim != 2:
        raise InputError(
            "trajectory must be a single run of RescaledAttention or PureAttention: the rows of "
            f"Table 1 are about attention on R^d, not about {trajectory.system}."
        )
    V = _value(system)
    d = trajectory.final.shape[-1]
    span = float(trajectory.ts[-1] - trajectory.ts[0])
    if not span:
        raise InputError("trajectory must have two save times at least: it never left its start.")
    growth, radius = _growth(V)
    if growth <= 0:
        return _towards_origin(trajectory, d, tol)
    if system.pure_attention == "tokens":
        raise InputError(
            "V has an eigenvalue with positive real part: tokens of PureAttention run away, so "
            "look at the limit through RescaledAttention."
        )
    ys = np.asarray(trajectory.along(leading_coordinates(V, d, 1 / (span * radius))))
    residual = float(boundary_distance(ys).max())
    m = ys.shape[-1]
    points = clusters(ys[-1], SAME_POINT_TOL * size(ys)).count
    kind: Kind = "unsettled"
    if residual <= tol:
        kind = "hyperplanes" if m == 1 < d else "polytope" if m == d else "polytope x subspace"
    return MeasuredGeometry(kind, residual, m, points, float(tol))


def _value(system: Any) -> Any:
    if system.heads.count is not None or callable(system.heads.V):
        raise InputError("trajectory must be of one head with a constant V.")
    return system.heads.V


def _growth(V: Any) -> tuple[float, float]:
    """The largest real part of V's eigenvalues, and its spectral radius."""
    eigenvalues = np.linalg.eigvals(np.atleast_2d(1.0 if V is None else np.asarray(V)))
    return float(eigenvalues.real.max()), float(np.abs(eigenvalues).max())


def _towards_origin(trajectory: Trajectory, d: int, tol: float | int) -> MeasuredGeometry:
    system, ts = trajectory.known_system, np.asarray(trajectory.ts)
    first, last = trajectory.xs[0], trajectory.xs[-1]
    if system.pure_attention == "rescaled":
        first = system.to_x(ts[0], first)
        inner = trajectory.inner
        last = system.to_x(ts[-1], last) if inner is None else system.to_x_inside(ts[-1], inner[-1])
    sizes = [float(np.linalg.norm(np.asarray(x), axis=-1).max()) for x in (first, last)]
    residual = sizes[1] / sizes[0] if sizes[0] > 0 else 0.0
    kind: Kind = "origin" if residual <= tol else "unsettled"
    return MeasuredGeometry(kind, residual, d, 1, float(tol))
