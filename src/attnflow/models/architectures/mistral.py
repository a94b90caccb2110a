"""Mistral: Llama's layers, whose tokens may see only the last ones before them."""

from __future__ import annotations

from attnflow.attention import Window
from attnflow.models.architectures import llama
from attnflow.models.architectures.parts import Architecture, Parts
from attnflow.models.config import Config
from attnflow.models.tensors import Tensors

WINDOW = 4096
"""The window of a config that does not say; null in a config means none."""


def build(config: Config, tensors: Tensors) -> Parts:
    """The parts of a Mistral."""
    whole = config.fields.get("sliding_window", WINDOW) is None
    mask = "causal" if whole else Window(config.count("sliding_window", default=WINDOW))
    return llama.build(config, tensors, mask)


MISTRAL = Architecture("model.", build)
