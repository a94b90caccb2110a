"""The random numbers of a cell depend on what its run says, not on its place in the grid."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Int, Key, UInt32

from attnflow import initial
from attnflow.spec.model import Named, RunSpec
from attnflow.spec.sweep import SweepSpec, flat, path
from attnflow.sweep.grid import Grid
from attnflow.systems import SYSTEMS

RULE = (
    "key of a realisation: the spec's key, then 64 bits of the SHA-256 of the fields of "
    "system and start that are not their defaults, then the number of the realisation"
)
"""How keys are made, as every store records it."""

FieldTexts = dict[str, str]
"""Fields of a run as text, by dotted name."""


class CellHashes:
    """Hashes of cells: 64 bits that depend on the system and the start of a cell.

    Fields with their default value do not count. So cells keep their draws when an axis gets more
    values, or when a new axis has the default among its values. The method does not count either:
    cells that differ only in their method have the same start, weights and noise.
    """

    def __init__(self, spec: SweepSpec, grid: Grid):
        self.spec, self.grid = spec, grid
        fields = {path(axis.name): k for k, axis in enumerate(grid.axes) if axis.traced}
        self._traced = {f: k for f, k in fields.items() if f.split(".")[0] in TABLES}

    def of(self, cells: list[tuple[int, ...]]) -> UInt32[np.ndarray, "cells 2"]:
        """The hashes of cells of one kind: they differ only in numbers that need no compilation."""
        run = self.spec.cell(self.grid.values(cells[0]))
        usual = defaults(run)
        common = nondefault_fields(run) | dict.fromkeys(self._traced, "")
        lines = {f: f"{f}={value}" for f, value in sorted(common.items())}
        digests = []
        for cell in cells:
            for f, k in self._traced.items():
                value = text(self.grid.axes[k].values[cell[k]])
                lines[f] = "" if usual.get(f) == value else f"{f}={value}"
            digests.append(_digest(lines.values()))
        return np.frombuffer(b"".join(digests), ">u4").astype(np.uint32).reshape(-1, 2)


TABLES: dict[str, Mapping[str, Callable[..., Any]]] = {"system": SYSTEMS, "start": initial.STARTS}
"""The parts of a run that draw random numbers, and the tables of their names."""


def nondefault_fields(run: RunSpec) -> FieldTexts:
    """The fields of the system and the start of a run that differ from their defaults."""
    usual = defaults(run)
    fields: FieldTexts = {}
    for place in TABLES:
        part: Named = getattr(run, place)
        given = {name: value for name, value in part.model_dump().items() if value is not None}
        fields |= {f: text(value) for f, value in flat(given, place).items()}
    return {f: value for f, value in fields.items() if usual.get(f) != value}


def defaults(run: RunSpec) -> FieldTexts:
    """The default parameters of the system and the start of a run."""
    found: FieldTexts = {}
    for place, table in TABLES.items():
        make = table.get(getattr(run, place).name)
        for name, parameter in inspect.signature(make).parameters.items() if make else ():
            if isinstance(parameter.default, (bool, int, float, str)):
                found[f"{place}.{name}"] = text(parameter.default)
    return found


def text(value: Any) -> str:
    """A value as text. Numbers have twelve digits, so 1, 1.0 and 0.1 · 10 are the same.

    >>> text(1), text(0.1 + 0.2), text([True, "a"])
    ('1', '0.3', '[true,"a"]')
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"{float(value) + 0.0:.12g}"
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(text, value))}]"
    if isinstance(value, dict):
        return f"{{{','.join(f'{json.dumps(k)}:{text(v)}' for k, v in sorted(value.items()))}}}"
    return json.dumps(value, default=str)


def run_hash(run: RunSpec) -> UInt32[np.ndarray, " 2"]:
    """Two words of 32 bits that identify the system and the start of a run."""
    lines = (f"{f}={value}" for f, value in sorted(nondefault_fields(run).items()))
    return np.frombuffer(_digest(lines), ">u4").astype(np.uint32)


def _digest(lines: Iterable[str]) -> bytes:
    """64 bits of the SHA-256 of the lines that are not empty."""
    return hashlib.sha256("\n".join(filter(None, lines)).encode()).digest()[:8]


@jax.jit
@partial(jax.vmap, in_axes=(None, 0, 0))
def run_keys(
    key: Int[Array, ""], words: UInt32[Array, " 2"], number: Int[Array, ""]
) -> Key[Array, ""]:
    """The keys of realisations.

    Args:
        key: the spec's key, an integer.
        words: the hash of the cell of each realisation, shape (runs, 2).
        number: the number of each realisation within its cell, shape (runs,).

    >>> run_keys(0, np.array([[7, 1], [7, 1]], np.uint32), np.array([0, 1])).shape
    (2,)
    """
    key = jax.random.key(key)
    for word in (words[0], words[1], number):
        key = jax.random.fold_in(key, word)
    return key
