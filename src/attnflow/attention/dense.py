"""All scores at once; and the same for many small systems, with the replicates side by side."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attnflow.attention.across import equal_mass, equal_pairs, fingerprints, sums_across
from attnflow.attention.task import Backend, Task
from attnflow.spaces import inner

MIN_REPLICATES_LAST_AXIS = 64
"""From this many replicates on, they are the last axis."""

MAX_TOKENS_LAST_AXIS = 256
"""Up to this many tokens on the circle are a small system. For d = 3 the compiler's batched
products are as fast as sums that are written out, and for more they are faster."""

UNROLLED_KEYS = 32
"""Keys whose sums are one piece of compiled code."""


class Dense(Backend):
    """All n² scores at once: the fastest for small n.

    In a tangential task the terms of a token itself and of those that are equal to it are left out
    of the sum: see `sums_across`.
    """

    def means(self, task: Task) -> Float[Array, "n d"]:
        round_task = task.unit and task.tangential and task.mask is None
        return _across(task) if round_task else _means(task)

    def error_bound(self, task: Task) -> None:
        """None."""

    def scores_held(self, n: int) -> int:
        return n * n


def _means(task: Task) -> Float[Array, "n d"]:
    rows = jnp.arange(len(task.q))
    numerator = task.numerator(task.q, rows)
    denominator = task.denominator(numerator.sum(axis=1))
    if task.tangential:
        sums = sums_across(numerator, task.v, fingerprints(task.v), rows)
    else:
        sums = numerator @ task.v
    return sums / denominator[:, None]


@jax.custom_jvp
def _across(task: Task) -> Float[Array, "n d"]:
    """`_means` of tangential tasks without a mask, in a form that is quick and not differentiated.

    Under a vmap over many replicates on the circle it becomes `_replicates_last`.
    """
    n, d = task.v.shape
    return _batchable(task) if d == 2 and n <= MAX_TOKENS_LAST_AXIS else _unequal_terms(task)


@_across.defjvp
def _across_jvp(primals: tuple[Task], tangents: tuple[Task]) -> tuple[Array, Array]:
    return jax.jvp(_means, primals, tangents)


def _unequal_terms(task: Task) -> Float[Array, "n d"]:
    """Sums over unequal tokens; what equal ones add to the row sums is known.

    All weights of tokens that equal a token are its weight of itself, times their mass.
    """
    prints, beta = fingerprints(task.v), task.beta
    numerator = task.numerator(task.q, jnp.arange(len(task.q)))
    sums, row_sums = task.sums(jnp.where(equal_pairs(prints, prints), 0, numerator))
    own = task.kind.numerator(beta * inner(task.v, task.v), None, beta)[:, 0]
    row_sums += own * equal_mass(prints, task.masses, own.dtype)
    return sums / task.denominator(row_sums)[:, None]


@jax.custom_batching.custom_vmap
def _batchable(task: Task) -> Float[Array, "n d"]:
    return _unequal_terms(task)


@_batchable.def_vmap
def _batched(axis_size: int, in_batched: list[Any], task: Task) -> tuple[Array, bool]:
    def spread(leaf: Array, batched: bool) -> Array:
        return leaf if batched else jnp.broadcast_to(leaf, (axis_size, *leaf.shape))

    each = jax.tree.map(spread, task, in_batched[0])
    last = axis_size >= MIN_REPLICATES_LAST_AXIS
    return (_replicates_last if last else jax.vmap(_unequal_terms))(each), True


def _replicates_last(tasks: Task) -> Float[Array, "r n d"]:
    """The means of r tangential tasks on the circle, replicates being the axis of the vectors.

    Small matrix products waste most of a processor; sums that are written out, with the replicates
    as the contiguous axis, do not. Only the part along the tangent τ_i is summed,
    `Σ_j A_ij <x_j − x_i, τ_i>`, where the difference takes out a token's own term exactly. Tokens
    may be off the circle a little, as stages of a step are.
    """
    x, y = tasks.q.transpose(2, 1, 0)
    masses = None if tasks.masses is None else tasks.masses.T
    beta = tasks.beta

    def add(sums: tuple[Array, Array], key: tuple[Any, ...]) -> tuple[tuple[Array, Array], None]:
        x_j, y_j, m_j = key
        weight = tasks.kind.numerator(beta * (x * x_j + y * y_j), m_j, beta)
        along = x * (y_j - y) - y * (x_j - x)
        return (sums[0] + weight, sums[1] + weight * along), None

    zeros = jnp.zeros_like(x), jnp.zeros_like(x)
    (row_sums, along), _ = jax.lax.scan(add, zeros, (x, y, masses), unroll=UNROLLED_KEYS)
    speed = along / (tasks.kind.denominator(row_sums, tasks.total) * (x * x + y * y))
    return jnp.stack([-y * speed, x * speed]).transpose(2, 1, 0)
