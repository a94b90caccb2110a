"""Trained Transformers as systems: loading them, their text, and their states at every layer."""

from attnflow.errors import ModelError
from attnflow.models.architectures import ARCHITECTURES
from attnflow.models.embedding import Embedding
from attnflow.models.encoding import Encoded
from attnflow.models.load import load
from attnflow.models.model import Model

__all__ = ["ARCHITECTURES", "Embedding", "Encoded", "Model", "ModelError", "load"]
