"""How the sum over tokens is carried out. Every backend gives the same numbers up to rounding."""

from __future__ import annotations

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attnflow.attention.kinds import Kind
from attnflow.attention.masks import Mask
from attnflow.checks import require_count
from attnflow.errors import InputError, unknown

DENSE_LIMIT = 2**22
"""Up to this many scores (heads × n × n) they are held at once; above, blocks of them."""


class Task(eqx.Module):
    """What `attend` was asked for: weighted means of v under the weights of β <q_i, k_j>.

    `tangential` says that q = k = v are unit vectors and that only the part of the means across
    each token matters (the velocity on a sphere): then β bounds the scores, and a token's own
    contribution may be left out.
    """

    q: Float[Array, "n k"]
    k: Float[Array, "n k"]
    v: Float[Array, "n d"]
    beta: Float[Array, ""]
    masses: Float[Array, " n"] | None
    mask: Mask | None
    kind: Kind
    tangential: bool = eqx.field(static=True, default=False)

    def numerator(self, q: Float[Array, "q k"], rows: Int[Array, " q"]) -> Float[Array, "q n"]:
        """The numerators of the weights of the tokens `rows`, whose queries are q."""
        scores = (self.beta * q) @ self.k.T
        if self.mask is not None:
            scores = jnp.where(self.mask.rows(rows, len(self.k)), scores, -jnp.inf)
        return self.kind.numerator(scores, self.masses, self.beta if self.tangential else None)

    def denominator(self, row_sums: Float[Array, " q"]) -> Float[Array, " q"]:
        """What they are divided by."""
        return self.kind.denominator(row_sums, self.masses, len(self.k))

    def with_ones(self) -> Float[Array, "n e"]:
        """v with a column of ones, whose mean is the row sum."""
        return jnp.concatenate([self.v, jnp.ones((len(self.v), 1), self.v.dtype)], axis=1)


class Backend(eqx.Module):
    """A way to compute `Σ_j A_ij v_j` for all i."""

    @abc.abstractmethod
    def means(self, task: Task) -> Float[Array, "n d"]:
        """The weighted means."""

    @abc.abstractmethod
    def scores_held(self, n: int) -> int:
        """How many scores of a head are in memory at once."""


class Dense(Backend):
    """All n² scores at once: the fastest for small n.

    In a tangential task a token's own term is left out of the sum. It would vanish only after
    rounding, at 1e-16, while the forces of a metastable state are smaller than that.
    """

    def means(self, task: Task) -> Float[Array, "n d"]:
        """One product for the scores, one for the means."""
        numerator = task.numerator(task.q, jnp.arange(len(task.q)))
        denominator = task.denominator(numerator.sum(axis=1))
        if task.tangential:
            numerator = jnp.where(jnp.eye(len(task.q), dtype=bool), 0, numerator)
        return (numerator @ task.v) / denominator[:, None]

    def scores_held(self, n: int) -> int:
        """n²."""
        return n * n


class Blocked(Backend):
    """A block of queries at a time: memory O(n · block), also for gradients.

    The row sums come from a column of ones in the same product as the means.
    """

    block: int = eqx.field(static=True, default=256)

    def __check_init__(self) -> None:
        require_count(self.block, "block")

    @eqx.filter_jit
    def means(self, task: Task) -> Float[Array, "n d"]:
        """The dense computation, block after block; the last block is padded."""
        n = len(task.q)
        block = min(self.block, n)
        blocks = -(-n // block)
        padded = jnp.pad(task.q, ((0, blocks * block - n), (0, 0))).reshape(blocks, block, -1)
        rows = jnp.arange(blocks * block).reshape(blocks, block)
        values = task.with_ones()

        @jax.checkpoint
        def one(queries: tuple[Array, Array]) -> Array:
            sums = task.numerator(*queries) @ values
            return sums[:, :-1] / task.denominator(sums[:, -1])[:, None]

        return jax.lax.map(one, (padded, rows)).reshape(blocks * block, -1)[:n]

    def scores_held(self, n: int) -> int:
        """n times the block."""
        return n * min(self.block, n)


BACKENDS: dict[str, type[Backend]] = {"dense": Dense, "blocked": Blocked}
"""The backends by name."""


def as_backend(backend: Any) -> Backend | None:
    """A backend from its name or itself; None leaves the choice to the size."""
    if backend is None or isinstance(backend, Backend):
        return backend
    if not isinstance(backend, str):
        raise InputError(f"backend must be a name or a Backend, not {backend!r}.")
    if backend not in BACKENDS:
        raise unknown("backend", backend, BACKENDS)
    return BACKENDS[backend]()


def choose(n: int, heads: int | None) -> Backend:
    """The backend for n tokens: dense while all scores are few, blocked above."""
    return Dense() if (heads or 1) * n * n <= DENSE_LIMIT else Blocked()
