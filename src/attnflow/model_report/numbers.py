"""A survey as JSON."""

from __future__ import annotations

from typing import Any

from attnflow.models.predictions import predictions
from attnflow.models.survey_types import LEVELS, Survey
from attnflow.records import plain


def to_json(found: Survey) -> dict[str, Any]:
    """A survey for JSON: arrays as lists, complex numbers as pairs, NaN as null.

    The states of tokens are left out because they are large.
    """
    flows = [_without(flow, "xs") for flow in found.flows]
    more = {"flows": flows, "levels": LEVELS, "predictions": predictions(found)}
    return plain(_without(found, "states") | more, not_finite=lambda _: None)


def _without(value: Any, name: str) -> dict[str, Any]:
    return {key: entry for key, entry in vars(value).items() if key != name}
