"""Find what is wrong with a sweep before any of it runs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from attnflow.checks import require_memory
from attnflow.errors import InputError, first_line
from attnflow.simulation import inputs
from attnflow.spec.sweep import SweepSpec
from attnflow.sweep.grid import Grid
from attnflow.sweep.tile import Computer
from attnflow.verdicts import described

Shapes = dict[str, tuple[int, ...]]
MAX_KINDS = 10_000
"""Each kind of cell takes about a second to compile."""


def check(spec: SweepSpec) -> Shapes:
    """Build and check one cell of each kind; returns the shape of each observable at one time.

    Along axes that need no new compilation, the smallest and the largest value are checked too.
    """
    computer = Computer(spec)
    kinds = math.prod(len(axis.values) for axis in computer.grid.axes if not axis.traced)
    if kinds > MAX_KINDS:
        raise InputError(
            f"axes: {kinds:,} combinations would each have to be compiled, more than the limit of "
            f"{MAX_KINDS:,}. Only numbers of the system vary without a new compilation."
        )
    found: Shapes = {}
    for cell in _samples(computer.grid):
        values = computer.grid.values(cell)
        try:
            _check_cell(spec, values)
            shapes = _shapes(computer, cell)
        except InputError as error:
            raise error.at(*([f"at {described(values)}"] if values else [])) from None
        for name, shape in shapes.items():
            if found.setdefault(name, shape) != shape:
                raise InputError(
                    f"keep.{name}: its shape is {found[name]} in one cell and {shape} at "
                    f"{described(values)}. Keep something that has the same shape everywhere."
                )
    _check_memory(computer, found)
    return found


def _samples(grid: Grid) -> Iterator[tuple[int, ...]]:
    yield from grid.kinds()
    first = tuple(0 for _ in grid.axes)
    for k, axis in enumerate(grid.axes):
        if axis.traced:
            for i in {int(np.argmin(axis.values)), int(np.argmax(axis.values))} - {0}:
                yield (*first[:k], i, *first[k + 1 :])


def _check_cell(spec: SweepSpec, values: dict[str, Any]) -> None:
    run = spec.cell(values).build()
    inputs.check_run(run.system, run.x0, run.ts, run.method, saves_states=False)


def _shapes(computer: Computer, cell: tuple[int, ...]) -> Shapes:
    try:
        return computer.shapes(cell)
    except jax.errors.JAXTypeError as error:
        where = "an axis or an observable does not work under jit"
        raise InputError(first_line(error), where=where) from None
    except (AttributeError, TypeError) as error:
        raise InputError(error, where="an observable does not fit the system") from None


def _check_memory(computer: Computer, shapes: Shapes) -> None:
    """The values of all realisations of a block stay in memory until they are reduced."""
    spec, grid = computer.spec, computer.grid
    runs = spec.realisations * math.prod(grid.block)
    numbers = sum(math.prod(shape) for shape in shapes.values())
    needed = 16 * runs * len(spec.times.build()) * numbers
    remedy = "take fewer realisations or times, or keep less"
    require_memory(needed, "the values of a block of cells", remedy)
