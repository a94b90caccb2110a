"""GPT-2: causal pre-norm blocks. Its matrices are stored transposed."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from attnflow.models.architectures.parts import (
    Architecture,
    LayerReader,
    Parts,
    by_columns,
    by_rows,
    made,
    scheduled,
)
from attnflow.models.config import Config, activation
from attnflow.models.embedding import Embedding
from attnflow.models.tensors import Tensors
from attnflow.systems import PreNormTransformer
from attnflow.weights import LayerNorm, PerLayer


def build(config: Config, tensors: Tensors) -> Parts:
    """The parts of a GPT-2."""
    config.require(
        "scale_attn_by_inverse_layer_idx", False, False, "all layers must scale scores alike"
    )
    config.require("add_cross_attention", False, False, "cross-attention is not supported")
    d = config.count("n_embd", "hidden_size")
    H = config.heads(d, "n_head", "num_attention_heads")
    m = config.count("n_inner", default=4 * d)
    layers = config.count("n_layer", "num_hidden_layers")
    eps = config.number("layer_norm_epsilon", default=1e-5)
    system = made(
        PreNormTransformer,
        (d // H) ** -0.5 if config.flag("scale_attn_weights", True) else 1.0,
        **scheduled(_weights(LayerReader(tensors, "h.{}.", layers), d, H, m), PerLayer),
        sigma=activation(config, "activation_function", default="gelu_new"),
        eps=eps,
        mask="causal",
    )
    words = tensors.read("wte.weight", config.count("vocab_size"), d)
    places = tensors.read("wpe.weight", config.count("n_positions", "max_position_embeddings"), d)
    final_norm = LayerNorm(tensors.read("ln_f.weight", d), tensors.read("ln_f.bias", d), eps)
    return Parts(
        Embedding(jnp.asarray(words), jnp.asarray(places)), system, layers, final_norm=final_norm
    )


def _weights(reader: LayerReader, d: int, H: int, m: int) -> dict[str, np.ndarray]:
    """The weights of all layers. Queries, keys and values are stored in one matrix."""
    weights = reader.norms(("ln_1", "ln_2"), d)
    merged = np.split(reader.read("attn.c_attn.weight", d, 3 * d).swapaxes(1, 2), 3, axis=1)
    biases = np.split(reader.read("attn.c_attn.bias", 3 * d), 3, axis=1)
    for letter, W, bias in zip("QKV", merged, biases, strict=True):
        weights |= {letter: by_rows(W, H), f"b_{letter}": by_rows(bias, H)}
    O = reader.read("attn.c_proj.weight", d, d).swapaxes(1, 2)
    return weights | {
        "O": by_columns(O, H),
        "b_O": reader.read("attn.c_proj.bias", d),
        "a": reader.read("mlp.c_fc.weight", d, m).swapaxes(1, 2),
        "b": reader.read("mlp.c_fc.bias", m),
        "w": reader.read("mlp.c_proj.weight", m, d).swapaxes(1, 2),
        "c": reader.read("mlp.c_proj.bias", d),
    }


GPT2 = Architecture("transformer.", build)
