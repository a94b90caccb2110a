"""A picture as files: PNG, PDF, film, and the JSON that is written last."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from attnflow.errors import InputError, unknown
from attnflow.figures import recipes
from attnflow.figures.recipe import SIZES, Recipe, Size
from attnflow.files import write_whole
from attnflow.plot.style import style


@dataclass(frozen=True)
class Written:
    """A figure in a folder: its files, what must be seen in it and whether it was.

    It is the content of the figure's JSON file, without the numbers behind the picture.
    """

    name: str
    source: str
    shows: str
    size: str
    holds: bool
    seen: list[dict[str, Any]]
    files: list[str]
    seconds: float


def find(name: str) -> Recipe:
    """The recipe of this name; an unknown one is refused with the nearest."""
    if name not in recipes.RECIPES:
        raise InputError(unknown("figure", name, recipes.RECIPES))
    return recipes.RECIPES[name]


def write(name: str, size: Size, folder: Path, film: bool = True) -> Written:
    """Make a figure and write it to a folder.

    Every file is there whole or not at all, and the JSON comes last: where it is, the figure is
    complete.
    """
    if size not in SIZES:
        raise InputError(unknown("size", size, SIZES))
    recipe = find(name)
    folder.mkdir(parents=True, exist_ok=True)
    record = folder / f"{name}.json"
    record.unlink(missing_ok=True)
    begun = time.monotonic()
    with style():
        picture = recipe.make(size)
        files = [f"{name}.png", f"{name}.pdf"]
        for file in files:
            _save(picture.figure, folder / file)
        if film and picture.film is not None:
            files.append(f"{name}.gif")
            _whole(folder / files[-1], picture.film)
    written = Written(
        name=name,
        source=recipe.source,
        shows=recipe.shows,
        size=size,
        holds=picture.holds,
        seen=[quantity.to_json() for quantity in picture.seen],
        files=files,
        seconds=time.monotonic() - begun,
    )
    numbers = asdict(written) | {"numbers": plain(picture.numbers)}
    write_whole(record, json.dumps(numbers, indent=1, ensure_ascii=False) + "\n")
    return written


def plain(value: Any) -> Any:
    """Arrays as lists and infinities as words, as JSON has neither.

    >>> plain({"r": np.array([0.5, np.inf])})
    {'r': [0.5, 'inf']}
    """
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if hasattr(value, "tolist"):
        return plain(np.asarray(value).tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _save(figure: Figure, path: Path) -> None:
    # Without a date the same numbers give the same bytes.
    metadata = {"CreationDate": None} if path.suffix == ".pdf" else None
    _whole(path, lambda place: figure.savefig(place, metadata=metadata))


def _whole(path: Path, make: Callable[[Path], object]) -> None:
    """Make a file under another name, and give it its own once it is complete."""
    scratch = path.with_name(f".unfinished-{path.name}")
    make(scratch)
    scratch.replace(path)
