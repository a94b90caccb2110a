"""The size of a sweep, before any of it runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnflow.spec.sweep import SweepSpec
from attnflow.sweep.check import check
from attnflow.sweep.driver import Place, as_spec
from attnflow.sweep.grid import Grid
from attnflow.sweep.reduce import variables


@dataclass(frozen=True)
class Plan:
    """The size of a sweep.

    Attributes:
        cells: number of cells.
        runs: number of runs: cells times realisations.
        tasks: number of blocks, each of which is one task.
        compilations: number of compilations, about a second each.
        bytes: size of the results before compression.
    """

    cells: int
    runs: int
    tasks: int
    compilations: int
    bytes: int


def plan(spec: SweepSpec | Mapping[str, Any] | Place) -> Plan:
    """Check a sweep as `run` does, and count its cells, runs, tasks and bytes.

    >>> spec = {"system": {"name": "SA"}, "start": {"n": 4, "d": 2}, "realisations": 512,
    ...         "times": {"stop": 1.0, "count": 2}, "keep": {"E": {"observable": "energy"}},
    ...         "axes": {"beta": {"start": 0.1, "stop": 9.0, "count": 1000}}}
    >>> plan(spec)
    Plan(cells=1000, runs=512000, tasks=1000, compilations=1, bytes=36000)
    """
    spec = as_spec(spec)
    grid = Grid.of(spec)
    cell = sum(
        math.prod(variable.shape) * np.dtype(variable.dtype).itemsize
        for variable in variables(spec, check(spec))
    )
    return Plan(
        cells=grid.cells,
        runs=grid.cells * spec.realisations,
        tasks=len(grid),
        compilations=sum(1 for _ in grid.kinds()),
        bytes=grid.cells * cell,
    )
