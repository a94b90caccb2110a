"""The nonlinearities σ of feed-forward layers, by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attnflow.errors import InputError, unknown

Activation = Callable[[Any], Any]

gelu = partial(jax.nn.gelu, approximate=False)
gelu_tanh = partial(jax.nn.gelu, approximate=True)

ACTIVATIONS: dict[str, Activation] = {
    "relu": jax.nn.relu,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "silu": jax.nn.silu,
    "tanh": jnp.tanh,
}
"""ReLU; `u Φ(u)` with the normal law Φ (BERT); its form with tanh (GPT-2, ALBERT);
`u / (1 + e^{−u})` (Llama); tanh."""


def activate(sigma: str | Activation, u: Float[Array, "*n m"]) -> Float[Array, "*n m"]:
    """`σ(u)`, entry by entry, where σ is a name or a function.

    >>> print(activate("relu", jnp.array([-1.0, 2.0])))
    [0. 2.]
    """
    return ACTIVATIONS[sigma](u) if isinstance(sigma, str) else sigma(u)


def as_activation(sigma: Any) -> str | Activation:
    """A known name or a function, or an error.

    >>> as_activation("gelu")
    'gelu'
    """
    if callable(sigma):
        return sigma
    if not isinstance(sigma, str):
        raise InputError(f"sigma must be a name such as 'relu' or a function, not {sigma!r}.")
    if sigma not in ACTIVATIONS:
        raise unknown("sigma", sigma, ACTIVATIONS)
    return sigma
