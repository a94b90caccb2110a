"""Sweeps behind phase diagrams: the grid of a figure, run in a store that lives as long as it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from attnflow import sweep

if TYPE_CHECKING:
    import xarray

DELTA = 1e-3
TIMES = {"stop": 30.0, "count": 200}
BETAS = {"start": 0.1, "stop": 9.0, "count": 90}
TOGETHER = {"observable": "pairs_clustered", "delta": DELTA}

SPEC: dict[str, Any] = {
    "realisations": 512,
    "dtype": "float32",
    "system": {"name": "SA"},
    "times": TIMES,
    "method": {"name": "Adaptive", "solver": "tsit5", "rtol": 1e-3, "atol": 1e-3},
    "keep": {"together": TOGETHER},
}
"""What the phase diagrams of [P] have in common, at the size of the paper."""


def run_sweep(spec: Mapping[str, Any]) -> xarray.Dataset:
    """Run a sweep in a temporary store and return all that it found."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store.zarr"
        progress = sweep.run(spec, store)
        if progress.failures:
            raise RuntimeError(f"the sweep failed: {progress.failures[0].error}")
        return sweep.load(store).load()


def crossing(
    times: Float[np.ndarray, " T"], probability: Float[np.ndarray, "B T"], level: float | int = 0.5
) -> Float[np.ndarray, " B"]:
    """When each row first reaches a level, between save times; infinite where it does not.

    >>> crossing(np.array([0.0, 1.0, 2.0]), np.array([[0.0, 0.25, 0.75], [0.0, 0.1, 0.2]]))
    array([1.5, inf])
    """
    found = np.full(len(probability), np.inf)
    for row, values in enumerate(probability):
        at = int(np.argmax(values >= level))
        if values[at] < level:
            continue
        before = values[at - 1] if at else values[at]
        part = (level - before) / (values[at] - before) if values[at] > before else 1.0
        found[row] = times[at - 1] + part * (times[at] - times[at - 1]) if at else times[0]
    return found
