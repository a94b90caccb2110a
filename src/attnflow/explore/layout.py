"""What views are made of: forms with their fields at the left, pictures at the right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dash import dcc, html

from attnflow.explore.address import Address

Field = Callable[[str, Any], Any]
"""What makes a field from its id and its value."""

GRAPH: Any = {"displaylogo": False, "responsive": True, "toImageButtonOptions": {"scale": 2}}


def columns(about: str, left: Sequence[Any], name: str, right: Sequence[Any]) -> Any:
    """A form, which a screen reader calls `about`, and the section called `name` beside it."""
    return html.Div(
        [
            html.Form(list(left), className="form", **aria(label=about)),
            html.Section([html.H1(name), *right], className="content", **aria(label=name)),
        ],
        className="columns",
    )


def picture(name: str, caption: str, kind: str = "side", *, hidden: bool = False) -> Any:
    """A plot and its caption, `caption-{name}`; the class of `box-{name}` hides the whole."""
    return html.Figure(
        [
            html.Figcaption(caption, id=f"caption-{name}"),
            dcc.Graph(id=name, config=GRAPH, className="plot", responsive=True),
        ],
        id=f"box-{name}",
        className=picture_class(kind, shown=not hidden),
    )


def picture_class(kind: str, *, shown: bool) -> str:
    """The class of a picture of some kind, shown or hidden.

    >>> picture_class("side", shown=False)
    'picture side hidden'
    """
    return f"picture {kind}" if shown else f"picture {kind} hidden"


def warning(said: str) -> Any:
    """What is wrong with an address, read aloud at once."""
    return html.P(said, role="alert", className="alert" if said else "hidden")


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
