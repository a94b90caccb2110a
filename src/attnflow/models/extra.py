"""The packages of the extra `models`, imported when they are needed."""

from __future__ import annotations

import importlib
from typing import Any

from attnflow.errors import InputError


def needed(package: str, purpose: str) -> Any:
    """The package, or an error that names the extra it comes with.

    >>> needed("json", "a test").loads("[1]")
    [1]
    """
    try:
        return importlib.import_module(package)
    except ImportError:
        raise InputError(
            f'{purpose} needs {package}, which is not installed: pip install "attnflow[models]".'
        ) from None
