"""Doubly stochastic weights: the Sinkhorn limit of `e^{β s}`."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.nn import logsumexp
from jaxtyping import Array, Float, Int

from attnflow.attention.kinds import Softmax
from attnflow.attention.task import Task
from attnflow.checks import require_count, require_positive
from attnflow.errors import InputError

ROUNDING = 16
"""Units of rounding, of the largest score, to which columns can be brought at best."""

PATIENCE = 12
"""After this many sweeps the scores are first made soft, then sharpened back step by step."""

SHARPER = 1.4
"""The factor from one sharpness to the next: with 2, Newton steps are often lost on the way."""

SOLVED = 0.3
"""The log of the column sums at which the next sharpness is tried."""


class Sinkhorn(Softmax):
    """Weights whose rows sum to 1 and whose columns do too, [P] Remark 3.5.

        A_ij = m_j e^{s_ij + f_i + g_j},   Σ_j A_ij = 1,   Σ_i m_i A_ij = m_j

    Given g this is a softmax of the scores `s_ij + g_j`, so rows are exact and only the potentials
    g_j of the columns are sought, in the log domain. A sweep of Sinkhorn's is replaced by a Newton
    step wherever that at least halves the error, since sweeps alone need e^{O(β)} iterations where
    clusters hardly see each other; scores that resist are softened and sharpened back. It ends
    when every column is right to `tolerance`, relative to its mass, or to rounding (16 units of it
    times the largest score: in float32 at least 2e-6), or after `max_sweeps`: then rows still sum
    to 1, and columns are as near as they came. On the sphere 5 sweeps are usual, with random
    weights up to 45.

    Derivatives are those of the limit itself (implicit), in forward and reverse mode. All n² scores
    are held. There is no mask: the only doubly stochastic matrix below the diagonal is the
    identity.

    >>> from attnflow.attention import attention_weights
    >>> x = jnp.array([[2.0], [1.0], [0.0]])
    >>> A = attention_weights(x, x, kind=Sinkhorn())
    >>> print(A.sum(axis=0).round(9), A.sum(axis=1).round(9))
    [1. 1. 1.] [1. 1. 1.]
    """

    rowwise: ClassVar[bool] = False

    tolerance: float | int = eqx.field(static=True, default=1e-10)
    max_sweeps: int = eqx.field(static=True, default=1000)

    def __check_init__(self) -> None:
        require_positive(self.tolerance, "tolerance")
        require_count(self.max_sweeps, "max_sweeps")

    def prepared(self, task: Task) -> Task:
        """The softmax task with g as one more entry of the keys."""
        refuse_mask(task.mask)
        n = len(task.k)
        masses = jnp.ones(n, task.k.dtype) if task.masses is None else task.masses
        scores = (task.beta * task.q) @ task.k.T
        g = potentials(scores, masses, self.tolerance, self.max_sweeps)
        ones = jnp.ones((n, 1), task.q.dtype)
        return Task(
            q=jnp.concatenate([task.beta * task.q, ones], axis=1),
            k=jnp.concatenate([task.k, g[:, None]], axis=1),
            v=task.v,
            beta=jnp.ones_like(task.beta),
            masses=task.masses,
            mask=None,
            kind=Softmax(),
        )


def refuse_mask(mask: Any) -> None:
    """Refuse any mask, saying why."""
    if mask is not None:
        raise InputError(
            "mask must be None for doubly stochastic attention: under a causal mask the only "
            "matrix whose rows and columns all sum to 1 is the identity, so no token would see "
            "another, and under other masks there may be none. Use SA or PureAttention."
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
    tolerance: float | int,
    max_sweeps: int,
) -> Float[Array, " n"]:
    """The g_j for which the softmax of `s_ij + g_j` has the columns `Σ_i m_i A_ij = m_j`.

    They are determined up to a constant. A token of mass 0 has g = 0.

    >>> print(potentials(jnp.zeros((2, 2)), jnp.ones(2), 1e-10, 1000))
    [0. 0.]
    """
    return _solved(scores, masses, tolerance, max_sweeps)


@partial(jax.jit, static_argnums=(2, 3))
def _solved(
    scores: Float[Array, "n n"], masses: Float[Array, " n"], tolerance: float | int, max_sweeps: int
) -> Float[Array, " n"]:
    """`potentials`, compiled once for each shape however it is called."""
    eps = float(jnp.finfo(scores.dtype).eps)
    reachable = ROUNDING * eps * jnp.maximum(1, jnp.abs(scores).max())
    goal = jnp.maximum(jnp.asarray(tolerance, scores.dtype), reachable)

    gentlest = jnp.minimum(1, 1 / jnp.maximum(1, _spread(scores)))

    def at(g: Array, scale: Array, sweeps: Array) -> _Iterate:
        A, log_columns = _weights(scale * scores, masses, g)
        return _Iterate(g, scale, A, log_columns, sweeps)

    def staged(now: _Iterate) -> _Iterate:
        """Softer scores if it is time to try these, sharper ones if the last were solved."""
        sharper = jnp.where(now.error <= SOLVED, jnp.minimum(1, SHARPER * now.scale), now.scale)
        scale = jnp.where(now.sweeps == PATIENCE, gentlest, sharper)
        g = jnp.where(now.sweeps == PATIENCE, 0, now.g * scale / now.scale)
        return at(g, scale, now.sweeps)

    def better(now: _Iterate) -> _Iterate:
        now = staged(now)
        excess = masses * jnp.expm1(now.log_columns)
        step = _laplacian_solve(now.A, masses, excess)
        newton = at(now.g - step, now.scale, now.sweeps + 1)
        sweep = at(now.g - now.log_columns, now.scale, now.sweeps + 1)
        halves = newton.error < 0.5 * now.error  # False for NaN as well
        return jax.tree.map(lambda a, b: jnp.where(halves, a, b), newton, sweep)

    def unfinished(now: _Iterate) -> Array:
        return ((now.scale < 1) | (now.error > goal)) & (now.sweeps < max_sweeps)

    start = at(jnp.zeros_like(masses), jnp.ones((), scores.dtype), jnp.zeros((), int))
    end = jax.lax.while_loop(unfinished, better, start)
    return end.g / end.scale


@potentials.defjvp
def _potentials_jvp(
    tolerance: float | int, max_sweeps: int, primals: Any, tangents: Any
) -> tuple[Array, Array]:
    """`L dg = −d(columns)` at fixed g: the implicit function theorem."""
    scores, masses = primals
    g = potentials(scores, masses, tolerance, max_sweeps)

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
