"""What is in the files that one takes home: tables, stores, lines of Python."""

from __future__ import annotations

import io
import pprint
import tempfile
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray

from attnflow.simulation import Trajectory
from attnflow.stores import write_dataset


def table(trajectory: Trajectory) -> str:
    """The tokens at all times as CSV: time, token, and its coordinates."""
    xs = np.asarray(trajectory.positions)
    T, n, d = xs.shape
    rows = io.StringIO()
    rows.write("t,token," + ",".join(f"x{k}" for k in range(d)) + "\n")
    at = np.repeat(np.asarray(trajectory.ts), n)
    token = np.tile(np.arange(n), T)
    np.savetxt(rows, np.column_stack([at, token, xs.reshape(-1, d)]), "%.17g", delimiter=",")
    return rows.getvalue()


def zarr_of(trajectory: Trajectory) -> bytes:
    """The trajectory as a zipped Zarr store, which `Trajectory.load` reads once unpacked."""
    return _zipped("run.zarr", trajectory.save)


def zarr_of_data(data: xarray.Dataset) -> bytes:
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
