"""A survey as JSON."""

from __future__ import annotations

from typing import Any

from attnflow.models.predictions import predictions
from attnflow.models.survey_types import LEVELS, Survey
from attnflow.records import plain


def to_json(found: Survey) -> dict[str, Any]:
    """Numbers of a survey as JSON has them: arrays as lists, complex numbers as pairs, NaN as null.

    States of tokens are left out, being large; all counts and measures are there.
    """
    flows = [_without(flow, "xs") for flow in found.flows]
    more = {"flows": flows, "levels": LEVELS, "predictions": predictions(found)}
    return plain(_without(found, "states") | more, not_finite=lambda _: None)


def _without(value: Any, name: str) -> dict[str, Any]:
    return {key: entry for key, entry in vars(value).items() if key != name}
