"""Llama: causal pre-norm blocks with RMS norms, rotary positions, grouped heads and gates."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from attnflow.errors import ModelError
from attnflow.models.architectures.parts import (
    Architecture,
    LayerReader,
    Parts,
    by_columns,
    by_rows,
    made,
    scheduled,
)
from attnflow.models.architectures.rope import frequencies
from attnflow.models.config import Config, activation
from attnflow.models.embedding import Embedding
from attnflow.models.tensors import Tensors
from attnflow.systems import PreNormTransformer
from attnflow.weights import Grouped, PerLayer, RMSNorm


def build(config: Config, tensors: Tensors, mask: Any = "causal") -> Parts:
    """The parts of a Llama.

    Args:
        config: the config of the model.
        tensors: its weights.
        mask: which tokens a token may see. Causal by default.
    """
    d = config.count("hidden_size")
    H = config.count("num_attention_heads")
    k = config.count("head_dim") if config.value("head_dim", default=None) else _share(config, d, H)
    layers = config.count("num_hidden_layers")
    root, eps = np.sqrt(d).astype(tensors.dtype), config.number("rms_norm_eps", default=1e-6)
    reader = LayerReader(tensors, "layers.{}.", layers)
    system = made(
        PreNormTransformer,
        k**-0.5,
        **_attention(config, reader, d, H, k),
        **_feed_forward(config, reader, d),
        sigma=activation(config, "hidden_act", default="silu"),
        norm="rms",
        gain=PerLayer(root * _gains(reader, d)),
        eps=d * eps,
        rotary=frequencies(config, k),
        mask=mask,
    )
    words = tensors.read("embed_tokens.weight", config.count("vocab_size"), d)
    final_norm = RMSNorm(root * tensors.read("norm.weight", d), eps=d * eps)
    return Parts(Embedding(jnp.asarray(words)), system, layers, final_norm=final_norm)


def _share(config: Config, d: int, H: int) -> int:
    """The number of rows of a head if the heads share d equally."""
    return d // config.heads(d, "num_attention_heads")


def _gains(reader: LayerReader, d: int) -> np.ndarray:
    names = ("input_layernorm.weight", "post_attention_layernorm.weight")
    return np.stack([reader.read(name, d) for name in names], axis=1)


def _attention(config: Config, reader: LayerReader, d: int, H: int, k: int) -> dict[str, Any]:
    """Queries of H heads. Keys and values have fewer heads, each for a group of queries."""
    few = config.count("num_key_value_heads", default=H)
    if H % few:
        raise ModelError(
            f"{config.path}: num_key_value_heads is {few}, which does not divide {H} heads."
        )
    names = {"Q": ("q_proj", H), "K": ("k_proj", few), "V": ("v_proj", few)}
    biased = config.flag("attention_bias", False)
    weights: dict[str, Any] = {}
    for letter, (name, count) in names.items():
        schedule = partial(Grouped, copies=H // count) if count < H else PerLayer
        W = reader.read(f"self_attn.{name}.weight", count * k, d)
        weights[letter] = schedule(by_rows(W, count))
        if biased:
            bias = reader.read(f"self_attn.{name}.bias", count * k)
            weights[f"b_{letter}"] = schedule(by_rows(bias, count))
    weights["O"] = PerLayer(by_columns(reader.read("self_attn.o_proj.weight", d, H * k), H))
    if biased:
        weights["b_O"] = PerLayer(reader.read("self_attn.o_proj.bias", d))
    return weights


def _feed_forward(config: Config, reader: LayerReader, d: int) -> dict[str, Any]:
    """The gated feed-forward layer."""
    config.require("mlp_bias", False, False, "a biased feed-forward layer is not supported")
    m = config.count("intermediate_size")
    weights = {
        "a": reader.read("mlp.up_proj.weight", m, d),
        "g": reader.read("mlp.gate_proj.weight", m, d),
        "w": reader.read("mlp.down_proj.weight", d, m),
    }
    return scheduled(weights, PerLayer)


LLAMA = Architecture("model.", build)
