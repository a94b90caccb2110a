"""What closed forms are asked about, and what checks and questions are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Protocol, TypeVar, runtime_checkable

from attnflow.errors import unknown

Numbers = Sequence[float | int]
"""A list of numbers, where an array of them is expected."""


@runtime_checkable
class Called(Protocol):
    """Something that has a name and other names."""

    id: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]]


Row = TypeVar("Row", bound=Called)


def look_up(what: str, name: str, rows: Iterable[Row]) -> Row:
    """The row of an id or of an alias, in any case; an unknown one gets the nearest name."""
    names = {alias: row for row in rows for alias in (row.id, *row.aliases)}
    folded = {alias.lower(): row for alias, row in names.items()}
    if str(name).lower() not in folded:
        raise unknown(what, name, names)
    return folded[str(name).lower()]
