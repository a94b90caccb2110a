"""What one takes home from a view: its picture, its data, and the lines that make it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from dash import ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html, no_update

from attnflow.errors import InputError
from attnflow.explore.jobs import Jobs
from attnflow.explore.work import done, excuse


class Saved(NamedTuple):
    """A file that can be saved: what the button says, the file's name, and what is in it.

    `content` makes it from the view that the form describes and from what came out of it.
    """

    label: str
    filename: str
    content: Callable[[Any, Any], str | bytes]


def shelf(part: str, saved: Mapping[str, Saved]) -> list[Any]:
    """A button for the picture and for every file, and the same in Python."""
    labels = {"png": "Picture as PNG"} | {key: one.label for key, one in saved.items()}
    buttons = [
        html.Button(text, id=f"{part}-save-{key}", type="button") for key, text in labels.items()
    ]
    return [
        html.Div(buttons, className="buttons", role="group", title="Save"),
        html.P(id=f"{part}-saved", role="status", className="message"),
        dcc.Download(id=f"{part}-download"),
        html.Details([html.Summary("The same in Python"), html.Pre(id=f"{part}-python")]),
    ]


def connect_saving(
    app: Dash,
    jobs: Jobs,
    part: str,
    plot: str,
    saved: Mapping[str, Saved],
    python: Callable[[Any, Any], str],
) -> None:
    """Let the buttons of a shelf work; `plot` is what is saved as a picture."""
    app.clientside_callback(
        ClientsideFunction("explore", "png"),
        Output(plot, "id"),
        Input(f"{part}-save-png", "n_clicks"),
        State(plot, "id"),
        prevent_initial_call=True,
    )

    @app.callback(
        Output(f"{part}-python", "children"),
        Input(f"{part}-ready", "data"),
        State("visitor", "data"),
        prevent_initial_call=True,
        on_error=excuse(part),
    )
    def _lines(job: str | None, visitor: str) -> Any:
        result = done(jobs, visitor, job)
        return no_update if result is None else python(*result)

    @app.callback(
        Output(f"{part}-download", "data"),
        Output(f"{part}-saved", "children"),
        *[Input(f"{part}-save-{key}", "n_clicks") for key in saved],
        State(f"{part}-ready", "data"),
        State("visitor", "data"),
        prevent_initial_call=True,
        on_error=excuse(part),
    )
    def _download(*given: Any) -> Any:
        *clicks, job, visitor = given
        if not any(clicks):
            return no_update, no_update
        one = saved[str(ctx.triggered_id).removeprefix(f"{part}-save-")]
        result = done(jobs, visitor, job)
        if result is None:
            return no_update, "There is nothing to save yet: press the first button."
        try:
            content = one.content(*result)
        except InputError as error:
            return no_update, str(error)
        if isinstance(content, bytes):
            return dcc.send_bytes(content, one.filename), ""
        return {"content": content, "filename": one.filename}, ""
