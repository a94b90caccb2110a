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
from attnflow.explore import exports, limits, places
from attnflow.explore.address import Address
from attnflow.explore.diagram import Diagram, opened
from attnflow.explore.fields import Field, choice, number, rows
from attnflow.explore.jobs import Jobs, OnProgress
from attnflow.explore.saving import Saved, connect_saving, shelf
from attnflow.explore.stage import columns, picture, warning
from attnflow.explore.work import Begun, connect_drawing, connect_work, desk, done, excuse, voice
from attnflow.plot import screen
from attnflow.spec import toml_of

PART = "phase"
NEW = "a new sweep"
DELTA = 1e-3
SYSTEMS = ("SA", "USA")


class Phase(Address):
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

    store: str = NEW
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
        view, said = Phase.from_address(search), ""
    except InputError as error:
        view, said = Phase(), str(error)
    fields = {"store": choice([NEW, *places.stores(folder)]), **FIELDS}
    left = [*rows(PART, fields, view), *desk(PART, "Show")]
    right = [
        *voice(PART),
        warning(said),
        picture("diagram", "Point at a place to read it; click it to see such a run flow", "main"),
        *shelf(PART, SAVED),
    ]
    return columns("Which sweep", left, "Phase diagram", right)


def connect(app: Dash, jobs: Jobs, folder: Path) -> None:
    """All that the view does."""
    names = ["store", *FIELDS]

    def begin(values: list[Any]) -> Begun:
        view = Phase.read(dict(zip(names, values, strict=True)))
        if view.store == NEW:
            return Begun(view, lambda on_progress: _made(view, on_progress), limits.SECONDS)
        path = places.inside(folder, view.store)
        return Begun(view, lambda on_progress: opened(path), limits.SECONDS)

    fields = [f"{PART}-{name}" for name in names]
    connect_work(app, jobs, PART, fields, begin, lambda found: f"{found.title}.")
    connect_saving(
        app, jobs, PART, "diagram", SAVED, lambda _, found: exports.python_of_sweep(found.sweep)
    )
    app.clientside_callback(
        ClientsideFunction("explore", "made"),
        *[Output(f"row-{PART}-{name}", "className") for name in FIELDS],
        Input(f"{PART}-store", "value"),
    )

    connect_drawing(app, jobs, PART, [Output("diagram", "figure")], _figures)

    @app.callback(
        Output("place", "pathname"),
        Output("place", "search", allow_duplicate=True),
        Output(f"{PART}-message", "children", allow_duplicate=True),
        Input("diagram", "clickData"),
        State(f"{PART}-ready", "data"),
        State("visitor", "data"),
        prevent_initial_call=True,
        on_error=excuse(PART),
    )
    def _open(click: dict[str, Any] | None, job: str | None, visitor: str) -> Any:
        """Such a run in the flow view, or why it cannot be there."""
        result = done(jobs, visitor, job)
        if not click or result is None:
            return no_update, no_update, no_update
        point = click["points"][0]
        try:
            form = result.found.flow(float(point["x"]), float(point["y"]))
        except InputError as error:
            return no_update, no_update, str(error)
        return "/", form.address(), no_update


def _made(view: Phase, on_progress: OnProgress) -> Diagram:
    """A sweep, kept in memory once it is done."""
    with tempfile.TemporaryDirectory() as scratch:
        store = Path(scratch) / "sweep.zarr"
        sweep.run(
            view.spec(),
            store,
            on_progress=lambda tally: on_progress((tally.before + tally.done) / tally.cells),
        )
        return opened(store)


def _figures(diagram: Diagram, theme: screen.Theme) -> list[Any]:
    figure = screen.phase(diagram.data, diagram.variable, curve=diagram.curve, theme=theme)
    return [figure.update_layout(margin={"t": 10})]


SAVED = {
    "csv": Saved(
        "Numbers as CSV",
        "attnflow-sweep.csv",
        lambda _, found: found.data[found.variable].to_dataframe().to_csv(),
    ),
    "zarr": Saved(
        "Sweep as Zarr",
        "attnflow-sweep.zarr.zip",
        lambda _, found: exports.zarr_of_data(found.data),
    ),
    "spec": Saved(
        "Spec for attnflow sweep", "attnflow-sweep.toml", lambda _, found: toml_of(found.sweep)
    ),
}
