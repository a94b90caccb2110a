"""From a trained model towards the papers' idealisation: the same system with parts removed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from attnflow.errors import InputError
from attnflow.systems import PostNormTransformer, PreNormTransformer
from attnflow.weights import Grouped, PerLayer

Blocks = TypeVar("Blocks", bound=PostNormTransformer | PreNormTransformer)


def without_feed_forward(system: Blocks) -> Blocks:
    """The system with attention only."""
    return _replaced(system, lambda s: [s.feed_forward], [None])


def without_biases(system: Blocks) -> Blocks:
    """Without anything that is added: biases of heads and of the feed-forward layer, shifts."""
    attention_alone = system.feed_forward is None

    def biases(s: Any) -> list[Any]:
        heads = s.heads
        found = [heads.b_Q, heads.b_K, heads.b_V, heads.b_O, s.norm.shift]
        return found + ([] if attention_alone else [s.feed_forward.b, s.feed_forward.c])

    return _replaced(system, biases, [None] * len(biases(system)))


def without_gains(system: Blocks) -> Blocks:
    """Without the trained diagonal of norms: normalised tokens have length √d."""
    root = system.norm.gain_to_root(system.norm.dim or 1)
    gain = None if root is None else jnp.asarray(root, system.heads.at(0.0, float).Q.dtype)
    return _replaced(system, lambda s: [s.norm.gain], [gain])


def with_heads(system: Blocks, heads: Sequence[int]) -> Blocks:
    """With only these heads of each layer."""
    kept = np.asarray(require_heads(system, heads))
    names = ("Q", "K", "V", "O", "b_Q", "b_K", "b_V")
    chosen = [_chosen(getattr(system.heads, name), kept) for name in names]
    return _replaced(system, lambda s: [getattr(s.heads, name) for name in names], chosen)


def require_heads(system: Blocks, heads: Sequence[int]) -> tuple[int, ...]:
    """The numbers of some heads of a layer, or an error."""
    count = system.heads.count or 1
    kept = tuple(heads)
    whole = all(isinstance(h, (int, np.integer)) and not isinstance(h, bool) for h in kept)
    if not kept or not whole or len(set(kept)) < len(kept) or not set(kept) <= set(range(count)):
        raise InputError(
            f"heads must be one or more distinct numbers from 0 to {count - 1}, not {heads!r}."
        )
    return kept


def _chosen(W: Any, kept: np.ndarray) -> Any:
    """A weight with only some of its heads."""
    if W is None:
        return None
    if isinstance(W, Grouped):
        return PerLayer(W.layers[:, kept // W.copies], every=W.every)
    if isinstance(W, PerLayer):
        return PerLayer(W.layers[:, kept], every=W.every)
    return W[kept]


def _replaced(system: Blocks, where: Callable[[Any], list[Any]], new: list[Any]) -> Blocks:
    return eqx.tree_at(where, system, new, is_leaf=lambda leaf: leaf is None)
