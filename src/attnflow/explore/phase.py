"""The phase diagram view: a store that is there, or a small sweep that is made now."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from dash import ClientsideFunction, Dash, Input, Output, State, no_update
from pydantic import Field as Bounded

from attnflow import sweep
from attnflow.errors import InputError
from attnflow.explore import downloads, limits, paths
from attnflow.explore.address import Address
from attnflow.explore.diagram import Diagram, open_diagram
from attnflow.explore.downloads import Download, connect_downloads, download_buttons
from attnflow.explore.jobs import Jobs, OnProgress
from attnflow.explore.layout import Field, choice, columns, number, picture, rows, warning
from attnflow.explore.work import (
    JobRequest,
    connect_figures,
    connect_job,
    controls,
    error_handler,
    job_result,
    status_line,
)
from attnflow.plot import screen
from attnflow.spec import toml_of

PART = "phase"
NEW_SWEEP = "a new sweep"
DELTA = 1e-3
SYSTEMS = ("SA", "USA")


class PhaseView(Address):
    """A store, or the sweep that is to be made: P(<x₁, x₂> ≥ 1 − δ) over time and β."""

    labels: ClassVar[Mapping[str, str]] = {
        "store": "Sweep",
        "system": "System",
        "n": "Tokens n",
        "d": "Dimension d",
        "least": "β from",
        "most": "β to",
        "count": "Values of β",
        "until": "Until t",
        "realisations": "Realisations",
    }

    store: str = NEW_SWEEP
    system: Literal[SYSTEMS] = "SA"  # type: ignore[valid-type]
    n: Annotated[int, Bounded(ge=2, le=64)] = 16
    d: Annotated[int, Bounded(ge=2, le=512)] = 64
    least: Annotated[float, Bounded(ge=0, le=20)] = 0.2
    most: Annotated[float, Bounded(gt=0, le=20)] = 6.0
    count: Annotated[int, Bounded(ge=2, le=32)] = 16
    until: Annotated[float, Bounded(gt=0, le=100)] = 15.0
    realisations: Annotated[int, Bounded(ge=1, le=64)] = 16

    def check(self) -> None:
        """β must grow."""
        if self.least >= self.most:
            raise InputError(
                f"β to: must be above β from = {self.least:g}, but it is {self.most:g}."
            )

    def spec(self) -> dict[str, Any]:
        """The sweep."""
        return {
            "title": f"{self.system}, n = {self.n}, d = {self.d}",
            "realisations": self.realisations,
            "dtype": "float32",
            "system": {"name": self.system},
            "start": {"name": "sphere", "n": self.n, "d": self.d, "reduced": self.d > self.n},
            "times": {"stop": self.until, "count": 61},
            "method": {"name": "Adaptive", "solver": "tsit5", "rtol": 1e-3, "atol": 1e-3},
            "axes": {"beta": {"start": self.least, "stop": self.most, "count": self.count}},
            "keep": {"together": {"observable": "pairs_clustered", "delta": DELTA}},
        }


FIELDS: dict[str, Field] = {
    "system": choice(SYSTEMS),
    "n": number(2, 64, 1),
    "d": number(2, 512, 1),
    "least": number(0, 20),
    "most": number(0, 20),
    "count": number(2, 32, 1),
    "until": number(0, 100),
    "realisations": number(1, 64, 1),
}


def layout(search: str, folder: Path) -> Any:
    """Which sweep at the left, its diagram at the right."""
    try:
        view, said = PhaseView.from_address(search), ""
    except InputError as error:
        view, said = PhaseView(), str(error)
    fields = {"store": choice([NEW_SWEEP, *paths.stores(folder)]), **FIELDS}
    left = [*rows(PART, fields, view), *controls(PART, "Show")]
    right = [
        *status_line(PART),
        warning(said),
        picture("diagram", "Point at a place to read it; click it to see such a run flow", "main"),
        *download_buttons(PART, DOWNLOADS),
    ]
    return columns("Which sweep", left, "Phase diagram", right)


def connect(app: Dash, jobs: Jobs, folder: Path) -> None:
    """All that the view does."""
    names = ["store", *FIELDS]

    def begin(values: list[Any]) -> JobRequest:
        view = PhaseView.read(dict(zip(names, values, strict=True)))
        if view.store == NEW_SWEEP:
            return JobRequest(
                view, lambda on_progress: _new_sweep(view, on_progress), limits.MAX_SECONDS
            )
        path = paths.inside(folder, view.store)
        return JobRequest(view, lambda on_progress: open_diagram(path), limits.MAX_SECONDS)

    fields = [f"{PART}-{name}" for name in names]
    connect_job(app, jobs, PART, fields, begin, lambda found: f"{found.title}.")
    connect_downloads(
        app,
        jobs,
        PART,
        "diagram",
        DOWNLOADS,
        lambda _, found: downloads.python_of_sweep(found.sweep),
    )
    app.clientside_callback(
        ClientsideFunction("explore", "sweepFields"),
        *[Output(f"row-{PART}-{name}", "className") for name in FIELDS],
        Input(f"{PART}-store", "value"),
    )

    connect_figures(app, jobs, PART, [Output("diagram", "figure")], _figures)

    @app.callback(
        Output("url", "pathname"),
        Output("url", "search", allow_duplicate=True),
        Output(f"{PART}-message", "children", allow_duplicate=True),
        Input("diagram", "clickData"),
        State(f"{PART}-finished", "data"),
        State("visitor", "data"),
        prevent_initial_call=True,
        on_error=error_handler(PART),
    )
    def _open(click: dict[str, Any] | None, job: str | None, visitor: str) -> Any:
        """Such a run in the flow view, or why it cannot be there."""
        result = job_result(jobs, visitor, job)
        if not click or result is None:
            return no_update, no_update, no_update
        point = click["points"][0]
        try:
            form = result.found.flow(float(point["x"]), float(point["y"]))
        except InputError as error:
            return no_update, no_update, str(error)
        return "/", form.address(), no_update


def _new_sweep(view: PhaseView, on_progress: OnProgress) -> Diagram:
    """A sweep, kept in memory once it is done."""
    with tempfile.TemporaryDirectory() as scratch:
        store = Path(scratch) / "sweep.zarr"
        sweep.run(
            view.spec(),
            store,
            on_progress=lambda progress: on_progress(
                (progress.before + progress.done) / progress.cells
            ),
        )
        return open_diagram(store)


def _figures(diagram: Diagram, theme: screen.Theme) -> list[Any]:
    figure = screen.phase(diagram.data, diagram.variable, curve=diagram.curve, theme=theme)
    return [figure.update_layout(margin={"t": 10})]


DOWNLOADS = {
    "csv": Download(
        "Numbers as CSV",
        "attnflow-sweep.csv",
        lambda _, found: found.data[found.variable].to_dataframe().to_csv(),
    ),
    "zarr": Download(
        "Sweep as Zarr",
        "attnflow-sweep.zarr.zip",
        lambda _, found: downloads.zarr_of_dataset(found.data),
    ),
    "spec": Download(
        "Spec for attnflow sweep", "attnflow-sweep.toml", lambda _, found: toml_of(found.sweep)
    ),
}
