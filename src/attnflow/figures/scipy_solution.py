"""A second solution: the papers' equations in plain NumPy, solved by SciPy between saves.

A picture may look right although its run is wrong: tokens that do not move have clusters as well.
So a recipe takes some saves of its run, and SciPy solves the equation, as the paper writes it, from
each save to the next. Nothing here comes from the library: β, Q, K, V and masses are those that
the recipe means, not those that its system reports.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import ArrayLike, Float, Inexact, Real
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from attnflow.theory.inputs import Numbers
from attnflow.verdicts import Quantity

Field = Callable[[float, np.ndarray], np.ndarray]
"""`(t, x)` to the velocity; x may have leading axes for replicates."""

RTOL, ATOL = 1e-9, 1e-11
"""Tolerances for SciPy, much smaller than those of the figures' runs."""

DEFAULT_TOL = 1e-4
"""How far off a run may be, relative to the distance travelled: more than its method's error."""

COARSE_TOL = 1e-2
"""The same for runs with large fixed steps, which are less accurate."""


class Head(NamedTuple):
    """Q, K and V of a head: None (identity), a number, or matrices of shape (..., k, d)."""

    Q: Any = None
    K: Any = None
    V: Any = None


def weights(
    x: Float[np.ndarray, "*b n d"],
    head: Head = Head(),  # noqa: B008
    beta: float = 1.0,
    masses: Any = None,
    normalised: bool = True,
) -> Float[np.ndarray, "*b n n"]:
    """`m_j e^{β <Q x_i, K x_j>}` divided by its sum over j, or by the total mass (USA).

    Args:
        x: tokens, shape (..., n, d).
        head: Q, K and V; the identity by default.
        beta: inverse temperature β.
        masses: the mass of each token, shape (..., n); 1 by default.
        normalised: True for SA, False for USA.

    >>> weights(np.eye(2), beta=0.0, masses=np.array([1.0, 3.0])).tolist()
    [[0.25, 0.75], [0.25, 0.75]]
    """
    scores = beta * _times(head.Q, x) @ np.swapaxes(_times(head.K, x), -1, -2)
    m = np.ones(x.shape[-2]) if masses is None else np.asarray(masses)
    if not normalised:
        return np.exp(scores) * m[..., None, :] / m.sum(axis=-1)[..., None, None]
    A = np.exp(scores - scores.max(axis=-1, keepdims=True)) * m[..., None, :]
    return A / A.sum(axis=-1, keepdims=True)


def pure(*heads: Head, beta: float = 1.0, masses: Any = None) -> Field:
    """[E](1): `x_i' = Σ_h Σ_j A^h_ij V_h x_j`.

    Args:
        *heads: the heads; one with Q = K = V = I by default.
        beta: inverse temperature β.
        masses: the mass of each token, shape (..., n); 1 by default.
    """
    return lambda t, x: _drift(x, heads, beta, masses)


def rescaled(head: Head = Head(), beta: float = 1.0, masses: Any = None) -> Field:  # noqa: B008
    """[E](4): `z_i' = Σ_j A_ij(e^{tV} z) V (z_j − z_i)`.

    Args:
        head: Q, K and V; the identity by default.
        beta: inverse temperature β.
        masses: the mass of each token, shape (..., n); 1 by default.
    """

    def field(t: float, z: np.ndarray) -> np.ndarray:
        V = 1.0 if head.V is None else head.V
        grown = np.exp(t * V) * z if np.ndim(V) == 0 else z @ expm(t * np.asarray(V)).T
        means = weights(grown, head, beta, masses) @ z
        return _times(head.V, means - z)

    return field


def sphere(*heads: Head, beta: float = 1.0, masses: Any = None, normalised: bool = True) -> Field:
    """[P](SA), (USA): `pure` projected to the tangent space of the sphere at each token.

    Args:
        *heads: the heads; one with Q = K = V = I by default.
        beta: inverse temperature β.
        masses: the mass of each token, shape (..., n); 1 by default.
        normalised: True for SA, False for USA.
    """

    def field(t: float, x: np.ndarray) -> np.ndarray:
        v = _drift(x, heads, beta, masses, normalised)
        return v - np.sum(v * x, axis=-1, keepdims=True) * x

    return field


