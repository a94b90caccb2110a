"""Inspect what a worker returns before it is saved."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from attnflow._version import __version__
from attnflow.sweep.grid import Grid
from attnflow.sweep.reduce import UNFINISHED


class Computed(NamedTuple):
    """A computed block.

    Attributes:
        number: the number of the block.
        version: the version of attnflow that computed it.
        values: its arrays, by name.
    """

    number: int
    version: str
    values: dict[str, np.ndarray]


class Inspection:
    """Tells what cannot be right about a block.

    NaN in a cell whose runs all reached the end is rare but possible, because an observable may be
    undefined. It is accepted if a second computation gives the same bits, and from then on
    everywhere in that array.

    Args:
        grid: the grid of the sweep.
        shapes: the shapes of the arrays in the store, by name.
        dtypes: their dtypes, by name.
    """

    def __init__(self, grid: Grid, shapes: dict[str, tuple[int, ...]], dtypes: dict[str, Any]):
        self.grid, self.shapes, self.dtypes = grid, shapes, dtypes
        self.doubted: dict[int, dict[str, np.ndarray]] = {}
        self.trusted: set[str] = set()

    def fault(self, number: int, result: Any) -> str | None:
        """What is wrong with a result, or None."""
        if not isinstance(result, Computed):
            return f"it is not a block but {type(result).__name__}"
        if result.number != number:
            return f"it is block {result.number}"
        if result.version != __version__:
            return f"it was computed by attnflow {result.version}, but this is {__version__}"
        return self._malformed(number, result.values) or self._doubtful(number, result.values)

    def _malformed(self, number: int, values: Any) -> str | None:
        if not isinstance(values, dict) or set(values) != set(self.shapes):
            return f"its arrays are not {', '.join(self.shapes)}"
        block, axes = self.grid[number], len(self.grid.axes)
        for name, value in values.items():
            shape = (*block.shape, *self.shapes[name][axes:])
            if not isinstance(value, np.ndarray) or value.shape != shape:
                return f"{name} has shape {np.shape(value)}, not {shape}"
            if value.dtype != self.dtypes[name]:
                return f"{name} has dtype {value.dtype}, not {self.dtypes[name]}"
        counts, runs = values[UNFINISHED], self.grid.spec.realisations
        if ((counts < 0) | (counts > runs)).any():
            return f"it counts {counts.min()} to {counts.max()} unfinished runs out of {runs}"
        for name, keep in self.grid.spec.keep.items():
            if (values.get(f"{name}_error", np.zeros(1)) < 0).any():
                return f"{name} has a negative standard error"
            quantiles = values.get(f"{name}_quantiles")
            if quantiles is not None:
                rising = np.take(quantiles, np.argsort(keep.quantiles), axis=axes)
                if (np.diff(rising, axis=axes) < 0).any():
                    return f"{name} has quantiles that decrease"
        return None

    def _doubtful(self, number: int, values: dict[str, np.ndarray]) -> str | None:
        ended = values[UNFINISHED] == 0
        odd = {name for name, value in values.items() if np.isnan(value[ended]).any()}
        if not odd - self.trusted:
            return None
        before = self.doubted.pop(number, None)
        if before is not None and all(_same(before[name], values[name]) for name in values):
            self.trusted |= odd
            return None
        self.doubted[number] = values
        return f"{', '.join(sorted(odd))} has NaN where every run reached the end"


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return np.array_equal(a, b, equal_nan=True)
