"""What BERT and its kin share: post-norm blocks that differ only in the names of their tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from attnflow.models.architectures.parts import LayerReader, by_columns, by_rows, made, scheduled
from attnflow.models.config import Config, activation
from attnflow.models.embedding import Embedding
from attnflow.models.tensors import Tensors
from attnflow.systems import PostNormTransformer
from attnflow.weights import LayerNorm


class Names(NamedTuple):
    """What an architecture calls the linear maps and norms of a layer.

    Attributes:
        query: queries of all heads.
        key: keys of all heads.
        value: values of all heads.
        out: the output matrix of attention.
        up: the first matrix of the feed-forward layer.
        down: its second matrix.
        norms: the norms after attention and after the feed-forward layer.
    """

    query: str
    key: str
    value: str
    out: str
    up: str
    down: str
    norms: tuple[str, str]


class Sizes(NamedTuple):
    """The numbers of a config that shape a layer.

    Attributes:
        d: dimension of the tokens.
        H: number of heads.
        m: number of hidden units of the feed-forward layer.
        sigma: its nonlinearity, a name in `weights.ACTIVATIONS`.
        eps: the constant under the root of the norms.
    """

    d: int
    H: int
    m: int
    sigma: str
    eps: float


def post_norm(
    reader: LayerReader, names: Names, sizes: Sizes, schedule: Callable[[np.ndarray], Any]
) -> PostNormTransformer:
    """The blocks of an encoder.

    Args:
        reader: reads a tensor of all layers.
        names: what the architecture calls its tensors.
        sizes: the sizes of a layer.
        schedule: turns weights with a first axis of layers into a function of time, or into the
            one weight that all layers share.
    """
    d, H, m, sigma, eps = sizes
    weights = reader.norms(names.norms, d)
    for letter, name in zip("QKV", (names.query, names.key, names.value), strict=True):
        W, bias = reader.linear(name, d, d)
        weights |= {letter: by_rows(W, H), f"b_{letter}": by_rows(bias, H)}
    O, weights["b_O"] = reader.linear(names.out, d, d)
    weights["O"] = by_columns(O, H)
    weights["a"], weights["b"] = reader.linear(names.up, m, d)
    weights["w"], weights["c"] = reader.linear(names.down, d, m)
    beta = (d // H) ** -0.5
    return made(PostNormTransformer, beta, **scheduled(weights, schedule), sigma=sigma, eps=eps)


def sizes_of(config: Config) -> Sizes:
    """The sizes of a BERT or its kin; raises for variants that are not supported."""
    config.require(
        "position_embedding_type", "absolute", "absolute", "only absolute positions are supported"
    )
    config.require("is_decoder", False, False, "only encoders of this type are supported")
    d = config.count("hidden_size")
    H, m = config.heads(d, "num_attention_heads"), config.count("intermediate_size")
    eps = config.number("layer_norm_eps", default=1e-12)
    return Sizes(d, H, m, activation(config, "hidden_act"), eps)


def embedding(
    config: Config, tensors: Tensors, e: int, *, types: bool = True, eps: float, **more: Any
) -> Embedding:
    """The embedding of an encoder: words, positions and segments, normalised.

    Args:
        config: the config of the model.
        tensors: its weights.
        e: number of entries in each row of the tables.
        types: whether the model has a table of segments.
        eps: the constant under the root of the norm.
        **more: more arguments of `Embedding`.
    """

    def table(name: str, field: str) -> np.ndarray:
        return tensors.read(f"embeddings.{name}_embeddings.weight", config.count(field), e)

    return Embedding(
        words=jnp.asarray(table("word", "vocab_size")),
        places=jnp.asarray(table("position", "max_position_embeddings")),
        types=jnp.asarray(table("token_type", "type_vocab_size")) if types else None,
        norm=LayerNorm(
            tensors.read("embeddings.LayerNorm.weight", e),
            tensors.read("embeddings.LayerNorm.bias", e),
            eps,
        ),
        **more,
    )
