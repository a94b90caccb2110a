"""The attention of a single layer, and the papers' systems with its weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Real

from attnflow.checks import as_floats, require_count, require_state
from attnflow.errors import InputError
from attnflow.models.model import Model
from attnflow.models.variants import require_heads, with_heads
from attnflow.systems import SA, PostNormTransformer, PreNormTransformer
from attnflow.weights import AffineHeads
from attnflow.weights.heads import AbstractHeads, at_time


def extract_heads(model: Model, layer: int) -> AffineHeads:
    """Q_h (k × d), K_h (k × d), V_h (d × d) of a layer and their biases, heads on the first axis.

    The output matrix is folded into the values: V_h is the model's `O_h V_h`, and b_V_h its
    `O_h b_V_h`; b_O is added once, for all heads together. Scores are
    `beta <Q_h y_i + b_Q_h, K_h y_j + b_K_h>` with `model.system.beta` = 1/√k. Here y are the tokens
    that the layer sees: x itself in a post-norm model, N₁(x) in a pre-norm one. In a rotary model
    the heads carry `rotary`, and scores depend on positions: `Q_hᵀ K_h` is then the bilinear form
    of two tokens at the same position.

    >>> from attnflow.models import Embedding
    >>> import attnflow as af
    >>> system = af.PostNormTransformer(V=jnp.ones((2, 1, 3)), O=jnp.ones((2, 3, 1)))
    >>> model = Model("toy", {}, None, Embedding(words=jnp.eye(3)), system, layers=1)
    >>> extract_heads(model, 0).V.shape
    (2, 3, 3)
    """
    own = layer_heads(model, layer)
    O, V, b_V = own.O, own.V, own.b_V
    if O is not None:
        V = O if V is None else O @ V
        b_V = None if b_V is None else jnp.einsum("...dk,...k->...d", O, b_V)
    return AffineHeads(
        own.Q, own.K, V, b_Q=own.b_Q, b_K=own.b_K, b_V=b_V, b_O=own.b_O, rotary=own.rotary
    )


def layer_heads(model: Model, layer: int) -> Any:
    """The heads of a layer as the model has them, with O and V apart."""
    _check_layer(model, layer)
    return _at_layer(model.system.heads, np.asarray(float(layer)), _dtype(model))


@eqx.filter_jit
def _at_layer(heads: AbstractHeads, layer: Any, dtype: np.dtype) -> AbstractHeads:
    return heads.at(layer, dtype)


def attention_layer(model: Model, layer: int) -> PostNormTransformer | PreNormTransformer:
    """The model's system with attention only, and the weights of one layer at all times.

    `drift(0.0, x)` is what the attention sub-layer adds to the tokens x (a pre-norm model
    normalises them first), and `attention(0.0, x)` is its attention matrix. The heads are those
    of `extract_heads`.
    """
    heads, dtype = extract_heads(model, layer), _dtype(model)
    norm = model.system.norm
    gain, shift = (at_time(W, float(layer), dtype) for W in (norm.gain, norm.shift))
    return eqx.tree_at(
        lambda s: (s.heads, s.feed_forward, s.norm.gain, s.norm.shift),
        model.system,
        (heads, None, gain, shift),
        is_leaf=lambda leaf: leaf is None,
    )


def seen_tokens(model: Model, layer: int, x: Real[Array, "n d"]) -> Float[Array, "n d"]:
    """The tokens that the heads of a layer see: x itself, or N₁(x) in a pre-norm model.

    Args:
        model: a trained model.
        layer: its layer, from 0.
        x: the tokens before the layer, shape (n, d).
    """
    _check_layer(model, layer)
    x = as_floats(x)
    post = isinstance(model.system, PostNormTransformer)
    return x if post else model.system.norm(float(layer), x, 0)


def idealised(
    model: Model, layer: int, x: Real[Array, "n d"], heads: Sequence[int] | None = None
) -> SA:
    """Attention on the sphere, [P](2.3), with the trained Q_h, K_h, V_h of a layer: [S].

    It leaves out biases, rotary positions, the feed-forward layer and gains. The tokens u are the
    directions of the tokens that the layer sees. Scores `beta r² <Q u_i, K u_j>` of unit tokens
    are those of tokens of length r, so β is `model.system.beta` times r², where r² is the mean
    squared length at the state x.

    Args:
        model: a trained model.
        layer: its layer, from 0.
        x: the tokens before the layer, shape (n, d); they only set β.
        heads: the heads to keep, from 0. All of them by default.
    """
    kept = None if heads is None else require_heads(model.system, heads)
    require_state(x)
    y = seen_tokens(model, layer, x)
    beta, Q, K, V = _ideal(model.system, np.asarray(float(layer)), y, kept)
    return SA(beta, Q=Q, K=K, V=V, mask=model.system.mask)


@eqx.filter_jit
def _ideal(
    system: PostNormTransformer | PreNormTransformer,
    layer: Any,
    y: Float[Array, "n d"],
    kept: tuple[int, ...] | None,
) -> tuple[Any, ...]:
    """β, Q, K and V of `idealised`."""
    system = system if kept is None else with_heads(system, kept)
    own: Any = system.heads.at(layer, y.dtype)
    V = own.V if own.O is None else own.O if own.V is None else own.O @ own.V
    beta = system.beta.astype(y.dtype) * jnp.mean(jnp.sum(y * y, axis=-1))
    return beta, own.Q, own.K, V


def _check_layer(model: Model, layer: Any) -> None:
    layer = require_count(layer, "layer", least=0)
    if layer >= model.layers and not model.shared:
        raise InputError(
            f"layer must be from 0 to {model.layers - 1}, as {model.name} has {model.layers} "
            f"layers, but it is {layer}."
        )


def _dtype(model: Model) -> np.dtype:
    return np.dtype(model.embedding.words.dtype)
