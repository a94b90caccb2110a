"""Fields of forms, each with its label."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dash import dcc, html

from attnflow.explore.address import Address

Field = Callable[[str, Any], Any]
"""What makes a field from its id and its value."""


def aria(**said: str) -> dict[str, Any]:
    """Attributes that a screen reader reads.

    >>> aria(label="Parts")
    {'aria-label': 'Parts'}
    """
    return {f"aria-{name}": text for name, text in said.items()}


def number(
    least: float | int, most: float | int, step: Any = "any", *, wait: float | bool = False
) -> Field:
    """A field for a number in a range; `wait` are seconds after the last key, before it counts."""

    def make(name: str, value: Any) -> Any:
        return dcc.Input(
            id=name,
            type="number",
            value=value,
            min=least,
            max=most,
            step=step,
            debounce=wait,
            required=True,
        )

    return make


def choice(options: Iterable[str]) -> Field:
    """A field for one of several words."""

    def make(name: str, value: Any) -> Any:
        return dcc.Dropdown(list(options), value, id=name, clearable=False)

    return make


def words(rows: int, hint: str) -> Field:
    """A field for several lines."""

    def make(name: str, value: Any) -> Any:
        return dcc.Textarea(id=name, value=value, rows=rows, placeholder=hint)

    return make


def rows(part: str, fields: Mapping[str, Field], view: Address) -> list[Any]:
    """Labels with the fields of a view; the id of a field is `{part}-{name}`."""
    values = view.model_dump()
    return [
        html.Div(
            [
                labelled(view.label(name, values), f"{part}-{name}"),
                make(f"{part}-{name}", values[name]),
            ],
            className="field",
            id=f"row-{part}-{name}",
        )
        for name, make in fields.items()
    ]


def labelled(text: str, name: str) -> Any:
    """The label of the field with the id `name`."""
    return html.Label(text, htmlFor=name, id=f"label-{name}")


def ids(part: str, fields: Mapping[str, Field]) -> list[str]:
    """The ids of fields, in their order."""
    return [f"{part}-{name}" for name in fields]
