"""Doubly stochastic weights: the Sinkhorn limit of `e^{β s}`."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import logsumexp
from jaxtyping import Array, Float, Int

from attnflow.attention.kinds import Kind, Rowwise, Softmax
from attnflow.attention.masks import Mask
from attnflow.checks import is_traced, require_count, require_positive
from attnflow.errors import InputError, NotConverged
from attnflow.retired import renamed_arguments

ROUNDING = 16
"""Units of rounding, of the largest score, to which columns can be brought at best."""

MAX_PLAIN_SWEEPS = 12
"""After this many sweeps the scores are first made soft, then sharpened back step by step."""

SHARPENING_FACTOR = 1.4
"""The factor from one sharpness to the next: with 2, Newton steps are often lost on the way."""

SHARPEN_TOL = 0.3
"""The log of the column sums at which the next sharpness is tried."""


class Sinkhorn(Kind):
    """Weights whose rows sum to 1 and whose columns do too, [P] Remark 3.5.

        A_ij = m_j e^{s_ij + f_i + g_j},   Σ_j A_ij = 1,   Σ_i m_i A_ij = m_j

    Given g this is a softmax of the scores `s_ij + g_j`, so rows are exact and only the potentials
    g_j of the columns are sought, in the log domain. They minimise the convex function

        F(g) = Σ_i m_i log Σ_j m_j e^{s_ij + g_j} − Σ_j m_j g_j

    by Newton steps: whole ones wherever that at least halves the error of the columns, otherwise
    damped ones, which lower F for certain. Sinkhorn's own sweeps would need e^{O(β)} iterations
    where clusters hardly see each other. Scores that resist are softened and sharpened back.

    On the sphere 5 steps are usual, with random weights and β = 1000 about 50. What has not
    converged is refused with `NotConverged`, and is NaN where it is traced and no error can be
    raised.

    Derivatives are those of the limit itself (implicit), in forward and reverse mode. All n² scores
    are held. There is no mask: the only doubly stochastic matrix below the diagonal is the
    identity.

    Args:
        tol: the error of a column, relative to its mass, at which it ends; never below rounding
            (16 units of it times the largest score: in float32 at least 2e-6).
        max_sweeps: the most steps.

    >>> from attnflow.attention import attention_weights
    >>> x = jnp.array([[2.0], [1.0], [0.0]])
    >>> A = attention_weights(x, x, kind=Sinkhorn())
    >>> print(A.sum(axis=0).round(9), A.sum(axis=1).round(9))
    [1. 1. 1.] [1. 1. 1.]
    """

    rowwise = False
    exponentials_over = None
    mask_obstacle = (
        "mask must be None for doubly stochastic attention: under a causal mask the only matrix "
        "whose rows and columns all sum to 1 is the identity, so no token would see another, and "
        "under other masks there may be none. Use SA or PureAttention."
    )

    tol: float | int = eqx.field(static=True)
    max_sweeps: int = eqx.field(static=True)

    @renamed_arguments(tolerance="tol")
    def __init__(self, tol: float | int = 1e-10, max_sweeps: int = 1000):
        self.tol, self.max_sweeps = tol, max_sweeps

    def __check_init__(self) -> None:
        require_positive(self.tol, "tol")
        require_count(self.max_sweeps, "max_sweeps")

    def as_rowwise(
        self,
        q: Float[Array, "n k"],
        k: Float[Array, "n k"],
        beta: Float[Array, ""],
        masses: Float[Array, " n"] | None,
        mask: Mask | None,
    ) -> tuple[Float[Array, "n l"], Float[Array, "n l"], Float[Array, ""], Rowwise]:
        if mask is not None:
            raise InputError(self.mask_obstacle)
        n = len(k)
        m = jnp.ones(n, k.dtype) if masses is None else masses
        scores = (beta * q) @ k.T
        g = potentials(scores, m, self.tol, self.max_sweeps)
        self._require_found(g, scores)
        q = jnp.concatenate([beta * q, jnp.ones((n, 1), q.dtype)], axis=1)
        return q, jnp.concatenate([k, g[:, None]], axis=1), jnp.ones_like(beta), Softmax()

    def _require_found(self, g: Float[Array, " n"], scores: Float[Array, "n n"]) -> None:
        if is_traced((g, scores)) or not bool(jnp.isnan(g).any()):
            return
        largest = float(jnp.abs(scores).max())
        if np.isfinite(largest):
            raise NotConverged(
                f"doubly stochastic weights for scores up to {largest:.3g} have columns that are "
                f"not right to {self.tol:g} after {self.max_sweeps} sweeps",
                where="beta",
                remedy="take a smaller beta, or Sinkhorn(tol, max_sweeps) with more of either",
            )


class _Iterate(NamedTuple):
    """Potentials for scores times `scale`, the weights and the log of the column sums."""

    g: Float[Array, " n"]
    scale: Float[Array, ""]
    A: Float[Array, "n n"]
    log_columns: Float[Array, " n"]
    sweeps: Int[Array, ""]

    @property
    def error(self) -> Float[Array, ""]:
        return jnp.abs(self.log_columns).max()


@partial(jax.custom_jvp, nondiff_argnums=(2, 3))
def potentials(
    scores: Float[Array, "n n"],
    masses: Float[Array, " n"],
    tol: float | int,
    max_sweeps: int,
) -> Float[Array, " n"]:
    """The g_j for which the softmax of `s_ij + g_j` has the columns `Σ_i m_i A_ij = m_j`.

    They are determined up to a constant. A token of mass 0 has g = 0. All are NaN where they are
    not found.

    Args:
        scores: the s_ij, shape (n, n).
        masses: the m_j, shape (n,).
        tol: the error of a column, relative to its mass, at which it ends.
        max_sweeps: the most Newton steps.

    >>> print(potentials(jnp.zeros((2, 2)), jnp.ones(2), 1e-10, 1000))
    [0. 0.]
    """
    return _solved(scores, masses, tol, max_sweeps)


@partial(jax.jit, static_argnums=(2, 3))
def _solved(
    scores: Float[Array, "n n"], masses: Float[Array, " n"], tol: float | int, max_sweeps: int
) -> Float[Array, " n"]:
    """`potentials`, compiled once for each shape however it is called."""
    eps = float(jnp.finfo(scores.dtype).eps)
    reachable = ROUNDING * eps * jnp.maximum(1, jnp.abs(scores).max())
    goal = jnp.maximum(jnp.asarray(tol, scores.dtype), reachable)

    gentlest = jnp.minimum(1, 1 / jnp.maximum(1, _spread(scores)))

    def at(g: Array, scale: Array, sweeps: Array) -> _Iterate:
        return _Iterate(g, scale, *_weights(scale * scores, masses, g), sweeps)

    def staged(now: _Iterate) -> _Iterate:
        """Softer scores if it is time to try these, sharper ones if the last were solved."""
        sharper = jnp.where(
            now.error <= SHARPEN_TOL, jnp.minimum(1, SHARPENING_FACTOR * now.scale), now.scale
        )
        scale = jnp.where(now.sweeps == MAX_PLAIN_SWEEPS, gentlest, sharper)
        g = jnp.where(now.sweeps == MAX_PLAIN_SWEEPS, 0, now.g * scale / now.scale)
        return at(g, scale, now.sweeps)

    def better(now: _Iterate) -> _Iterate:
        now = staged(now)
        excess = masses * jnp.expm1(now.log_columns)
        step = -_laplacian_solve(now.A, masses, excess)
        newton = at(now.g + step, now.scale, now.sweeps + 1)
        halves = newton.error < 0.5 * now.error  # False for NaN as well

        damped = _damping(step) * step
        safe = jnp.where(jnp.isfinite(damped).all(), damped, -now.log_columns)
        return jax.lax.cond(
            halves, lambda: newton, lambda: at(now.g + safe, now.scale, now.sweeps + 1)
        )

    def unfinished(now: _Iterate) -> Array:
        return ((now.scale < 1) | (now.error > goal)) & (now.sweeps < max_sweeps)

    start = at(jnp.zeros_like(masses), jnp.ones((), scores.dtype), jnp.zeros((), int))
    end = jax.lax.while_loop(unfinished, better, start)
    return jnp.where((end.scale == 1) & (end.error <= goal), end.g, jnp.nan)


def _damping(step: Float[Array, " n"]) -> Float[Array, ""]:
    """The part `log(1 + r)/r` of a Newton step that lowers F for certain, r being its range.

    Along a step of range r the second derivative of F grows at most like e^{tr}.
    """
    r = step.max() - step.min()
    return jnp.where(r > 0, jnp.log1p(r) / jnp.where(r > 0, r, 1), 1)


@potentials.defjvp
def _potentials_jvp(
    tol: float | int, max_sweeps: int, primals: Any, tangents: Any
) -> tuple[Array, Array]:
    """`L dg = −d(columns)` at fixed g: the implicit function theorem."""
    scores, masses = primals
    g = potentials(scores, masses, tol, max_sweeps)

    def excess(scores: Array, masses: Array) -> Array:
        return masses @ _weights(scores, masses, g)[0] - masses

    A, _ = _weights(scores, masses, g)
    _, change = jax.jvp(excess, (scores, masses), tangents)
    return g, -_laplacian_solve(A, masses, change)


def _weights(
    scores: Float[Array, "n n"], masses: Float[Array, " n"], g: Float[Array, " n"]
) -> tuple[Float[Array, "n n"], Float[Array, " n"]]:
    """The weights of the potentials g, and the log of their column sums over the masses."""
    alive = masses > 0
    log_m = jnp.where(alive, jnp.log(jnp.where(alive, masses, 1)), -jnp.inf)
    log_A = jax.nn.log_softmax(scores + g + log_m, axis=1)
    log_columns = logsumexp(log_A + log_m[:, None], axis=0) - log_m
    return jnp.exp(log_A), jnp.where(alive, log_columns, 0)


def _spread(scores: Float[Array, "n n"]) -> Float[Array, ""]:
    """The largest score up to what potentials can take out: constants in a row or a column."""
    centred = scores - scores.mean(axis=1, keepdims=True)
    return jnp.abs(centred - centred.mean(axis=0)).max()


def _laplacian_solve(
    A: Float[Array, "n n"], masses: Float[Array, " n"], b: Float[Array, " n"]
) -> Float[Array, " n"]:
    """`L⁻¹ b` for the derivative L of the columns in g, a graph Laplacian.

    `L = diag(Σ_i m_i A_ij) − Aᵀ diag(m) A` has the constants as its kernel, which the term m mᵀ
    fills. Its diagonal is summed from what is off it, because a difference would lose weights
    between distant clusters; where these are below rounding, so is what g does to A, and a
    multiple of rounding on the diagonal keeps L invertible.
    """
    n = len(masses)
    between = (A * masses[:, None]).T @ A
    between = between * (1 - jnp.eye(n, dtype=A.dtype))
    ridge = 10 * float(jnp.finfo(A.dtype).eps) * masses
    ridge = jnp.where(masses > 0, ridge, 1)
    L = jnp.diag(between.sum(axis=1) + ridge) - between
    return jnp.linalg.solve(L + jnp.outer(masses, masses) / masses.sum(), b)
