"""What all views share: a run that is begun, watched, ended, and then shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dash import Dash, Input, Output, State, ctx, dcc, html, no_update

from attnflow.errors import InputError
from attnflow.explore.address import Address
from attnflow.explore.fields import aria
from attnflow.explore.jobs import Jobs, Tell

TICK = 100
"""Milliseconds between two looks at work that goes on."""


class Begun(NamedTuple):
    """What a view wants done, and how long it may take."""

    view: Address
    work: Callable[[Tell], Any]
    seconds: float


class Done(NamedTuple):
    """What came out, with the view that asked for it: its form may say something else by now."""

    view: Any
    found: Any


def desk(part: str, label: str) -> list[Any]:
    """The buttons of a view, what it says, and what it remembers."""
    return [
        html.Div(
            [
                html.Button(label, id=f"{part}-run", type="button", className="primary"),
                html.Button("Cancel", id=f"{part}-cancel", type="button"),
            ],
            className="buttons",
        ),
        dcc.Store(id=f"{part}-job"),
        dcc.Store(id=f"{part}-ready"),
        dcc.Interval(id=f"{part}-clock", interval=TICK, disabled=True),
    ]


def voice(part: str) -> list[Any]:
    """Where a view says how its work stands."""
    return [
        html.P(id=f"{part}-message", role="status", className="message", **aria(live="polite")),
        html.Progress(
            id=f"{part}-progress", max="1", value="0", className="hidden", **aria(label="done")
        ),
    ]


def connect_work(
    app: Dash,
    jobs: Jobs,
    part: str,
    fields: Sequence[str],
    begin: Callable[[list[Any]], Begun],
    told: Callable[[Any], str],
    also: Sequence[str] = (),
) -> None:
    """Let the buttons of a view begin and end its work; `{part}-ready` changes when it is done.

    `begin` gets the values of the fields, `told` is the sentence about a result. A change of the
    fields in `also` begins the work too.
    """

    @app.callback(
        Output(f"{part}-job", "data"),
        Output(f"{part}-clock", "disabled"),
        Output(f"{part}-message", "children"),
        Output("place", "search", allow_duplicate=True),
        Input(f"{part}-run", "n_clicks"),
        Input(f"{part}-cancel", "n_clicks"),
        *[Input(field, "value") if field in also else State(field, "value") for field in fields],
        State("visitor", "data"),
        prevent_initial_call=True,
    )
    def _start(run: Any, cancel: Any, *rest: Any) -> Any:
        *values, visitor = rest
        if ctx.triggered_id == f"{part}-cancel" and cancel:
            jobs.cancel(visitor)
            return no_update, no_update, "Cancelled.", no_update
        try:
            begun = begin(list(values))
        except InputError as error:
            return no_update, True, str(error), no_update
        number = jobs.start(visitor, lambda tell: Done(begun.view, begun.work(tell)), begun.seconds)
        return number, False, "Running …", begun.view.address()

    @app.callback(
        Output(f"{part}-message", "children", allow_duplicate=True),
        Output(f"{part}-progress", "value"),
        Output(f"{part}-progress", "className"),
        Output(f"{part}-clock", "disabled", allow_duplicate=True),
        Output(f"{part}-ready", "data"),
        Input(f"{part}-clock", "n_intervals"),
        State(f"{part}-job", "data"),
        State("visitor", "data"),
        prevent_initial_call=True,
    )
    def _watch(_: Any, job: str, visitor: str) -> Any:
        """Look how the work stands: often, so nothing else is done here."""
        status = jobs.look(visitor, job)
        if status.state in ("waiting", "running"):
            said = "Waiting for others …" if status.state == "waiting" else "Running …"
            return said, f"{status.part:.3f}", "", False, no_update
        if status.state != "done":
            return status.message, "0", "hidden", True, no_update
        return told(status.result.found), "1", "hidden", True, job


def done(jobs: Jobs, visitor: str, job: str | None) -> Done | None:
    """What a visitor's work gave, or None where it is not done."""
    status = jobs.look(visitor, job) if job else None
    return status.result if status is not None and status.state == "done" else None
