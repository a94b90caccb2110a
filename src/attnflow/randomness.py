"""The `key` of a draw: an integer, or a JAX key."""

from __future__ import annotations

from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key, PRNGKeyArray, UInt32

from attnflow.errors import InputError

RandomKey: TypeAlias = int | np.integer | Key[Array, ""] | UInt32[Array, "2"]
"""What every argument `key` takes."""


def as_key(key: RandomKey) -> PRNGKeyArray:
    """The JAX key that an integer stands for; a JAX key is itself.

    >>> bool(as_key(3) == jax.random.key(3))
    True
    """
    if isinstance(key, jax.Array) and _is_key(key):
        return key
    if isinstance(key, bool) or not isinstance(key, (int, np.integer)):
        raise InputError(f"key must be an integer or a jax.random key, not {key!r}.")
    if not -(2**63) <= key < 2**63:
        raise InputError(f"key must be an integer of 64 bits, but it is {key}.")
    if jax.config.jax_default_prng_impl == "threefry2x32":  # type: ignore[attr-defined]
        return _threefry_key(int(key))
    return jax.random.key(int(key))


def _threefry_key(seed: int) -> PRNGKeyArray:
    """`jax.random.key(seed)` without the two programs that it compiles: the halves of the seed."""
    upper = seed >> 32 if jax.dtypes.canonicalize_dtype(np.int64).itemsize == 8 else 0
    halves = np.array([upper % 2**32, seed % 2**32], np.uint32)
    return jax.random.wrap_key_data(jax.device_put(halves))


def _is_key(key: jax.Array) -> bool:
    if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return key.ndim == 0
    return key.dtype == jnp.uint32 and key.shape == (2,)
