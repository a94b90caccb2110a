"""The equations as the papers write them, in plain NumPy: does a run solve what it should?

Nothing here goes through the library's attention, spaces or solvers. Weights, β, mask and masses
are read from the system, the formulas are those of [E](1)–(4), [E] Remark 4, [P](2.3), (SA) and
(USA), with heads, masks and masses, and SciPy solves them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy
from jaxtyping import Float

from attnflow.errors import InputError
from attnflow.systems import SA, USA, PureAttention, RescaledAttention

Velocity = Callable[[Float[np.ndarray, "n d"]], Float[np.ndarray, "n d"]]


class Written(NamedTuple):
    """How a system is written: normalised or not, on the sphere or not, rescaled or not."""

    normalised: bool = True
    sphere: bool = False
    rescaled: bool = False


WRITTEN: dict[type, Written] = {
    SA: Written(sphere=True),
    USA: Written(normalised=False, sphere=True),
    PureAttention: Written(),
    RescaledAttention: Written(rescaled=True),
}
"""The systems whose equation is written here."""


def is_written(system: Any) -> bool:
    """Whether the equation of a system is written here, and its weights are constant."""
    return any(kind in WRITTEN for kind in type(system).__mro__) and not any(
        callable(getattr(system.heads, name)) for name in "QKV"
    )


def written(system: Any) -> Written:
    """How the equation of a system is written, or an error."""
    if not is_written(system):
        known = ", ".join(kind.__name__ for kind in WRITTEN)
        raise InputError(
            f"system must be one of {known}, with constant weights, to be compared, but it is "
            f"{system!r}."
        )
    return next(WRITTEN[kind] for kind in type(system).__mro__ if kind in WRITTEN)


def weights_of(system: Any, d: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """The matrices Q, K, V of each head."""
    given = [getattr(system.heads, name) for name in "QKV"]
    full = [_matrices(W, d) for W in given]
    heads = max(len(W) for W in full)
    Q, K, V = (W if len(W) == heads else np.repeat(W, heads, axis=0) for W in full)
    return list(zip(Q, K, V, strict=True))


def _matrices(W: Any, d: int) -> np.ndarray:
    """A weight as a stack of matrices, one for each head that it tells apart."""
    W = np.asarray(1.0 if W is None else W, float)
    if W.ndim == 0:
        W = W * np.eye(d)
    return W if W.ndim == 3 else W[None]


def plain_weights(
    x: Float[np.ndarray, "n d"],
    Q: np.ndarray,
    K: np.ndarray,
    beta: float,
    *,
    normalised: bool = True,
    allowed: np.ndarray | None = None,
    masses: np.ndarray | None = None,
) -> Float[np.ndarray, "n n"]:
    """`A_ij = m_j e^{β <Q x_i, K x_j>} / Z_i`, with the total mass for Z_i if not normalised.

    Args:
        x: tokens, shape (n, d).
        Q: query matrix.
        K: key matrix.
        beta: inverse temperature β.
        normalised: whether rows are divided by their sums.
        allowed: who may attend to whom, shape (n, n), or None for everybody.
        masses: masses of the tokens, shape (n,); by default 1 each.

    >>> print(plain_weights(np.eye(2), np.eye(2), np.eye(2), 0.0))
    [[0.5 0.5]
     [0.5 0.5]]
    """
    scores = beta * np.einsum("ia,ja->ij", x @ Q.T, x @ K.T)
    m = np.ones(len(x)) if masses is None else np.asarray(masses, float)
    if allowed is not None:
        scores = np.where(allowed, scores, -np.inf)
    if not normalised:
        return m * np.exp(scores) / m.sum()
    A = m * np.exp(scores - scores.max(axis=1, keepdims=True))
    return A / A.sum(axis=1, keepdims=True)


def allowed_pairs(system: Any, n: int) -> np.ndarray | None:
    """Who attends to whom: the causal triangle, or the matrix that was given."""
    mask = getattr(system, "mask", None)
    if mask is None:
        return None
    given = getattr(mask, "allowed", None)
    return np.tril(np.ones((n, n), bool)) if given is None else np.asarray(given)


def plain_drift(system: Any, n: int, d: int, masses: np.ndarray | None = None) -> Velocity:
    """`Σ_h Σ_j A^h_ij V_h x_j`."""
    how = written(system)
    heads, beta = weights_of(system, d), float(system.beta)
    allowed = allowed_pairs(system, n)

    def drift(x: np.ndarray) -> np.ndarray:
        total = np.zeros_like(x)
        for Q, K, V in heads:
            A = plain_weights(
                x, Q, K, beta, normalised=how.normalised, allowed=allowed, masses=masses
            )
            total += A @ (x @ V.T)
        return total

    return drift


def plain_velocity(system: Any, n: int, d: int, masses: np.ndarray | None = None) -> Velocity:
    """The drift, without its part along x_i on the sphere; of x = e^{tV} z where it is rescaled."""
    drift = plain_drift(system, n, d, masses)
    if not written(system).sphere:
        return drift

    def velocity(x: np.ndarray) -> np.ndarray:
        v = drift(x)
        along = np.sum(x * v, axis=1) / np.sum(x * x, axis=1)
        return v - along[:, None] * x

    return velocity


def plain_run(
    system: Any,
    x: Float[np.ndarray, "n d"],
    span: tuple[float, float],
    *,
    masses: np.ndarray | None = None,
    dt: float | None = None,
) -> Float[np.ndarray, "n d"]:
    """The state at the end of a time span, by SciPy's DOP853; or by layers of step dt.

    Rescaled states are taken to x = e^{tV} z (to `R^k z` for layers), run there, and taken back.

    Args:
        system: the system, whose weights are read.
        x: the tokens at the start, shape (n, d).
        span: the times of start and end.
        masses: masses of the tokens, shape (n,); by default 1 each.
        dt: the step of a discrete Transformer; None for a flow.
    """
    n, d = x.shape
    begin, end = span
    there, back = np.eye(d), np.eye(d)
    if written(system).rescaled:
        total = sum(V for _, _, V in weights_of(system, d))
        if dt is None:
            there, back = scipy.linalg.expm(begin * total), scipy.linalg.expm(-end * total)
        else:
            R = np.eye(d) + dt * total
            there, back = (
                np.linalg.matrix_power(R, k) for k in (round(begin / dt), -round(end / dt))
            )
    moved = x @ there.T
    if dt is None:
        velocity = plain_velocity(system, n, d, masses)
        moved = _integrated(velocity, moved, end - begin)
    else:
        moved = _layered(system, moved, round((end - begin) / dt), dt, masses)
    return moved @ back.T


def _integrated(velocity: Velocity, x: np.ndarray, time: float) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):  # in first steps that are then rejected
        solution = scipy.integrate.solve_ivp(
            lambda t, y: velocity(y.reshape(x.shape)).ravel(),
            (0.0, time),
            x.ravel(),
            method="DOP853",
            rtol=1e-9,
            atol=1e-11,
        )
    return solution.y[:, -1].reshape(x.shape)


def _layered(system: Any, x: np.ndarray, layers: int, dt: float, masses: Any) -> np.ndarray:
    n, d = x.shape
    drift = plain_drift(system, n, d, masses)
    for _ in range(layers):
        x = x + dt * drift(x)
        if written(system).sphere:
            x = x / np.linalg.norm(x, axis=1, keepdims=True)
    return x


def off_the_equation(
    system: Any,
    span: tuple[float, float],
    before: Float[np.ndarray, "n d"],
    after: Float[np.ndarray, "n d"],
    *,
    masses: np.ndarray | None = None,
    dt: float | None = None,
) -> float:
    """How far a run is from the solution that begins at `before`, over the longest way of a token.

    Args:
        system: the system, whose weights are read.
        span: the times of `before` and `after`.
        before: the state at the start, shape (n, d).
        after: the state at the end, shape (n, d).
        masses: masses of the tokens, shape (n,); by default 1 each.
        dt: the step of a discrete Transformer; None for a flow.

    >>> x = np.array([[1.0, 0.0], [0.6, 0.8]])
    >>> off_the_equation(SA(1.0), (0.0, 1.0), x, x)
    1.0
    """
    expected = plain_run(system, before, span, masses=masses, dt=dt)
    way = np.linalg.norm(expected - before, axis=1).max()
    return float(np.linalg.norm(after - expected, axis=1).max() / way)
