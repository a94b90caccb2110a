"""A picture as files: PNG, PDF, film, and the JSON that is written last."""

from __future__ import annotations

import json
import math
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attnflow.errors import unknown
from attnflow.figures import emergence, perspective, slides
from attnflow.figures.recipe import SIZES, Picture, Recipe, Size
from attnflow.files import atomic_write, atomic_write_text
from attnflow.plot.style import save, style

RECIPES: dict[str, Recipe] = {
    recipe.name: recipe for recipe in (*emergence.RECIPES, *perspective.RECIPES, *slides.RECIPES)
}
"""The recipes by name, in the order of the papers."""


@dataclass(frozen=True)
class FigureRecord:
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
    if name not in RECIPES:
        raise unknown("figure", name, RECIPES)
    return RECIPES[name]


def write(name: str, size: Size, folder: Path, film: bool = True) -> FigureRecord:
    """Make a figure and write it to a folder.

    Every file is there whole or not at all, and the JSON comes last: where it is, the figure is
    complete. An older figure stays until the new one is drawn.
    """
    if size not in SIZES:
        raise unknown("size", size, SIZES)
    recipe = find(name)
    folder.mkdir(parents=True, exist_ok=True)
    record = folder / f"{name}.json"
    begun = time.monotonic()
    with style():
        picture = recipe.make(size)
        with atomic_write(record) as place:
            files = _files(name, picture, place.parent, film)
            written = FigureRecord(
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
            atomic_write_text(place, json.dumps(numbers, indent=1, ensure_ascii=False) + "\n")
            record.unlink(missing_ok=True)
            for file in files:
                place.with_name(file).replace(folder / file)
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


def _files(name: str, picture: Picture, folder: Path, film: bool) -> list[str]:
    """Draw a picture into a folder; the names of its files."""
    # Without a date the same numbers give the same bytes.
    options: dict[str, dict[str, Any]] = {".png": {}, ".pdf": {"metadata": {"CreationDate": None}}}
    for suffix, how in options.items():
        save(picture.figure, folder / f"{name}{suffix}", **how)
    if film and picture.film is not None:
        picture.film(folder / f"{name}.gif")
    return [f"{name}{s}" for s in (*options, ".gif") if (folder / f"{name}{s}").exists()]
