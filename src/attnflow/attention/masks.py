"""Who may attend to whom."""

from __future__ import annotations

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from attnflow.checks import NO_NUMBERS, as_array, is_traced, require_count
from attnflow.errors import InputError, unknown


class Mask(eqx.Module):
    """Which tokens j each token i may attend to."""

    @property
    @abc.abstractmethod
    def tokens(self) -> int | None:
        """For how many tokens it is; None: for any number."""

    @abc.abstractmethod
    def rows(self, i: Int[Array, " q"], n: int) -> Bool[Array, "q n"]:
        """The rows i of the mask over n tokens: True where i may attend to j."""


class Causal(Mask):
    """`A_ij = 0` for j > i, as in GPT: a token sees itself and those before it.

    >>> print(Causal().rows(jnp.arange(2), 3).astype(int))
    [[1 0 0]
     [1 1 0]]
    """

    tokens = None

    def rows(self, i: Int[Array, " q"], n: int) -> Bool[Array, "q n"]:
        return jnp.arange(n) <= i[:, None]


class Window(Mask):
    """`A_ij = 0` for j > i and for j ≤ i − size, as in Mistral: a token sees the last `size`.

    >>> print(Window(2).rows(jnp.arange(3), 3).astype(int))
    [[1 0 0]
     [1 1 0]
     [0 1 1]]
    """

    tokens = None
    size: int = eqx.field(static=True)

    def __check_init__(self) -> None:
        require_count(self.size, "size")

    def rows(self, i: Int[Array, " q"], n: int) -> Bool[Array, "q n"]:
        j = jnp.arange(n)
        return (j <= i[:, None]) & (j > i[:, None] - self.size)


class ExplicitMask(Mask):
    """A mask that is given as a matrix of booleans."""

    allowed: Bool[Array, "n n"]

    @property
    def tokens(self) -> int:
        """As many as the matrix has rows."""
        return len(self.allowed)

    def rows(self, i: Int[Array, " q"], n: int) -> Bool[Array, "q n"]:
        """The given rows (the last one again for padding beyond n)."""
        return self.allowed[jnp.minimum(i, n - 1)]


def as_mask(mask: Any) -> Mask | None:
    """A mask from its name ("causal"), a matrix of booleans, a `Mask`, or None."""
    if mask is None or isinstance(mask, Mask):
        return mask
    if isinstance(mask, str):
        if mask != "causal":
            raise unknown("mask", mask, ["causal"])
        return Causal()
    try:
        allowed = as_array(mask)
    except NO_NUMBERS:
        raise InputError(f'mask must be "causal" or a matrix of booleans, not {mask!r}.') from None
    if allowed.ndim != 2 or allowed.shape[0] != allowed.shape[1] or allowed.dtype != bool:
        raise InputError(
            'mask must be "causal" or a square matrix of booleans (True: i may attend to j), but '
            f"it has shape {allowed.shape} and dtype {allowed.dtype}."
        )
    some = np.ones(1) if is_traced(allowed) else np.any(np.asarray(allowed), axis=1)
    if not some.all():
        row = int(np.argmin(some))
        raise InputError(f"mask lets token {row} attend to nobody: row {row} has no True.")
    return ExplicitMask(allowed)
