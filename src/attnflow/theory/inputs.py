"""Checks of what the closed forms are asked about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from attnflow.checks import is_traced, require_finite
from attnflow.errors import InputError

Numbers = Sequence[float | int]
"""A list of numbers, where an array of them is expected."""


def require_nonnegative(value: Any, name: str) -> None:
    """Refuse a number, or an array with an entry, that is not finite or is below zero."""
    if is_traced(value):
        return
    require_finite(value, name)
    least = np.min(np.asarray(value), initial=0)
    if least < 0:
        raise InputError(f"{name} must be at least 0, but it is {float(least):g}.")
