"""What is wrong with a sweep is said before any of it runs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from attnflow.checks import require_memory
from attnflow.errors import InputError
from attnflow.simulation import inputs
from attnflow.spec.sweep import SweepSpec
from attnflow.sweep.grid import Grid
from attnflow.sweep.tile import Computer
from attnflow.theory.checks.base import described

Shapes = dict[str, tuple[int, ...]]
MAX_KINDS = 10_000
"""Each kind of cell takes about a second to compile."""


def check(spec: SweepSpec) -> Shapes:
    """The shape of every observable at one time, after a cell of each kind was built and checked.

    Along an axis that compiles nothing new the smallest and the largest value are checked too.
    """
    computer = Computer(spec)
    kinds = math.prod(len(axis.values) for axis in computer.grid.axes if not axis.traced)
    if kinds > MAX_KINDS:
        raise InputError(
            f"axes: {kinds:,} combinations would have to be compiled each for itself, which are "
            f"more than {MAX_KINDS:,}. Only numbers of the system vary without compiling."
        )
    found: Shapes = {}
    for cell in _samples(computer.grid):
        values = computer.grid.values(cell)
        try:
            _check_cell(spec, values)
            shapes = _shapes(computer, cell)
        except InputError as error:
            raise InputError(f"at {described(values)}: {error}" if values else str(error)) from None
        for name, shape in shapes.items():
            if found.setdefault(name, shape) != shape:
                raise InputError(
                    f"keep.{name}: its shape is {found[name]} in one cell and {shape} at "
                    f"{described(values)}. Keep something that has one shape."
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
        said = str(error).splitlines()[0]
        raise InputError(f"an axis or an observable needs values on the host: {said}") from None
    except (AttributeError, TypeError) as error:
        raise InputError(f"an observable does not fit the system: {error}") from None


def _check_memory(computer: Computer, shapes: Shapes) -> None:
    """The values of all realisations of a block are held until they are reduced."""
    spec, grid = computer.spec, computer.grid
    runs = spec.realisations * math.prod(grid.block)
    numbers = sum(math.prod(shape) for shape in shapes.values())
    needed = 16 * runs * len(spec.times.build()) * numbers
    remedy = "take fewer realisations or times, or keep less"
    require_memory(needed, "the values of a block of cells", remedy)
