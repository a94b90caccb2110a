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


def scores_of(
    q: Float[Array, "q k"], k: Float[Array, "n k"], rows: Int[Array, " q"], mask: Mask | None
) -> Float[Array, "q n"]:
    """`<q_i, k_j>` for the tokens `rows`, with −∞ where the mask forbids."""
    scores = q @ k.T
    return scores if mask is None else jnp.where(mask.rows(rows, len(k)), scores, -jnp.inf)


class Backend(eqx.Module):
    """A way to compute `Σ_j A_ij v_j` for all i."""

    @abc.abstractmethod
    def means(
        self,
        q: Float[Array, "n k"],
        k: Float[Array, "n k"],
        v: Float[Array, "n d"],
        *,
        kind: Kind,
        mask: Mask | None,
        masses: Float[Array, " n"] | None,
    ) -> Float[Array, "n d"]:
        """The weighted means, for queries that β is already part of."""

    @abc.abstractmethod
    def scores_held(self, n: int) -> int:
        """How many scores of a head are in memory at once."""


class Dense(Backend):
    """All n² scores at once: the fastest for small n."""

    def means(
        self,
        q: Float[Array, "n k"],
        k: Float[Array, "n k"],
        v: Float[Array, "n d"],
        *,
        kind: Kind,
        mask: Mask | None,
        masses: Float[Array, " n"] | None,
    ) -> Float[Array, "n d"]:
        """One product for the scores, one for the means."""
        numerator, denominator = kind.parts(scores_of(q, k, jnp.arange(len(q)), mask), masses)
        return (numerator @ v) / denominator[:, None]

    def scores_held(self, n: int) -> int:
        """n²."""
        return n * n


class Blocked(Backend):
    """A block of queries at a time: memory O(n · block), also for gradients."""

    block: int = eqx.field(static=True, default=256)

    def __check_init__(self) -> None:
        require_count(self.block, "block")

    @eqx.filter_jit  # called outside of any jit, a new map would compile every time
    def means(
        self,
        q: Float[Array, "n k"],
        k: Float[Array, "n k"],
        v: Float[Array, "n d"],
        *,
        kind: Kind,
        mask: Mask | None,
        masses: Float[Array, " n"] | None,
    ) -> Float[Array, "n d"]:
        """The dense computation, block after block; the last block is padded."""
        n = len(q)
        block = min(self.block, n)
        blocks = -(-n // block)
        padded = jnp.pad(q, ((0, blocks * block - n), (0, 0))).reshape(blocks, block, -1)
        rows = jnp.arange(blocks * block).reshape(blocks, block)

        @jax.checkpoint
        def one(queries: tuple[Array, Array]) -> Array:
            q_block, i = queries
            numerator, denominator = kind.parts(scores_of(q_block, k, i, mask), masses)
            return (numerator @ v) / denominator[:, None]

        return jax.lax.map(one, (padded, rows)).reshape(blocks * block, -1)[:n]

    def scores_held(self, n: int) -> int:
        """N times the block."""
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