def solution(
    field: Field, x0: Float[np.ndarray, "*b n d"], ts: Real[ArrayLike, " T"] | Numbers
) -> Float[np.ndarray, "T *b n d"]:
    """SciPy's solution at given times, shape (T, ..., n, d); NaN if SciPy fails.

    Args:
        field: the vector field.
        x0: the start, shape (..., n, d).
        ts: times, shape (T,); the first one is the start.

    >>> x = solution(pure(), np.array([[1.0], [1.0]]), [0.0, 1.0])
    >>> x[-1].round(6).tolist()
    [[2.718282], [2.718282]]
    """
    x0, times = np.asarray(x0, float), np.asarray(ts, float)
    found = solve_ivp(
        lambda t, y: field(t, y.reshape(x0.shape)).ravel(),
        (times[0], times[-1]),
        x0.ravel(),
        method="DOP853",
        t_eval=times,
        rtol=RTOL,
        atol=ATOL * max(1.0, float(np.abs(x0).max())),
    )
    if not found.success:
        return np.full((len(times), *x0.shape), np.nan)
    return found.y.T.reshape(len(times), *x0.shape)


def compare_with_scipy(
    equation: str,
    field: Field,
    ts: Real[ArrayLike, " T"] | Numbers,
    xs: Float[ArrayLike, "*b T n d"],
    *,
    until: float = np.inf,
    most: int = 8,
    along: Inexact[np.ndarray, "m d"] | None = None,
    bound: float = DEFAULT_TOL,
) -> Quantity:
    """How far a run is from SciPy's solution, save to save, relative to the distance travelled.

    Args:
        equation: the name of the equation.
        field: its vector field.
        ts: save times of the run, shape (T,).
        xs: the tokens at these times, shape (..., T, n, d).
        until: compare only up to this time.
        most: solve at most this many intervals, evenly spaced.
        along: coordinates φ_j*, shape (m, d), each compared in its own units: if V decays, some
            of them grow without bound. By default tokens are compared by their distance.
        bound: the largest deviation that is allowed.
    """
    times = np.asarray(ts, float)
    states = np.moveaxis(np.asarray(xs, float), -3, 0)
    last = int(np.searchsorted(times, until, side="right")) - 1
    chosen = np.unique(np.linspace(0, max(last, 1) - 1, most).round().astype(int))
    off, way = [], []
    for k in chosen:
        there = solution(field, states[k], times[k : k + 2])[-1]
        off.append(_sizes(states[k + 1] - there, along))
        way.append(_sizes(there - states[k], along))
    share = np.max(off, axis=0) / np.max(way, axis=0)
    return Quantity(f"off SciPy's solution of {equation}, over the way", share.max(), "≤", bound)


def _drift(
    x: np.ndarray, heads: tuple[Head, ...], beta: float, masses: Any, normalised: bool = True
) -> np.ndarray:
    each = heads or (Head(),)
    return sum(
        (_times(h.V, weights(x, h, beta, masses, normalised) @ x) for h in each),
        np.zeros_like(x),
    )


def _times(W: Any, x: np.ndarray) -> np.ndarray:
    """`W x` for each row."""
    if W is None:
        return x
    W = np.asarray(W, float)
    return W * x if W.ndim == 0 else x @ np.swapaxes(W, -1, -2)


def _sizes(gap: np.ndarray, along: np.ndarray | None) -> np.ndarray:
    """The largest distance; or, with `along`, the largest difference in each coordinate."""
    if along is None:
        return np.linalg.norm(gap, axis=-1).max(keepdims=True).ravel()[:1]
    return np.abs(gap @ along.T).reshape(-1, len(along)).max(axis=0)
