"""Write a picture as PNG, PDF and animation, and its JSON last."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from attnflow.errors import unknown
from attnflow.figures import emergence, perspective, slides
from attnflow.figures.recipe import SIZES, Picture, Recipe, Size
from attnflow.files import atomic_write
from attnflow.plot.style import save, style
from attnflow.records import write_json

RECIPES: dict[str, Recipe] = {
    recipe.name: recipe for recipe in (*emergence.RECIPES, *perspective.RECIPES, *slides.RECIPES)
}
"""The recipes by name, in the order of the papers."""


@dataclass(frozen=True)
class FigureRecord:
    """A figure in a folder: its JSON file without the numbers behind the picture.

    Attributes:
        name: the name of the recipe.
        source: where the figure is in the papers.
        shows: what must be seen in it.
        size: `"quick"` or `"paper"`.
        holds: whether all of it was seen.
        seen: the quantities that were measured to decide that.
        files: names of the files in the folder.
        seconds: how long it took.
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
    """The recipe with this name. The error for an unknown name suggests the nearest one."""
    if name not in RECIPES:
        raise unknown("figure", name, RECIPES)
    return RECIPES[name]


def write(name: str, size: Size, folder: Path, film: bool = True) -> FigureRecord:
    """Make a figure and write it to a folder.

    The JSON file is written last: if it exists, the figure is complete. An older figure stays until
    the new one is drawn.

    Args:
        name: the name of a recipe, such as `"E-fig1"`.
        size: `"quick"`, which takes seconds, or `"paper"`, with the sizes of the papers.
        folder: where the files go.
        film: whether to make the animation, if there is one.
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
            write_json(place, asdict(written) | {"numbers": picture.numbers})
            record.unlink(missing_ok=True)
            for file in files:
                place.with_name(file).replace(folder / file)
    return written


def _files(name: str, picture: Picture, folder: Path, film: bool) -> list[str]:
    """Write a picture to a folder; returns the names of its files."""
    # Without a date the same numbers give the same bytes.
    options: dict[str, dict[str, Any]] = {".png": {}, ".pdf": {"metadata": {"CreationDate": None}}}
    for suffix, how in options.items():
        save(picture.figure, folder / f"{name}{suffix}", **how)
    if film and picture.film is not None:
        picture.film(folder / f"{name}.gif")
    return [f"{name}{s}" for s in (*options, ".gif") if (folder / f"{name}{s}").exists()]
