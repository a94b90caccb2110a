"""A seed or a key, and the key that it stands for."""

from __future__ import annotations

import jax
import numpy as np
from jaxtyping import Array, Key, PRNGKeyArray, UInt32

from attnflow.errors import InputError

AnyKey = Key[Array, ""] | UInt32[Array, "2"]


def as_key(seed: int | np.integer | None, key: AnyKey | None) -> PRNGKeyArray:
    """The key of a draw: exactly one of `seed` (an integer) and `key` (a JAX key) is given.

    >>> bool(as_key(3, None) == as_key(None, jax.random.key(3)))
    True
    """
    if (seed is None) == (key is None):
        raise InputError("give exactly one of seed (an integer) and key (a jax.random key).")
    if key is not None:
        return key
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
        raise InputError(f"seed must be an integer, not {seed!r}.")
    if not -(2**63) <= seed < 2**63:
        raise InputError(f"seed must be an integer of 64 bits, but it is {seed}.")
    return jax.random.key(int(seed))
