"""The compiled call of a sweep: a fixed number of runs in parallel."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attnflow.simulation import inputs
from attnflow.simulation.solve import Problem
from attnflow.spec.model import RunSpec
from attnflow.spec.sweep import SweepSpec
from attnflow.spec.system import key_for
from attnflow.sweep.draws import CellHashes, run_keys
from attnflow.sweep.grid import Block, Grid
from attnflow.sweep.observables import bind
from attnflow.systems import System

Cell = tuple[int, ...]


class Tile(NamedTuple):
    """A compiled call `run(values, keys)` of `size` rows."""

    run: Callable[[Any, Any], tuple[dict[str, Array], Array]]
    size: int


class Computer:
    """Computes blocks of a sweep. What it compiles for one block serves all blocks of that kind."""

    def __init__(self, spec: SweepSpec):
        self.spec, self.grid = spec, Grid.of(spec)
        self.hashes = CellHashes(spec, self.grid)
        self.keep = {
            name: bind(name, kept.observable, kept.parameters()) for name, kept in spec.keep.items()
        }
        self._tiles: dict[Cell, Tile] = {}
        self._locks: defaultdict[Cell, threading.Lock] = defaultdict(threading.Lock)

    def values(self, block: Block) -> dict[str, np.ndarray]:
        """Each observable, shape (*block, realisations, T, …), and which runs ended."""
        cells = block.cells()
        count = self.spec.realisations
        hashes = self.hashes.of(cells)
        traced = np.array([self._traced(cell) for cell in cells], dtype=float)
        rows = np.repeat(np.arange(len(cells)), count)
        each = np.tile(np.arange(count), len(cells))
        run, size = self._tile(self.grid.kind(cells[0]))
        parts = []
        for first in range(0, len(rows), size):
            take = np.arange(first, first + size) % len(rows)
            keys = run_keys(self.spec.key, hashes[rows[take]], each[take])
            parts.append(jax.tree.map(np.asarray, run(traced[rows[take]], keys)))
        kept, ended = jax.tree.map(lambda *a: np.concatenate(a)[: len(rows)], *parts)
        shape = (*block.shape, count)
        shaped = {name: v.reshape(*shape, *v.shape[1:]) for name, v in kept.items()}
        return shaped | {"ended": ended.reshape(shape)}

    def shapes(self, cell: Cell) -> dict[str, tuple[int, ...]]:
        """The shape of each observable at one time in cells like this one."""
        run = self.spec.cell(self.grid.values(cell))

        def kept(key: Array) -> dict[str, Array]:
            system, x0 = self._draw(run, key)
            return self._observe(self.spec.times.build()[0], x0, system)

        found = jax.eval_shape(kept, jax.eval_shape(jax.random.key, 0))
        return {name: value.shape for name, value in found.items()}

    def _traced(self, cell: Cell) -> list[Any]:
        pairs = zip(self.grid.axes, cell, strict=True)
        return [axis.values[i] for axis, i in pairs if axis.traced]

    def _tile(self, kind: Cell) -> Tile:
        """The compiled call for a kind of cell. Threads that need the same one wait for it."""
        with self._locks[kind]:
            if kind not in self._tiles:
                self._tiles[kind] = self._compile(kind)
            return self._tiles[kind]

    def _compile(self, kind: Cell) -> Tile:
        names = [axis.name for axis in self.grid.axes if axis.traced]
        usual = self.grid.values(kind)

        def one(values: Array, key: Array) -> tuple[dict[str, Array], Array]:
            run = self.spec.cell(usual | dict(zip(names, values, strict=True)))
            return self._run(run, key)

        key = jax.eval_shape(jax.random.key, 0)
        _, x0 = jax.eval_shape(lambda key: self._draw(self.spec.cell(usual), key), key)
        size = self.grid.tile(x0.shape)
        rows = jax.ShapeDtypeStruct((size, len(names)), float)
        keys = jax.ShapeDtypeStruct((size,), key.dtype)
        return Tile(jax.jit(jax.vmap(one)).lower(rows, keys).compile(), size)

    def _run(self, run: RunSpec, key: Array) -> tuple[dict[str, Array], Array]:
        """What is saved of a run, NaN after it failed, and whether it reached the last time."""
        system, x0 = self._draw(run, key)
        x0 = system.space.admit(x0)
        times = run.times.build()
        method = inputs.check_method(run.build_method(), system, x0, times)

        def save(t: Any, x: Array) -> dict[str, Array]:
            return self._observe(t, x, system)

        ts = jnp.asarray(times, x0.dtype)
        problem = Problem(system, method, ts, save)
        start = problem.begin(x0, None, None, key_for("noise", key))
        at = problem.advance(start)
        return at.saved, at.t >= ts[-1]

    def _draw(self, run: RunSpec, key: Array) -> tuple[System, Array]:
        """The system, in the precision of the run, and the start."""
        system, x0 = run.draw(key)

        def in_precision(leaf: Any) -> Any:
            return leaf.astype(x0.dtype) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf

        return jax.tree.map(in_precision, system), x0

    def _observe(self, t: Any, x: Any, system: System) -> dict[str, Array]:
        return {name: keep(t, x, system) for name, keep in self.keep.items()}
