"""Where the files of a model are: a folder here, or one from the hub and its cache."""

from __future__ import annotations

import re
from pathlib import Path

from attnflow.errors import InputError, ModelError
from attnflow.extras import import_optional

HUB_FILES = (
    "config.json",
    "tokenizer.json",
    "model.safetensors",
    "model.safetensors.index.json",
    "model-*-of-*.safetensors",
)
"""The files that are fetched, and no others: none of them can hold code."""

REPOSITORY = re.compile(r"[\w.-]+(/[\w.-]+)?")


def locate(name: str | Path, revision: str | None = None) -> Path:
    """The folder of a model: the name itself where it is one, else the hub's copy of it."""
    try:
        folder = Path(name).expanduser()
    except RuntimeError as error:
        raise InputError(f"{name} is no folder: {error}") from None
    if folder.is_dir():
        if revision is not None:
            raise InputError(f"revision is for models of the hub, but {folder} is a folder.")
        return folder
    if folder.exists():
        raise InputError(f"{folder} is a file: name the folder that holds config.json.")
    if not REPOSITORY.fullmatch(str(name)):
        raise InputError(f"{name} is neither a folder here nor a name such as 'albert-xlarge-v2'.")
    return _from_hub(str(name), revision)


def _from_hub(name: str, revision: str | None) -> Path:
    """The folder of the hub's cache, after what is missing there was fetched."""
    hub = import_optional("huggingface_hub", "models", "a model from the hub needs huggingface_hub")
    try:
        return Path(hub.snapshot_download(name, revision=revision, allow_patterns=list(HUB_FILES)))
    except (OSError, ValueError, RuntimeError) as error:
        at = "" if revision is None else f" at revision {revision!r}"
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelError(
            f"{name}{at} is no folder here, and it could not be had from the hub or its cache: "
            f"{said[0]}"
        ) from None
