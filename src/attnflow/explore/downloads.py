"""What a view can download: its picture, its data, and the lines of Python that make it."""

from __future__ import annotations

import io
import pprint
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray
from dash import ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html, no_update

from attnflow.errors import InputError
from attnflow.explore.jobs import Jobs
from attnflow.explore.work import error_handler, job_result
from attnflow.simulation import Trajectory
from attnflow.stores import write_dataset


class Download(NamedTuple):
    """A file that can be saved: what the button says, the file's name, and what is in it.

    `content` makes it from the view that the form describes and from what came out of it.
    """

    label: str
    filename: str
    content: Callable[[Any, Any], str | bytes]


def download_buttons(part: str, saved: Mapping[str, Download]) -> list[Any]:
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


def connect_downloads(
    app: Dash,
    jobs: Jobs,
    part: str,
    plot: str,
    saved: Mapping[str, Download],
    python: Callable[[Any, Any], str],
) -> None:
    """Let the download buttons of a view work; `plot` is what is saved as a picture."""
    app.clientside_callback(
        ClientsideFunction("explore", "png"),
        Output(plot, "id"),
        Input(f"{part}-save-png", "n_clicks"),
        State(plot, "id"),
        prevent_initial_call=True,
    )

    @app.callback(
        Output(f"{part}-python", "children"),
        Input(f"{part}-finished", "data"),
        State("visitor", "data"),
        prevent_initial_call=True,
        on_error=error_handler(part),
    )
    def _lines(job: str | None, visitor: str) -> Any:
        result = job_result(jobs, visitor, job)
        return no_update if result is None else python(*result)

    @app.callback(
        Output(f"{part}-download", "data"),
        Output(f"{part}-saved", "children"),
        *[Input(f"{part}-save-{key}", "n_clicks") for key in saved],
        State(f"{part}-finished", "data"),
        State("visitor", "data"),
        prevent_initial_call=True,
        on_error=error_handler(part),
    )
    def _download(*given: Any) -> Any:
        *clicks, job, visitor = given
        if not any(clicks):
            return no_update, no_update
        one = saved[str(ctx.triggered_id).removeprefix(f"{part}-save-")]
        result = job_result(jobs, visitor, job)
        if result is None:
            return no_update, "There is nothing to save yet: press the first button."
        try:
            content = one.content(*result)
        except InputError as error:
            return no_update, str(error)
        if isinstance(content, bytes):
            return dcc.send_bytes(content, one.filename), ""
        return {"content": content, "filename": one.filename}, ""


def csv_of_run(trajectory: Trajectory) -> str:
    """The tokens at all times as CSV: time, token, and its coordinates."""
    xs = np.asarray(trajectory.positions)
    T, n, d = xs.shape
    rows = io.StringIO()
    rows.write("t,token," + ",".join(f"x{k}" for k in range(d)) + "\n")
    at = np.repeat(np.asarray(trajectory.ts), n)
    token = np.tile(np.arange(n), T)
    np.savetxt(rows, np.column_stack([at, token, xs.reshape(-1, d)]), "%.17g", delimiter=",")
    return rows.getvalue()


def zarr_of_run(trajectory: Trajectory) -> bytes:
    """The trajectory as a zipped Zarr store, which `Trajectory.load` reads once unpacked."""
    return _zipped("run.zarr", trajectory.save)


def zarr_of_dataset(data: xarray.Dataset) -> bytes:
    """A dataset as a zipped Zarr store, which `xarray.open_zarr` reads once unpacked."""
    return _zipped("data.zarr", partial(write_dataset, data))


def _zipped(name: str, save: Callable[[Path], Any]) -> bytes:
    held = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / name
        save(store)
        with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(store.rglob("*")):
                if path.is_file():
                    archive.write(path, path.relative_to(folder))
    return held.getvalue()


def python_of_run(spec: dict[str, Any]) -> str:
    """The few lines that make a run."""
    return (
        "import attnflow as af\n"
        "from attnflow.spec import RunSpec\n\n"
        f"spec = {_literal(spec)}\n"
        "run = RunSpec.model_validate(spec).build()\n"
        "flow = af.simulate(run.system, run.x0, run.ts, method=run.method, key=run.key)\n"
    )


def python_of_sweep(spec: dict[str, Any]) -> str:
    """The few lines that make a sweep."""
    return (
        "from attnflow import sweep\n\n"
        f"spec = {_literal(spec)}\n"
        'sweep.run(spec, "sweep.zarr")\n'
        'data = sweep.load("sweep.zarr")\n'
    )


def _literal(spec: dict[str, Any]) -> str:
    return pprint.pformat(spec, width=88, sort_dicts=False, compact=True)
