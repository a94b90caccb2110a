"""Random graphs, as adjacency matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attnflow.checks import is_traced, require_count, require_memory
from attnflow.errors import InputError
from attnflow.randomness import RandomKey, as_key
from attnflow.retired import renamed_arguments

__all__ = ["GRAPHS", "erdos_renyi"]


@renamed_arguments(seed="key")
def erdos_renyi(
    n: int,
    p: float | int | Float[Array, ""],
    *,
    key: RandomKey,
) -> Float[Array, "n n"]:
    """The Erdős–Rényi graph G(n, p): each of the n(n−1)/2 edges is there with probability p.

    Symmetric, entries 0 and 1, no loops. It is connected with high probability for
    `p > log(n)/n`, and has isolated nodes below.

    Args:
        n: the number of nodes.
        p: the probability of an edge.
        key: an integer or a JAX key.

    >>> a = erdos_renyi(30, 0.2, key=0)
    >>> bool((a == a.T).all()), float(jnp.trace(a))
    (True, 0.0)
    """
    require_count(n, "n")
    if not is_traced(p) and not 0 <= p <= 1:
        raise InputError(f"p must be a probability between 0 and 1, but it is {p!r}.")
    require_memory(24 * n * n, f"a graph with {n} nodes", "take fewer nodes")
    drawn = jax.random.uniform(as_key(key), (n, n), dtype=float) < p
    upper = jnp.triu(drawn, 1)
    return (upper | upper.T).astype(float)


GRAPHS: dict[str, Callable[..., Any]] = {"erdos_renyi": erdos_renyi}
"""The graphs by name, as specs call them."""
