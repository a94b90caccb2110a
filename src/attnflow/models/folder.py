"""Find the files of a model: a local folder, or the hub and its cache."""

from __future__ import annotations

import re
from pathlib import Path

from attnflow.errors import InputError, ModelError, first_line
from attnflow.extras import import_optional

HUB_FILES = (
    "config.json",
    "tokenizer.json",
    "model.safetensors",
    "model.safetensors.index.json",
    "model-*-of-*.safetensors",
)
"""Only these files are downloaded; none of them can contain code."""

REPOSITORY = re.compile(r"[\w.-]+(/[\w.-]+)?")


def locate(name: str | Path, revision: str | None = None) -> Path:
    """The folder of a model: `name` if that is a folder, else a copy from the hub."""
    try:
        folder = Path(name).expanduser()
    except RuntimeError as error:
        raise InputError(f"{name} is not a folder: {error}") from None
    if folder.is_dir():
        if revision is not None:
            raise InputError(f"revision is for models from the hub, but {folder} is a folder.")
        return folder
    if folder.exists():
        raise InputError(f"{folder} is a file: give the folder that holds config.json.")
    if not REPOSITORY.fullmatch(str(name)):
        raise InputError(f"{name} is neither a folder here nor a name such as 'albert-xlarge-v2'.")
    return _from_hub(str(name), revision)


def _from_hub(name: str, revision: str | None) -> Path:
    """The folder in the hub's cache, after downloading what is missing."""
    hub = import_optional("huggingface_hub", "models", "a model from the hub needs huggingface_hub")
    try:
        return Path(hub.snapshot_download(name, revision=revision, allow_patterns=list(HUB_FILES)))
    except (OSError, ValueError, RuntimeError) as error:
        at = "" if revision is None else f" at revision {revision!r}"
        raise ModelError(
            f"{name}{at} is not a folder here, and it could not be loaded from the hub or its "
            f"cache: {first_line(error)}"
        ) from None
