"""Attention frozen at its start is a linear equation, and so has a closed form."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from jaxtyping import ArrayLike, Float, Num, Real

from attnflow import observe
from attnflow.checks import require_memory, require_positive
from attnflow.errors import InputError
from attnflow.simulation import Adaptive, Method, simulate
from attnflow.simulation import inputs as simulate_inputs
from attnflow.systems import PureAttention, System

MAX_CONDITION = 1e3
"""Eigenvectors lose as many digits as their condition number has: above this one (three digits)
matrix exponentials are used, which lose none."""

GRID_TIMES = 65
"""Times at which the flow is compared with the closed form, before and after zooming in."""


class MasterEquation:
    """Attention frozen at its start, [S]: `X' = P(X(0)) X Vᵀ`, solved in closed form.

        X(t) = Σ_i e^{λ_i t} v_i ⊗ c_i   for V = I, with P v_i = λ_i v_i and X(0) = Σ_i v_i ⊗ c_i

    P is the attention matrix of a `PureAttention` with constant weights at the tokens x0. Where
    QᵀK is symmetric (and without a mask) P is similar to a symmetric matrix, its eigenvalues are
    real, and all but the leading λ = 1 lie in (−1, 1), in [0, 1) if QᵀK ≥ 0; else they may be
    complex. With V its eigenvalues multiply them: `e^{λ_i μ_k t}`. Several heads, or eigenvectors
    that are nearly dependent (`method` says "expm"), go through matrix exponentials.

    `eigenvalues` are the λ_i, by falling real part. The closed form follows the flow for short
    times only: `departure_time` says for how long.

    Args:
        system: `PureAttention` with constant weights.
        x0: the start, shape (n, d).
        masses: masses of the tokens, shape (n,); by default 1 each.

    >>> import attnflow as af
    >>> master = MasterEquation(af.PureAttention(beta=0.0), np.array([[1.0], [-1.0]]))
    >>> print(master.eigenvalues.round(12) + 0.0, master.tokens([0.0, 5.0])[1].ravel())
    [1. 0.] [ 1. -1.]
    """

    eigenvalues: Num[np.ndarray, " n"]
    method: str

    def __init__(
        self,
        system: PureAttention,
        x0: Real[ArrayLike, "n d"],
        masses: Real[ArrayLike, " n"] | None = None,
    ):
        _check(system)
        x = simulate_inputs.check_start(system, x0)
        if x.ndim != 2:
            raise InputError(f"x0 must be a single start (n, d), but its shape is {x.shape}.")
        m = simulate_inputs.check_masses(masses, x.shape, x.dtype)
        self.system, self.masses = system, masses
        self.x0: Float[np.ndarray, "n d"] = np.asarray(x, dtype=float)
        self.P: Float[np.ndarray, "*heads n n"] = np.asarray(
            observe.attention(system, x, masses=m), dtype=float
        )
        self.V = _values(system, x.shape[-1])
        self.eigenvalues, self.method = np.array([]), "expm"
        if self.P.ndim == 2:
            self._decompose(None if m is None else np.asarray(m, dtype=float))

    def _decompose(self, m: Float[np.ndarray, " n"] | None) -> None:
        weights = _reversible(self.system, self.x0, m)
        if weights is None:
            left, (values, right) = None, np.linalg.eig(self.P)
        else:
            root = np.sqrt(weights)
            values, U = np.linalg.eigh(np.sqrt(self.P * self.P.T))
            right, left = U / root[:, None], U.T * root
        order = np.argsort(-values.real)
        self.eigenvalues, right = values[order], right[:, order]
        self._mu, self._S = np.linalg.eig(self.V)
        if np.linalg.cond(right) * np.linalg.cond(self._S) > MAX_CONDITION:
            return
        self.method = "eigenvectors"
        self._right = right
        left = np.linalg.inv(right) if left is None else left[order]
        self._c = left @ self.x0 @ np.linalg.inv(self._S).T

    def tokens(self, ts: Real[ArrayLike, " T"] | list[float]) -> Float[np.ndarray, "T n d"]:
        """X(t) at the times ts, where x0 is at time 0.

        >>> import attnflow as af
        >>> x0 = np.eye(2)
        >>> MasterEquation(af.PureAttention(), x0).tokens([0.0, 0.1]).shape
        (2, 2, 2)
        """
        times = np.atleast_1d(np.asarray(ts, dtype=float))
        if self.method == "expm":
            return self._by_exponentials(times)
        grown = np.exp(times[:, None, None] * np.outer(self.eigenvalues, self._mu))
        return (self._right @ (grown * self._c) @ self._S.T).real

    def _by_exponentials(self, times: Float[np.ndarray, " T"]) -> Float[np.ndarray, "T n d"]:
        """`e^{tμP}` for each eigenvalue μ of V, or `e^{tM}` with `M = Σ_h P_h ⊗ V_h`, (nd × nd)."""
        n, d = self.x0.shape
        if self.P.ndim == 2 and np.linalg.cond(self._S) <= MAX_CONDITION:
            along = self.x0 @ np.linalg.inv(self._S).T
            grown = np.zeros((len(times), n, d), np.result_type(self._mu, along))
            for mu in np.unique(self._mu):
                same = self._mu == mu
                for k, t in enumerate(times):
                    grown[k][:, same] = scipy.linalg.expm(t * mu * self.P) @ along[:, same]
            return (grown @ self._S.T).real
        require_memory(
            64 * (n * d) ** 2, f"e^{{tM}} with nd = {n * d}", "take fewer tokens or a single head"
        )
        P = self.P.reshape(-1, n, n)
        V = np.broadcast_to(self.V, (len(P), d, d))
        M = sum(np.kron(P_h, V_h) for P_h, V_h in zip(P, V, strict=True))
        return np.array([(scipy.linalg.expm(t * M) @ self.x0.ravel()).reshape(n, d) for t in times])

    def departure_time(
        self,
        tol: float | int = 1e-2,
        *,
        horizon: float | int = 10.0,
        method: Method | None = None,
    ) -> float:
        """The first time at which a token of the flow is `tol` away from the closed form.

        Distances are relative to the largest token at that time, as tokens may grow. `inf` if it
        does not happen up to `horizon`.

        Args:
            tol: the distance, relative to the largest token.
            horizon: how long to follow the flow.
            method: how to run the flow; by default `Adaptive(rtol=1e-10)`.

        >>> import attnflow as af
        >>> master = MasterEquation(af.PureAttention(V=-1.0), af.initial.cube(8, 2, key=0))
        >>> master.departure_time(1e-2) < master.departure_time(1e-1)
        True
        """
        require_positive(tol, "tol")
        require_positive(horizon, "horizon")
        method = Adaptive(rtol=1e-10, atol=1e-12) if method is None else method
        crossing, x, span = 0.0, self.x0, (0.0, float(horizon))
        for _ in range(4):
            ts = np.linspace(*span, GRID_TIMES)
            xs = np.asarray(
                simulate(self.system, x, ts, method=method, masses=self.masses).xs, dtype=float
            )
            away = self._away(ts, xs)
            beyond = np.flatnonzero(away > tol)
            if not beyond.size:
                return np.inf
            i = int(beyond[0])
            if i == 0:
                break
            span, x = (ts[i - 1], ts[i]), xs[i - 1]
            share = (tol - away[i - 1]) / (away[i] - away[i - 1])
            crossing = float(ts[i - 1] + share * (ts[i] - ts[i - 1]))
            if away[i] - away[i - 1] < 0.05 * tol:
                break
        return crossing

    def _away(self, ts: np.ndarray, xs: np.ndarray) -> Float[np.ndarray, " T"]:
        gaps = np.linalg.norm(xs - self.tokens(ts), axis=-1).max(axis=-1)
        return gaps / np.linalg.norm(xs, axis=-1).max(axis=-1)


def _check(system: Any) -> None:
    if not isinstance(system, System) or system.pure_attention != "tokens":
        raise InputError(
            f"system must be a PureAttention, whose equation is linear once attention is frozen, "
            f"not {system!r}: on the sphere the projection is not linear."
        )
    for name in "QKV":
        if callable(getattr(system.heads, name)):  # type: ignore[attr-defined]
            raise InputError(f"{name} must not depend on time in a master equation.")


def _values(system: PureAttention, d: int) -> Float[np.ndarray, "*heads d d"]:
    V = system.heads.V
    if V is None or np.ndim(V) == 0:
        return (1.0 if V is None else float(V)) * np.eye(d)
    return np.asarray(V, dtype=float)


def _reversible(
    system: PureAttention, x: np.ndarray, m: np.ndarray | None
) -> Float[np.ndarray, " n"] | None:
    """Weights w with w_i P_ij = w_j P_ji, where scores are symmetric: `w_i = m_i Z_i`.

    They are in units of their largest, so that no exponential overflows.
    """
    if system.mask is not None:
        return None
    q, k = (
        x if W is None else W * x if np.ndim(W) == 0 else x @ np.asarray(W, dtype=float).T
        for W in (system.heads.Q, system.heads.K)
    )
    scores = float(system.beta) * q @ k.T
    if np.abs(scores - scores.T).max() > 1e-12 * np.abs(scores).max():
        return None
    masses = np.ones(len(x)) if m is None else m
    log_w = scipy.special.logsumexp(scores, axis=1, b=masses[None, :]) + np.log(masses)
    w = np.exp(log_w - log_w.max())
    return w if w.min() > 0 else None
