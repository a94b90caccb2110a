"""ALBERT: BERT's layers with the same weights in all of them, and a smaller table of words."""

from __future__ import annotations

from functools import partial

import jax.numpy as jnp

from attnflow.models.architectures.encoder import Names, embedding, post_norm, sizes_of
from attnflow.models.architectures.parts import Architecture, LayerReader, Parts
from attnflow.models.config import Config
from attnflow.models.tensors import Tensors
from attnflow.weights import PerLayer

NAMES = Names(
    query="attention.query",
    key="attention.key",
    value="attention.value",
    out="attention.dense",
    up="ffn",
    down="ffn_output",
    norms=("attention.LayerNorm", "full_layer_layer_norm"),
)


def build(config: Config, tensors: Tensors) -> Parts:
    """The parts of an ALBERT. Its weights are stored once for each group of layers."""
    config.require("inner_group_num", 1, 1, "only groups with one kind of layer are supported")
    sizes = sizes_of(config)
    d, e = sizes.d, config.count("embedding_size")
    layers = config.count("num_hidden_layers")
    groups = config.count("num_hidden_groups", default=1)
    reader = LayerReader(tensors, "encoder.albert_layer_groups.{}.albert_layers.0.", groups)
    each = partial(PerLayer, every=layers / groups)
    system = post_norm(reader, NAMES, sizes, each if groups > 1 else lambda W: W[0])
    start = embedding(
        config,
        tensors,
        e,
        eps=sizes.eps,
        projection=jnp.asarray(tensors.read("encoder.embedding_hidden_mapping_in.weight", d, e)),
        bias=jnp.asarray(tensors.read("encoder.embedding_hidden_mapping_in.bias", d)),
    )
    return Parts(start, system, layers, shared=groups == 1)


ALBERT = Architecture("albert.", build)
