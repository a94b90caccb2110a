"""The packages of optional extras, imported when they are needed."""

from __future__ import annotations

import importlib
from typing import Any

from attnflow.errors import InputError


def import_optional(package: str, extra: str, why: str) -> Any:
    """The package, or an error that says why it is needed and with which extra it comes.

    >>> import_optional("json", "models", "a test needs json").loads("[1]")
    [1]
    """
    try:
        return importlib.import_module(package)
    except ImportError:
        raise InputError(
            f'{why}, which is not installed: pip install "attnflow[{extra}]".'
        ) from None
