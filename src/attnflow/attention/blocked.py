"""Blocks of queries, one after the other: for many tokens."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attnflow.attention.task import Backend, Task
from attnflow.checks import require_count

SCORES = 2**25
"""A block holds at most this many scores: where n is huge it has fewer rows."""


class Blocked(Backend):
    """A block of queries at a time: memory O(n · block) and at most O(n), also for gradients.

    The row sums come from a column of ones in the same product as the means.
    """

    block: int = eqx.field(static=True, default=256)

    def __check_init__(self) -> None:
        require_count(self.block, "block")

    @eqx.filter_jit
    def means(self, task: Task) -> Float[Array, "n d"]:
        """The dense computation, block after block; the last block is padded."""
        n = len(task.q)
        block = self.rows(n)
        blocks = -(-n // block)
        padded = jnp.pad(task.q, ((0, blocks * block - n), (0, 0))).reshape(blocks, block, -1)
        rows = jnp.arange(blocks * block).reshape(blocks, block)
        values = task.values()

        @jax.checkpoint
        def one(queries: tuple[Array, Array]) -> Array:
            sums = task.numerator(*queries) @ values
            return sums[:, :-1] / task.denominator(sums[:, -1])[:, None]

        return jax.lax.map(one, (padded, rows)).reshape(blocks * block, -1)[:n]

    def scores_held(self, n: int) -> int:
        """n times the block."""
        return n * self.rows(n)

    def rows(self, n: int) -> int:
        """The queries in a block."""
        return max(1, min(self.block, n, SCORES // n))
