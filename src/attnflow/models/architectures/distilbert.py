"""DistilBERT: BERT's layers under other names, without segments."""

from __future__ import annotations

from attnflow.models.architectures.encoder import Names, Sizes, embedding, post_norm
from attnflow.models.architectures.parts import Architecture, LayerReader, Parts
from attnflow.models.config import Config, activation
from attnflow.models.tensors import Tensors
from attnflow.weights import PerLayer

EPS = 1e-12
"""The eps of its norms, which is not in its config."""

NAMES = Names(
    query="attention.q_lin",
    key="attention.k_lin",
    value="attention.v_lin",
    out="attention.out_lin",
    up="ffn.lin1",
    down="ffn.lin2",
    norms=("sa_layer_norm", "output_layer_norm"),
)


def build(config: Config, tensors: Tensors) -> Parts:
    """The parts of a DistilBERT."""
    d = config.count("dim", "hidden_size")
    H = config.heads(d, "n_heads", "num_attention_heads")
    layers = config.count("n_layers", "num_hidden_layers")
    sizes = Sizes(d, H, config.count("hidden_dim"), activation(config, "activation"), EPS)
    reader = LayerReader(tensors, "transformer.layer.{}.", layers)
    system = post_norm(reader, NAMES, sizes, PerLayer)
    return Parts(embedding(config, tensors, d, types=False, eps=EPS), system, layers)


DISTILBERT = Architecture("distilbert.", build)
