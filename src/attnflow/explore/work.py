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
from attnflow.explore.jobs import INTERNAL_ERROR, Jobs, JobStatus, OnProgress
from attnflow.explore.layout import aria
from attnflow.plot import screen

POLL_INTERVAL = 100
"""Milliseconds between two questions how a job stands."""


class JobRequest(NamedTuple):
    """What a view wants done, and how many seconds it may take."""

    view: Address
    work: Callable[[OnProgress], Any]
    seconds: float

    def run(self, on_progress: OnProgress) -> JobResult:
        """Do it."""
        return JobResult(self.view, self.work(on_progress))


class JobResult(NamedTuple):
    """What came out, with the view that asked for it: its form may say something else by now."""

    view: Any
    found: Any


def controls(part: str, label: str) -> list[Any]:
    """The buttons of a view, and what it stores of its job."""
    return [
        html.Div(
            [
                html.Button(label, id=f"{part}-run", type="button", className="primary"),
                html.Button("Cancel", id=f"{part}-cancel", type="button"),
            ],
            className="buttons",
        ),
        dcc.Store(id=f"{part}-job"),
        dcc.Store(id=f"{part}-status"),
        dcc.Store(id=f"{part}-finished"),
        dcc.Interval(id=f"{part}-timer", interval=POLL_INTERVAL, disabled=True),
    ]


def status_line(part: str) -> list[Any]:
    """Where a view says how its job stands."""
    return [
        html.P(id=f"{part}-message", role="status", className="message", **aria(live="polite")),
        html.Progress(
            id=f"{part}-progress", max="1", value="0", className="hidden", **aria(label="done")
        ),
    ]


def connect_job(
    app: Dash,
    jobs: Jobs,
    part: str,
    fields: Sequence[str],
    begin: Callable[[list[Any]], JobRequest],
    summary: Callable[[Any], str],
    also: Sequence[str] = (),
) -> None:
    """Let the buttons of a view begin and end its work; `{part}-finished` changes when it is done.

    `begin` gets the values of the fields, `summary` gives the sentence about a result. A change of
    the fields in `also` begins the work too.
    """

    @app.callback(
        Output(f"{part}-job", "data"),
        Output(f"{part}-message", "children"),
        Output(f"{part}-progress", "className"),
        Output("url", "search", allow_duplicate=True),
        Output("shown-url", "data", allow_duplicate=True),
        Input(f"{part}-run", "n_clicks"),
        Input(f"{part}-cancel", "n_clicks"),
        *[Input(field, "value") if field in also else State(field, "value") for field in fields],
        State("url", "pathname"),
        State("visitor", "data"),
        prevent_initial_call=True,
        on_error=error_handler(part),
    )
    def _start(run: Any, cancel: Any, *rest: Any) -> Any:
        *values, path, visitor = rest
        asked = time.monotonic()
        if ctx.triggered_id == f"{part}-cancel" and cancel:
            jobs.cancel(visitor, asked)
            return no_update, "Cancelled.", no_update, no_update, no_update
        try:
            request = begin(list(values))
        except InputError as error:
            jobs.cancel(visitor, asked)
            return None, str(error), "hidden", no_update, no_update
        number = jobs.start(visitor, request.run, request.seconds, asked)
        # What a view runs when it is opened is what its address says: no step of the way back.
        opened = f"{part}-run.n_clicks" in ctx.triggered_prop_ids and not run
        search = no_update if opened else request.view.address()
        return number, "Running …", "", search, no_update if opened else f"{path}{search}"

    _connect_status(app, jobs, part, summary)


def _connect_status(app: Dash, jobs: Jobs, part: str, summary: Callable[[Any], str]) -> None:
    """Let the timer of a view ask how its job stands, and the page take in the answers."""

    @app.callback(
        Output(f"{part}-status", "data"),
        Input(f"{part}-timer", "n_intervals"),
        State(f"{part}-job", "data"),
        State("visitor", "data"),
        prevent_initial_call=True,
        on_error=error_handler(part),
    )
    def _watch(_: Any, job: str | None, visitor: str) -> Any:
        """The status of the job: it is asked for often, so nothing else is done here."""
        return (job and _status(jobs.status(visitor, job), job, summary)) or no_update

    app.clientside_callback(
        ClientsideFunction("explore", "jobStatus"),
        Output(f"{part}-message", "children", allow_duplicate=True),
        Output(f"{part}-progress", "value"),
        Output(f"{part}-progress", "className", allow_duplicate=True),
        Output(f"{part}-timer", "disabled"),
        Output(f"{part}-finished", "data"),
        Input(f"{part}-status", "data"),
        Input(f"{part}-job", "data"),
        prevent_initial_call=True,
    )


def _status(status: JobStatus, job: str, summary: Callable[[Any], str]) -> dict[str, Any] | None:
    """What the page is told of a job; nothing where the visitor has another one by now.

    The page leaves it alone if it has begun another meanwhile, as answers may come late.
    """
    if status.state == "superseded":
        return None
    over = status.state not in ("waiting", "running")
    message = summary(status.result.found) if status.state == "done" else status.message
    return {
        "job": job,
        "message": message or "Running …",
        "progress": "0" if over else f"{status.progress:.3f}",
        "over": over,
        "finished": job if status.state == "done" else None,
    }


def connect_figures(
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
        Input(f"{part}-finished", "data"),
        Input("theme", "data"),
        *[Input(field, "value") for field in also],
        State("visitor", "data"),
        prevent_initial_call=True,
        on_error=error_handler(part),
    )
    def _show(job: str | None, theme: screen.Theme, *rest: Any) -> Any:
        *values, visitor = rest
        result = job_result(jobs, visitor, job)
        return [no_update] * len(outputs) if result is None else draw(result.found, theme, *values)


def error_handler(part: str) -> Callable[[Exception], None]:
    """What a callback of a view does with an error: a sentence on the page, the rest in the log."""

    def handle(error: Exception) -> None:
        known = isinstance(error, InputError)
        if not known:
            logging.getLogger(__name__).error("a callback of the page failed", exc_info=error)
        set_props(f"{part}-message", {"children": str(error) if known else INTERNAL_ERROR})

    return handle


def job_result(jobs: Jobs, visitor: str, job: str | None) -> JobResult | None:
    """What a visitor's work gave, or None where it is not done."""
    status = jobs.status(visitor, job) if job else None
    return status.result if status is not None and status.state == "done" else None
