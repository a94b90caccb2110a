"""BERT, and MiniLM, which has the same layers."""

from __future__ import annotations

from typing import Any

from attnflow.models.architectures.encoder import Names, embedding, post_norm, sizes_of
from attnflow.models.architectures.parts import Architecture, LayerReader, Parts
from attnflow.models.config import Config
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
    """The parts of a BERT.

    Args:
        config: the config of the model.
        tensors: its weights.
        **start: more arguments of its `Embedding`.
    """
    sizes = sizes_of(config)
    layers = config.count("num_hidden_layers")
    reader = LayerReader(tensors, "encoder.layer.{}.", layers)
    system = post_norm(reader, NAMES, sizes, PerLayer)
    return Parts(embedding(config, tensors, sizes.d, eps=sizes.eps, **start), system, layers)


BERT = Architecture("bert.", build)
