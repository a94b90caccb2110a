"""All scores at once; and the same for many small systems, with the replicates side by side."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attnflow.attention.task import Backend, Task

REPLICATES = 64
"""From this many replicates on, they are the last axis."""

SMALL = {"n": 256, "d": 2}
"""Systems up to this size are small: the sum over d is written out, with no matrix product. For
d = 3 the compiler's batched products are as fast, and for more they are faster."""

UNROLLED = 32
"""Keys whose sums are one piece of compiled code."""


class Dense(Backend):
    """All n² scores at once: the fastest for small n.

    In a tangential task a token's own term is left out of the sum. It would vanish only after
    rounding, at 1e-16, while the forces of a metastable state are smaller than that.
    """

    def means(self, task: Task) -> Float[Array, "n d"]:
        """One product for the scores, one for the means."""
        n, d = task.v.shape
        small = n <= SMALL["n"] and d <= SMALL["d"]
        return _small(task) if task.tangential and task.mask is None and small else _means(task)

    def scores_held(self, n: int) -> int:
        """n²."""
        return n * n


def _means(task: Task) -> Float[Array, "n d"]:
    numerator = task.numerator(task.q, jnp.arange(len(task.q)))
    denominator = task.denominator(numerator.sum(axis=1))
    if task.tangential:
        numerator = jnp.where(jnp.eye(len(task.q), dtype=bool), 0, numerator)
    return (numerator @ task.v) / denominator[:, None]


@jax.custom_jvp
def _small(task: Task) -> Float[Array, "n d"]:
    """`_means`, which under a vmap over many replicates becomes `_replicates_last`."""
    return _batchable(task)


@_small.defjvp
def _small_jvp(primals: tuple[Task], tangents: tuple[Task]) -> tuple[Array, Array]:
    return jax.jvp(_means, primals, tangents)


@jax.custom_batching.custom_vmap
def _batchable(task: Task) -> Float[Array, "n d"]:
    return _means(task)


@_batchable.def_vmap
def _batched(axis_size: int, in_batched: list[Any], task: Task) -> tuple[Array, bool]:
    def spread(leaf: Array, batched: bool) -> Array:
        return leaf if batched else jnp.broadcast_to(leaf, (axis_size, *leaf.shape))

    each = jax.tree.map(spread, task, in_batched[0])
    return (_replicates_last if axis_size >= REPLICATES else jax.vmap(_means))(each), True


def _replicates_last(tasks: Task) -> Float[Array, "r n d"]:
    """`Σ_j A_ij (x_j − x_i)` for r tangential tasks, replicates being the axis of the vectors.

    Small matrix products waste most of a processor; sums over few coordinates that are written
    out, with the replicates as the contiguous axis, do not. The difference takes out a token's
    own term exactly.
    """
    x = tuple(tasks.q.transpose(2, 1, 0))
    masses = None if tasks.masses is None else tasks.masses.T
    beta = tasks.beta

    def add(sums: tuple[Array, ...], key: tuple[Any, Any]) -> tuple[tuple[Array, ...], None]:
        x_j, m_j = key
        score = beta * sum(a * b for a, b in zip(x, x_j, strict=True))
        weight = tasks.kind.numerator(score, m_j, beta)
        terms = (weight, *(weight * (b - a) for a, b in zip(x, x_j, strict=True)))
        return tuple(s + term for s, term in zip(sums, terms, strict=True)), None

    zeros = tuple(jnp.zeros_like(x[0]) for _ in range(len(x) + 1))
    (row_sums, *apart), _ = jax.lax.scan(add, zeros, (x, masses), unroll=UNROLLED)
    denominator = tasks.kind.denominator(row_sums, tasks.total)
    return jnp.stack([a / denominator for a in apart]).transpose(2, 1, 0)
