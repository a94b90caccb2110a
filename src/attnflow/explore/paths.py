"""Stores and models inside the folder that the page was started with, and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from attnflow.errors import InputError

MAX_DEPTH = 4
MAX_FOUND = 200
MAX_FOLDERS = 10_000
"""So many folders are looked at, so that a page that was started at / shows soon."""


def inside(folder: Path, name: str) -> Path:
    """The path of a name in the folder; one that leads out of it, by a link too, is refused.

    >>> inside(Path("/"), "tmp/../tmp") == Path("/tmp").resolve()
    True
    """
    root = folder.resolve()
    try:
        path = (root / name).resolve()
    except (ValueError, RuntimeError, OSError):  # a zero byte, a circle of links
        raise InputError(f"{name!r} is no path.") from None
    if path != root and root not in path.parents:
        raise InputError(f"{name!r} is not inside the folder that this page was started with.")
    return path


def stores(folder: Path) -> list[str]:
    """The stores of sweeps inside the folder."""
    return _holding(folder, "zarr.json", lambda path: (path / "blocks").is_dir())


def models(folder: Path) -> list[str]:
    """The folders that hold a model in the hub's layout."""
    return _holding(folder, "config.json", lambda path: any(path.glob("*.safetensors")))


def _holding(folder: Path, file: str, fits: Callable[[Path], bool]) -> list[str]:
    """Folders that hold a file and fit; what is inside of one is not looked at."""
    found: list[str] = []
    root = folder.resolve()
    for path, below, files in islice(os.walk(root), MAX_FOLDERS):
        here = Path(path)
        if file in files and fits(here):
            found.append(str(here.relative_to(root)))
            below.clear()
        if len(here.relative_to(root).parts) >= MAX_DEPTH:
            below.clear()
        below[:] = sorted(name for name in below if not name.startswith("."))
        if len(found) >= MAX_FOUND:
            break
    return sorted(found)
