"""Mistral: Llama's layers with a sliding window: a token sees only the last few before it."""

from __future__ import annotations

from attnflow.attention import Window
from attnflow.models.architectures import llama
from attnflow.models.architectures.parts import Architecture, Parts
from attnflow.models.config import Config
from attnflow.models.tensors import Tensors

WINDOW = 4096
"""The window if the config has none; null in a config means no window."""


def build(config: Config, tensors: Tensors) -> Parts:
    """The parts of a Mistral."""
    whole = config.fields.get("sliding_window", WINDOW) is None
    mask = "causal" if whole else Window(config.count("sliding_window", default=WINDOW))
    return llama.build(config, tensors, mask)


MISTRAL = Architecture("model.", build)
