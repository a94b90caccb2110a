"""The theorems view: a claim, an example that was drawn, what was measured, and its bound."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from dash import Dash, Input, Output, State, html, no_update
from pydantic import Field as Bounded

from attnflow.errors import IncompleteRun, InputError, unknown
from attnflow.explore import downloads
from attnflow.explore.address import Address
from attnflow.explore.downloads import Download, connect_downloads, download_buttons
from attnflow.explore.frames import Frames, frames_of
from attnflow.explore.jobs import Jobs, OnProgress
from attnflow.explore.layout import (
    Field,
    choice,
    columns,
    ids,
    number,
    picture,
    picture_class,
    rows,
    warning,
)
from attnflow.explore.pictures import end_figure
from attnflow.explore.work import JobRequest, connect_figures, connect_job, controls, status_line
from attnflow.plot import screen
from attnflow.records import json_text
from attnflow.simulation import simulate
from attnflow.theory.checks import CHECKS, Check, Outcome, check

PART = "theorem"
MAX_SECONDS = 180.0
"""Some claims are about t → ∞."""


class Claim(Address):
    """A claim by its id, and the key of what is drawn."""

    labels: ClassVar[Mapping[str, str]] = {"id": "Claim", "key": "Key"}

    id: str = "T6.8"
    key: Annotated[int, Bounded(ge=0, lt=2**31)] = 0

    def check(self) -> None:
        """The id must be known."""
        if self.id not in CHECKS:
            raise InputError(f"Claim: {unknown('claim', self.id, CHECKS)}")


class Checked(NamedTuple):
    """What came out, and an example if there is one that can be drawn."""

    outcome: Outcome
    example: Frames | None


FIELDS: dict[str, Field] = {
    "id": choice(CHECKS),
    "key": number(0, 2**31 - 1, 1),
}


def layout(search: str, folder: Path) -> Any:
    """The claim at the left, what was measured at the right."""
    try:
        view, said = Claim.from_address(search), ""
    except InputError as error:
        view, said = Claim(), str(error)
    left = [
        *rows(PART, FIELDS, view),
        *controls(PART, "Check"),
        html.Button("Try another key", id="another", type="button"),
    ]
    right = [
        html.Div(_stated(CHECKS[view.id]), id="stated"),
        *status_line(PART),
        warning(said),
        html.Div(id="measured"),
        picture("example", "The first start that was drawn, as it ran", "main", hidden=True),
        *download_buttons(PART, DOWNLOADS),
    ]
    return columns("Which claim", left, "Theorem", right)


def connect(app: Dash, jobs: Jobs, folder: Path) -> None:
    """All that the view does."""

    def begin(values: list[Any]) -> JobRequest:
        view = Claim.read(dict(zip(FIELDS, values, strict=True)))
        return JobRequest(view, lambda on_progress: _checked(view, on_progress), MAX_SECONDS)

    connect_job(app, jobs, PART, ids(PART, FIELDS), begin, lambda found: _verdict(found.outcome))
    outputs = [
        Output("measured", "children"),
        Output("example", "figure"),
        Output("box-example", "className"),
    ]
    connect_figures(app, jobs, PART, outputs, _drawn)
    connect_downloads(app, jobs, PART, "example", DOWNLOADS, _python)

    @app.callback(Output("stated", "children"), Input(f"{PART}-id", "value"))
    def _state(id: str) -> Any:
        return _stated(CHECKS[id])

    @app.callback(
        Output(f"{PART}-key", "value"),
        Output(f"{PART}-run", "n_clicks"),
        Input("another", "n_clicks"),
        State(f"{PART}-key", "value"),
        State(f"{PART}-run", "n_clicks"),
        prevent_initial_call=True,
    )
    def _another(clicks: int | None, key: int | None, runs: int | None) -> Any:
        """The next key, checked at once."""
        return ((key or 0) + 1, (runs or 0) + 1) if clicks else (no_update, no_update)


def _drawn(found: Checked, theme: screen.Theme) -> list[Any]:
    shown = picture_class("main", shown=found.example is not None)
    figure = no_update if found.example is None else end_figure(found.example, theme)
    return [_table(found.outcome), figure, shown]


def _checked(view: Claim, on_progress: OnProgress) -> Checked:
    outcome = check(view.id, key=view.key, on_progress=on_progress)
    return Checked(outcome, _example(CHECKS[view.id], view.key, on_progress))


def _example(row: Check, key: int, on_progress: OnProgress) -> Frames | None:
    """The first start that was drawn, as it ran; None where the claim is not about a flow."""
    trial = next(iter(row.trials(key)))
    if trial.system is None or trial.x0 is None or trial.ts is None:
        return None
    x0 = trial.x0.reshape(-1, *trial.x0.shape[-2:])[0]
    masses = trial.masses
    if masses is not None:
        masses = np.broadcast_to(masses, trial.x0.shape[:-1]).reshape(-1, len(x0))[0]
    try:
        run = simulate(
            trial.system, x0, trial.ts, method=trial.method, masses=masses, progress=on_progress
        )
        return frames_of(run, on_progress)
    except (IncompleteRun, InputError):
        return None


def _stated(row: Check) -> Any:
    kind = "proven" if row.proven else "a conjecture"
    return [
        html.H2(f"{row.id}: {row.source}"),
        html.Dl(
            [
                html.Dt("If"),
                html.Dd(row.hypothesis),
                html.Dt("then"),
                html.Dd(row.conclusion),
                html.Dt("It is"),
                html.Dd(f"{kind}; measured with {row.settings}"),
            ]
        ),
    ]


def _verdict(outcome: Outcome) -> str:
    counts = outcome.counts
    said = {"holds": "It holds", "fails": "It fails", "unresolved": "Nothing can be concluded"}
    if outcome.failed == ("equation",):
        said["fails"] = "The run does not solve its equation"
    draws = ", ".join(f"{counts[v]} {v}" for v in ("holds", "fails", "unresolved") if counts[v])
    return f"{said[outcome.verdict]}. Draws: {draws}."


def _table(outcome: Outcome) -> Any:
    head = html.Tr([html.Th(text) for text in ("worst of", "measured", "bound", "")])
    body = [
        html.Tr(
            [
                html.Td(q.name),
                html.Td(f"{q.value:.4g}"),
                html.Td(f"{q.sense} {q.bound:.4g}"),
                html.Td("vacuous" if q.vacuous else "within" if q.holds else "beyond"),
            ]
        )
        for q in outcome.worst
    ]
    return html.Table([html.Thead(head), html.Tbody(body)])


def _csv(outcome: Outcome) -> str:
    """Every draw and quantity as a line."""
    rows = io.StringIO()
    lines = csv.writer(rows)
    lines.writerow(["claim", "draw", "verdict", "quantity", "measured", "sense", "bound", "holds"])
    for draw in outcome.draws:
        for q in draw.quantities:
            said = [outcome.check.id, draw.label, draw.verdict]
            lines.writerow([*said, q.name, q.value, q.sense, q.bound, q.holds])
    return rows.getvalue()


def _example_zarr(found: Checked) -> bytes:
    if found.example is None:
        raise InputError("this claim is not about a flow, so there is no run to save.")
    return downloads.zarr_of_run(found.example.trajectory)


def _python(view: Claim, _: Checked) -> str:
    return (
        "from attnflow.theory import check\n\n"
        f'outcome = check("{view.id}", key={view.key})\n'
        "print(outcome.verdict, outcome.worst)\n"
    )


DOWNLOADS = {
    "csv": Download("Draws as CSV", "attnflow-check.csv", lambda _, found: _csv(found.outcome)),
    "json": Download(
        "Outcome as JSON",
        "attnflow-check.json",
        lambda _, found: json_text(found.outcome.to_json()),
    ),
    "zarr": Download(
        "Example as Zarr", "attnflow-example.zarr.zip", lambda _, found: _example_zarr(found)
    ),
}
