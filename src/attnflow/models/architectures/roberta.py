"""RoBERTa: BERT's layers, with positions that count from the id of the padding token."""

from __future__ import annotations

from attnflow.models.architectures import bert
from attnflow.models.architectures.parts import Architecture, Parts
from attnflow.models.config import Config
from attnflow.models.tensors import Tensors


def build(config: Config, tensors: Tensors) -> Parts:
    """The parts of a RoBERTa."""
    return bert.build(config, tensors, padding=config.count("pad_token_id", default=1, least=0))


ROBERTA = Architecture("roberta.", build)
