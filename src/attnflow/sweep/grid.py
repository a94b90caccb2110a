"""The cells of a sweep, divided into blocks: a block is one task and one chunk of the store.

Axes of numbers such as β are traced: cells that differ only in them run in one compiled call.
Along the other axes (d, n, a family of weights) each value needs its own compilation.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnflow.spec.sweep import Cases, SweepSpec, path

TASK_RUNS = 512
"""Runs of a task, about: enough that its overhead does not matter."""

TILE_BYTES = 2**18
"""Size of the states and scores of a tile, about: they should stay in the cache."""


@dataclass(frozen=True)
class Axis:
    """An axis of a sweep.

    Attributes:
        name: its name in the spec.
        values: its values.
        traced: whether a new value needs no compilation.
    """

    name: str
    values: tuple[Any, ...]
    traced: bool

    @classmethod
    def of(cls, spec: SweepSpec, name: str) -> Axis:
        """The axis of a spec."""
        values = tuple(spec.values(name))
        return cls(name, values, not isinstance(spec.axes[name], Cases) and _traced(name, values))

    @property
    def numeric(self) -> bool:
        """Whether all values are numbers."""
        return _numbers(self.values)


def _numbers(values: tuple[Any, ...]) -> bool:
    return all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)


def _traced(name: str, values: tuple[Any, ...]) -> bool:
    """Numbers of the system are traced. Elsewhere whole numbers may be sizes, which are not."""
    place, *inside = path(name).split(".")
    whole = all(isinstance(v, int) for v in values)
    return _numbers(values) and len(inside) == 1 and (place == "system" or not whole)


@dataclass(frozen=True)
class Block:
    """Neighbouring cells: a range of indices along each axis."""

    number: int
    ranges: tuple[range, ...]

    @property
    def region(self) -> tuple[slice, ...]:
        """The block's slice of the arrays in the store."""
        return tuple(slice(r.start, r.stop) for r in self.ranges)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of cells along every axis."""
        return tuple(len(r) for r in self.ranges)

    @property
    def size(self) -> int:
        """The number of cells."""
        return math.prod(self.shape)

    def cells(self) -> list[tuple[int, ...]]:
        """The indices of the cells, the last axis fastest."""
        return list(itertools.product(*self.ranges))


@dataclass(frozen=True)
class Grid:
    """All cells of a sweep, and their division into blocks, which depends only on the spec.

    Attributes:
        spec: the spec of the sweep.
        axes: its axes.
        block: number of cells of a block along each axis; 1 along axes that are not traced.
    """

    spec: SweepSpec
    axes: tuple[Axis, ...]
    block: tuple[int, ...]

    @classmethod
    def of(cls, spec: SweepSpec) -> Grid:
        """The grid of a spec."""
        axes = tuple(Axis.of(spec, name) for name in spec.axes)
        return cls(spec, axes, block_shape(axes, max(1, TASK_RUNS // spec.realisations)))

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of values along every axis."""
        return tuple(len(axis.values) for axis in self.axes)

    @property
    def cells(self) -> int:
        """The number of cells."""
        return math.prod(self.shape)

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of blocks along every axis."""
        return tuple(-(-n // b) for n, b in zip(self.shape, self.block, strict=True))

    def __len__(self) -> int:
        """The number of blocks."""
        return math.prod(self.counts)

    def __getitem__(self, number: int) -> Block:
        """The block with this number."""
        at = np.unravel_index(number, self.counts) if self.counts else ()
        starts = (int(i) * b for i, b in zip(at, self.block, strict=True))
        ranges = (
            range(start, min(start + b, n))
            for start, b, n in zip(starts, self.block, self.shape, strict=True)
        )
        return Block(number, tuple(ranges))

    def __iter__(self) -> Iterator[Block]:
        """All blocks."""
        return (self[number] for number in range(len(self)))

    def kind(self, cell: tuple[int, ...]) -> tuple[int, ...]:
        """The cell that represents all cells compiled together with this one."""
        return tuple(0 if axis.traced else i for axis, i in zip(self.axes, cell, strict=True))

    def kinds(self) -> Iterator[tuple[int, ...]]:
        """One cell of each kind."""
        sizes = (1 if axis.traced else len(axis.values) for axis in self.axes)
        return itertools.product(*map(range, sizes))

    def values(self, cell: tuple[int, ...]) -> dict[str, Any]:
        """The values of the axes at a cell."""
        return {axis.name: axis.values[i] for axis, i in zip(self.axes, cell, strict=True)}

    def tile(self, shape: tuple[int, ...]) -> int:
        """Number of runs in a compiled call, a power of 2, for states of this shape."""
        n, d = shape[-2:]
        each = n * max(n, d) * np.dtype(self.spec.dtype).itemsize
        runs = self.spec.realisations * math.prod(self.block)
        fit = 2 ** math.floor(math.log2(max(1.0, TILE_BYTES / each)))
        return min(fit, 2 ** math.ceil(math.log2(runs)), TASK_RUNS)


def block_shape(axes: tuple[Axis, ...], cells: int) -> tuple[int, ...]:
    """Number of cells of a block along each axis: about `cells` in all, the last axes first.

    >>> axes = (Axis("d", (2, 8), False), Axis("beta", tuple(range(90)), True))
    >>> block_shape(axes, 4)
    (1, 4)
    """
    shape = []
    for axis in reversed(axes):
        size = min(cells, len(axis.values)) if axis.traced else 1
        shape.append(size)
        cells = max(1, cells // size)
    return tuple(reversed(shape))
