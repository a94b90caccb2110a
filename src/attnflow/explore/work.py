"""What all views share: a run that is begun, watched, ended, and then shown."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dash import (
    ClientsideFunction,
    Dash,
    Input,
    Output,
    State,
    ctx,
    dcc,
    html,
    no_update,
    set_props,
)

from attnflow.errors import InputError
from attnflow.explore.address import Address
from attnflow.explore.fields import aria
from attnflow.explore.jobs import BROKEN, Jobs, OnProgress, Status
from attnflow.plot import screen

TICK = 100
"""Milliseconds between two looks at work that goes on."""


class Begun(NamedTuple):
    """What a view wants done, and how long it may take."""

    view: Address
    work: Callable[[OnProgress], Any]
    seconds: float

    def finish(self, on_progress: OnProgress) -> Done:
        """Do it."""
        return Done(self.view, self.work(on_progress))


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
        dcc.Store(id=f"{part}-news"),
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
        Output(f"{part}-message", "children"),
        Output(f"{part}-progress", "className"),
        Output("place", "search", allow_duplicate=True),
        Output("shown", "data", allow_duplicate=True),
        Input(f"{part}-run", "n_clicks"),
        Input(f"{part}-cancel", "n_clicks"),
        *[Input(field, "value") if field in also else State(field, "value") for field in fields],
        State("place", "pathname"),
        State("visitor", "data"),
        prevent_initial_call=True,
        on_error=excuse(part),
    )
    def _start(run: Any, cancel: Any, *rest: Any) -> Any:
        *values, path, visitor = rest
        asked = time.monotonic()
        if ctx.triggered_id == f"{part}-cancel" and cancel:
            jobs.cancel(visitor, asked)
            return no_update, "Cancelled.", no_update, no_update, no_update
        try:
            begun = begin(list(values))
        except InputError as error:
            jobs.cancel(visitor, asked)
            return None, str(error), "hidden", no_update, no_update
        number = jobs.start(visitor, begun.finish, begun.seconds, asked)
        # What a view runs when it is opened is what its address says: no step of the way back.
        opened = f"{part}-run.n_clicks" in ctx.triggered_prop_ids and not run
        search = no_update if opened else begun.view.address()
        return number, "Running …", "", search, no_update if opened else f"{path}{search}"

    _connect_watch(app, jobs, part, told)


def _connect_watch(app: Dash, jobs: Jobs, part: str, told: Callable[[Any], str]) -> None:
    """Let the clock of a view ask how its work stands, and the page take in the answers."""

    @app.callback(
        Output(f"{part}-news", "data"),
        Input(f"{part}-clock", "n_intervals"),
        State(f"{part}-job", "data"),
        State("visitor", "data"),
        prevent_initial_call=True,
        on_error=excuse(part),
    )
    def _watch(_: Any, job: str | None, visitor: str) -> Any:
        """Look how the work stands: often, so nothing else is done here."""
        return (job and _news(jobs.look(visitor, job), job, told)) or no_update

    app.clientside_callback(
        ClientsideFunction("explore", "news"),
        Output(f"{part}-message", "children", allow_duplicate=True),
        Output(f"{part}-progress", "value"),
        Output(f"{part}-progress", "className", allow_duplicate=True),
        Output(f"{part}-clock", "disabled"),
        Output(f"{part}-ready", "data"),
        Input(f"{part}-news", "data"),
        Input(f"{part}-job", "data"),
        prevent_initial_call=True,
    )


def _news(status: Status, job: str, told: Callable[[Any], str]) -> dict[str, Any] | None:
    """What the page is told of a job; nothing where the visitor has another one by now.

    The page leaves it alone if it has begun another meanwhile, as answers may come late.
    """
    if status.state == "superseded":
        return None
    over = status.state not in ("waiting", "running")
    said = told(status.result.found) if status.state == "done" else status.message
    return {
        "job": job,
        "said": said or "Running …",
        "part": "0" if over else f"{status.part:.3f}",
        "over": over,
        "ready": job if status.state == "done" else None,
    }


def connect_drawing(
    app: Dash,
    jobs: Jobs,
    part: str,
    outputs: Sequence[Output],
    draw: Callable[..., Sequence[Any]],
    also: Sequence[str] = (),
) -> None:
    """Let a view draw what is done, and draw it again in the colours of another theme.

    `draw(found, theme, *values)` gives the outputs; `values` are those of the fields in `also`,
    and a change of one draws anew, too.
    """

    @app.callback(
        list(outputs),
        Input(f"{part}-ready", "data"),
        Input("theme", "data"),
        *[Input(field, "value") for field in also],
        State("visitor", "data"),
        prevent_initial_call=True,
        on_error=excuse(part),
    )
    def _show(job: str | None, theme: screen.Theme, *rest: Any) -> Any:
        *values, visitor = rest
        result = done(jobs, visitor, job)
        return [no_update] * len(outputs) if result is None else draw(result.found, theme, *values)


def excuse(part: str) -> Callable[[Exception], None]:
    """What a callback of a view does with an error: a sentence on the page, the rest in the log."""

    def handle(error: Exception) -> None:
        known = isinstance(error, InputError)
        if not known:
            logging.getLogger(__name__).error("a callback of the page failed", exc_info=error)
        set_props(f"{part}-message", {"children": str(error) if known else BROKEN})

    return handle


def done(jobs: Jobs, visitor: str, job: str | None) -> Done | None:
    """What a visitor's work gave, or None where it is not done."""
    status = jobs.look(visitor, job) if job else None
    return status.result if status is not None and status.state == "done" else None
