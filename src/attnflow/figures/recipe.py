"""A recipe: a run, a picture of it, and the numbers that tell whether it came out right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from matplotlib.figure import Figure

from attnflow.verdicts import Quantity

Size = Literal["quick", "paper"]
SIZES: tuple[Size, ...] = ("quick", "paper")


@dataclass(frozen=True)
class Picture:
    """What a recipe makes: the picture, the numbers behind it, and what must be seen in it.

    Attributes:
        figure: the picture.
        numbers: the numbers behind it: strings, numbers, NumPy arrays, lists and tables of them.
        seen: the quantities that tell whether the picture shows what it must.
        film: `film(path)` writes an animation; None if the papers have none.

    >>> Picture(Figure(), {}, (Quantity("rank of P", 2, "≤", 2),)).holds
    True
    """

    figure: Figure
    numbers: dict[str, Any]
    seen: tuple[Quantity, ...]
    film: Callable[[Path], object] | None = None

    @property
    def holds(self) -> bool:
        """Whether the picture shows everything that it must."""
        return bool(self.seen) and all(quantity.holds for quantity in self.seen)


@dataclass(frozen=True)
class Recipe:
    """A figure of the papers.

    Attributes:
        name: its name, such as `"E-fig1"`.
        source: where it is in the papers.
        shows: what must be seen in it.
        make: `make(size)` makes the picture. Its keys are fixed: the same size gives the same
            numbers.
        model: whether it shows a trained model.
    """

    name: str
    source: str
    shows: str
    make: Callable[[Size], Picture]
    model: bool = False


def by_size(size: Size, quick: Any, paper: Any) -> Any:
    """The value for a size.

    Args:
        size: `"quick"` or `"paper"`.
        quick: the value for quick size.
        paper: the value for the paper's size.

    >>> by_size("quick", 40, 400)
    40
    """
    return {"quick": quick, "paper": paper}[size]
