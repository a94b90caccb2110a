"""What a recipe is: a run, a picture of it, and the numbers that say whether it came out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from matplotlib.figure import Figure

from attnflow.theory.checks.base import Quantity

Size = Literal["quick", "paper"]
SIZES: tuple[Size, ...] = ("quick", "paper")


@dataclass(frozen=True)
class Picture:
    """What a recipe made: the picture, the numbers behind it, and what must be seen in it.

    `numbers` holds what JSON can: words, numbers, lists and tables of them, and NumPy arrays.
    `film(path)` writes an animation, where the papers have one.

    >>> Picture(Figure(), {}, (Quantity("rank of P", 2, "≤", 2),)).holds
    True
    """

    figure: Figure
    numbers: dict[str, Any]
    seen: tuple[Quantity, ...]
    film: Callable[[Path], object] | None = None

    @property
    def holds(self) -> bool:
        """Whether all that must be seen was measured to be there."""
        return bool(self.seen) and all(quantity.holds for quantity in self.seen)


@dataclass(frozen=True)
class Recipe:
    """A figure of the papers: where it stands, what it shows, and how it is made.

    `make(size)` draws from fixed keys: the same size gives the same numbers. `model` says that it
    shows a trained model.
    """

    name: str
    source: str
    shows: str
    make: Callable[[Size], Picture]
    model: bool = False


def by_size(size: Size, quick: Any, paper: Any) -> Any:
    """The value for the size that is made.

    >>> by_size("quick", 40, 400)
    40
    """
    return {"quick": quick, "paper": paper}[size]
