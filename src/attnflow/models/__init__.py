"""Trained Transformers as systems: load them, run them, look inside."""

from attnflow.errors import ModelError
from attnflow.models.architectures import ARCHITECTURES
from attnflow.models.embedding import Embedding
from attnflow.models.encoding import Encoded
from attnflow.models.extracting import attention_layer, extract_heads, idealised, seen_tokens
from attnflow.models.flows import Flow, trained_flow
from attnflow.models.load import load
from attnflow.models.model import Model
from attnflow.models.spectra import (
    HeadSpectrum,
    LayerSpectrum,
    head_matrices,
    head_spectrum,
    spectra,
)
from attnflow.models.survey import survey
from attnflow.models.survey_types import Survey, TextSurvey

__all__ = [
    "ARCHITECTURES",
    "Embedding",
    "Encoded",
    "Flow",
    "HeadSpectrum",
    "LayerSpectrum",
    "Model",
    "ModelError",
    "Survey",
    "TextSurvey",
    "attention_layer",
    "extract_heads",
    "head_matrices",
    "head_spectrum",
    "idealised",
    "load",
    "seen_tokens",
    "spectra",
    "survey",
    "trained_flow",
]
