"""How every view is laid out: a form at the left, a stage with pictures at the right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dash import dcc, html

from attnflow.explore.fields import aria

GRAPH: Any = {"displaylogo": False, "responsive": True, "toImageButtonOptions": {"scale": 2}}


def columns(about: str, left: Sequence[Any], name: str, right: Sequence[Any]) -> Any:
    """A form, which a screen reader calls `about`, and the section called `name` beside it."""
    return html.Div(
        [
            html.Form(list(left), className="form", **aria(label=about)),
            html.Section([html.H1(name), *right], className="stage", **aria(label=name)),
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
        className=boxed(kind, shown=not hidden),
    )


def boxed(kind: str, *, shown: bool) -> str:
    """The class of a picture of some kind, shown or hidden.

    >>> boxed("side", shown=False)
    'picture side hidden'
    """
    return f"picture {kind}" if shown else f"picture {kind} hidden"


def warning(said: str) -> Any:
    """What is wrong with an address, read aloud at once."""
    return html.P(said, role="alert", className="alert" if said else "hidden")
