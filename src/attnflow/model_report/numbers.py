"""A survey as JSON."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from attnflow.models.predictions import predictions
from attnflow.models.survey_types import LEVELS, Survey


def to_json(value: Any) -> Any:
    """A survey for JSON: arrays as lists, complex numbers as pairs, NaN as null.

    The states of tokens are left out because they are large.

    >>> to_json({"a": np.array([1.0, np.nan]), "b": 1 + 2j})
    {'a': [1.0, None], 'b': [1.0, 2.0]}
    """
    if isinstance(value, Survey):
        said = [prediction._asdict() for prediction in predictions(value)]
        return _fields(value, leave={"states"}) | {"levels": list(LEVELS), "predictions": said}
    if is_dataclass(value):
        return _fields(value, leave={"xs"})
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return to_json(value._asdict())
    if isinstance(value, dict):
        return {key: to_json(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        return to_json(value.tolist())
    if isinstance(value, (list, tuple)):
        return [to_json(entry) for entry in value]
    if isinstance(value, complex):
        return [value.real, value.imag]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _fields(value: Any, leave: set[str]) -> dict[str, Any]:
    names = [field.name for field in fields(value) if field.name not in leave]
    return {name: to_json(getattr(value, name)) for name in names}
