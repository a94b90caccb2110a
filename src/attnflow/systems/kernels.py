"""What sums over pairs share: blocks of rows, weights by distance or mass, means, whole steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attnflow.checks import as_number, require_positive
from attnflow.errors import InputError
from attnflow.systems.base import Cost, System

MAX_UNBLOCKED, BLOCK_ROWS = 1024, 256
"""Up to so many tokens all pairs are in memory at once; of more, those of a block of rows."""


class Pairwise(System):
    """A system that sums over pairs with `in_blocks`, so that its memory is O(n)."""

    def cost(self, n: int) -> Cost:
        """All pairs; in memory are those of a block of rows."""
        return Cost(n * n, n * rows(n))


def rows(n: int) -> int:
    """How many of n tokens `in_blocks` takes at a time.

    >>> rows(1000), rows(10**6)
    (1000, 256)
    """
    return n if n <= MAX_UNBLOCKED else BLOCK_ROWS


def in_blocks(fn: Callable[[Array], Array], x: Float[Array, "n ..."]) -> Float[Array, "n ..."]:
    """`fn` of blocks of the rows of x, one after the other: memory O(n), also for gradients.

    >>> print(in_blocks(lambda x: 2 * x, jnp.arange(3.0)))
    [0. 2. 4.]
    """
    n, block = len(x), rows(len(x))
    if block == n:
        return fn(x)
    blocks = -(-n // block)
    padded = jnp.pad(x, [(0, blocks * block - n), *[(0, 0)] * (x.ndim - 1)], mode="edge")
    found = jax.lax.map(jax.checkpoint(fn), padded.reshape(blocks, block, *x.shape[1:]))
    return found.reshape(blocks * block, *found.shape[2:])[:n]


def gaussian(s: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """`e^{−s/2}`: everybody counts, far ones little."""
    return jnp.exp(-s / 2)


def indicator(s: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """1 for s ≤ 1, else 0: bounded confidence."""
    return (s <= 1).astype(s.dtype)


def cauchy(s: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """`1 / (1 + s)`: far ones count too."""
    return 1 / (1 + s)


PHI: dict[str, Callable[..., Any]] = {
    kernel.__name__: kernel for kernel in (gaussian, indicator, cauchy)
}
"""The kernels by name: functions of the squared distance in units of the radius."""


def as_length(value: Any, name: str) -> Float[Array, ""]:
    """A length as an array leaf, so that a new value recompiles nothing."""
    length = as_number(value, name)
    require_positive(length, name)
    return length


def squared_distances(
    x: Float[Array, "n d"], y: Float[Array, "k d"], radius: Float[Array, ""]
) -> Float[Array, "n k"]:
    """`|x_i − y_j|² / radius²`, from differences, so that close tokens keep their digits.

    >>> print(squared_distances(jnp.eye(1), jnp.array([[1.0], [4.0]]), jnp.asarray(2.0)))
    [[0.   2.25]]
    """
    between = (x[:, None] - y) / radius.astype(x.dtype)
    return jnp.sum(between * between, axis=-1)


def weighted_means(
    w: Float[Array, "n k"], y: Float[Array, "k d"], masses: Float[Array, " k"] | None = None
) -> Float[Array, "n d"]:
    """`Σ_j w_ij m_j y_j / Σ_j w_ij m_j`.

    >>> print(weighted_means(jnp.ones((1, 2)), jnp.array([[0.0], [4.0]]), jnp.array([1.0, 3.0])))
    [[3.]]
    """
    w = w if masses is None else w * masses.astype(w.dtype)
    return (w @ y) / jnp.sum(w, axis=1, keepdims=True)


def as_shares(masses: Float[Array, " n"] | None, x: Float[Array, "n ..."]) -> Float[Array, " n"]:
    """The part of the total mass that each token of x has.

    >>> print(as_shares(jnp.array([1.0, 3.0]), jnp.zeros(2)))
    [0.25 0.75]
    """
    if masses is None:
        return jnp.full(len(x), 1 / len(x), x.dtype)
    return (masses / masses.sum()).astype(x.dtype)


def require_whole_steps(system: System, dt: Any) -> None:
    """Refuse layers of another step than 1 for a map that has no smaller ones."""
    if dt != 1:
        raise InputError(
            f"dt must be 1 for {type(system).__name__}, one update each, but it is {dt:g}: "
            "use Layers(1.0)."
        )
