"""Blocks of queries, one after the other: for many tokens."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec
from jaxtyping import Array, Float

from attnflow.attention.across import fingerprints, sums_across
from attnflow.attention.task import Backend, Task
from attnflow.checks import require_count

MAX_BLOCK_SCORES = 2**25
"""A block holds at most this many scores: where n is huge it has fewer rows."""


class Blocked(Backend):
    """A block of queries at a time: memory O(n · block) and at most O(n), also for gradients.

    Args:
        block: the number of queries in a block.
        exact: whether terms along each token are left out of tangential sums, as `Dense` does it
            (`sums_across`). Forces are then exact however small, at half the speed for small d;
            otherwise rounding leaves 1e-16 of the largest weight.
    """

    block: int = eqx.field(static=True, default=256)
    exact: bool = eqx.field(static=True, default=False)

    def __check_init__(self) -> None:
        require_count(self.block, "block")

    @eqx.filter_jit
    def means(self, task: Task) -> Float[Array, "n d"]:
        """The dense computation, block after block.

        A block takes its queries from all over, at equal distances: where the tokens are split
        over devices, each device then has its part of every block.
        """
        n = len(task.q)
        block = self.rows(n)
        blocks = -(-n // block)
        rows = jnp.arange(block * blocks).reshape(block, blocks).T
        padded = jnp.pad(task.q, ((0, block * blocks - n), (0, 0)))
        queries = padded.reshape(block, blocks, -1).swapaxes(0, 1)
        task = _keys_everywhere(task)
        prints = fingerprints(task.v) if task.tangential and self.exact else None

        @jax.checkpoint
        def one(part: tuple[Array, Array]) -> Array:
            numerator = task.numerator(*part)
            if prints is None:
                sums, row_sums = task.sums(numerator)
            else:
                row_sums = numerator.sum(axis=1)
                sums = sums_across(numerator, task.v, prints, part[1])
            return sums / task.denominator(row_sums)[:, None]

        means = jax.lax.map(one, (queries, rows))
        return means.swapaxes(0, 1).reshape(block * blocks, -1)[:n]

    def error_bound(self, task: Task) -> None:
        """None."""

    def scores_held(self, n: int) -> int:
        return n * self.rows(n)

    def rows(self, n: int) -> int:
        """The queries in a block."""
        return max(1, min(self.block, n, MAX_BLOCK_SCORES // n))


def _keys_everywhere(task: Task) -> Task:
    """Keys, values and masses whole on every device, where they are split over an explicit mesh."""

    def everywhere(rows: Array) -> Array:
        sharding = jax.typeof(rows).sharding
        if all(axis is None for axis in sharding.spec):
            return rows
        return jax.sharding.reshard(rows, NamedSharding(sharding.mesh, PartitionSpec()))

    keys = (task.k, task.v, task.masses)
    return eqx.tree_at(
        lambda task: (task.k, task.v, task.masses),
        task,
        jax.tree.map(everywhere, keys),
        is_leaf=lambda leaf: leaf is None,
    )
