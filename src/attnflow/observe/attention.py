"""The self-attention matrix of a system."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Real

from attnflow.checks import as_floats, require_state
from attnflow.errors import InputError
from attnflow.systems import System


def attention(
    system: System,
    x: Real[ArrayLike, "n d"],
    t: Any = 0.0,
    masses: Real[ArrayLike, " n"] | None = None,
) -> Float[Array, "*heads n n"]:
    """The weights A_ij that multiply `V x_j`: (n, n), or (H, n, n) with several heads.

    >>> import attnflow as af
    >>> P = attention(af.SA(beta=0.0), jnp.eye(2))
    >>> print(P)
    [[0.5 0.5]
     [0.5 0.5]]
    """
    if not hasattr(system, "attention"):
        raise InputError(f"{type(system).__name__} has no attention matrix.")
    require_state(x, masses)
    x = as_floats(x)
    m = None if masses is None else jnp.asarray(masses, x.dtype)
    return system.attention(t, x, m)
