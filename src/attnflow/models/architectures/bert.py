"""BERT, and MiniLM, which has the same layers."""

from __future__ import annotations

from typing import Any

from attnflow.models.architectures.encoder import (
    Names,
    Sizes,
    embedding,
    post_norm,
    require_plain,
)
from attnflow.models.architectures.parts import Architecture, LayerReader, Parts
from attnflow.models.config import Config, activation
from attnflow.models.tensors import Tensors
from attnflow.weights import PerLayer

NAMES = Names(
    query="attention.self.query",
    key="attention.self.key",
    value="attention.self.value",
    out="attention.output.dense",
    up="intermediate.dense",
    down="output.dense",
    norms=("attention.output.LayerNorm", "output.LayerNorm"),
)


def build(config: Config, tensors: Tensors, **start: Any) -> Parts:
    """The parts of a BERT; `start` is what differs in its `Embedding`."""
    require_plain(config)
    d = config.count("hidden_size")
    H = config.heads(d, "num_attention_heads")
    layers = config.count("num_hidden_layers")
    sigma, eps = activation(config, "hidden_act"), config.number("layer_norm_eps", default=1e-12)
    sizes = Sizes(d, H, config.count("intermediate_size"), sigma, eps)
    reader = LayerReader(tensors, "encoder.layer.{}.", layers)
    system = post_norm(reader, NAMES, sizes, PerLayer)
    return Parts(embedding(config, tensors, d, eps=eps, **start), system, layers)


BERT = Architecture("bert.", build)
