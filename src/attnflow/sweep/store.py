"""The Zarr store of a sweep: labelled arrays, written block by block, each block once.

A block is done when its record exists. The record is written last and atomically. It holds the size
and the checksum of every chunk file, so truncated or changed files are detected. The writer holds
a lock, which the operating system releases when the process dies.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from attnflow.errors import InputError
from attnflow.files import atomic_write, clear_unfinished, file_lock, is_locked
from attnflow.records import read_json, read_record, write_json
from attnflow.spec.read import parse_sweep
from attnflow.spec.sweep import RECORDS, SweepSpec, flat, path
from attnflow.stores import compressor, consolidate, readable, require_plain, write_dataset
from attnflow.sweep.draws import RULE
from attnflow.sweep.grid import Axis, Block, Grid
from attnflow.sweep.reduce import UNFINISHED, Variable, variables

FORMAT = "attnflow-sweep-2"
EARLIER = ("attnflow-sweep-1",)
"""Stores whose random numbers were drawn by another rule: they can be read but not resumed."""


@dataclass(frozen=True)
class Failure:
    """A block that could not be computed.

    Attributes:
        block: its number.
        cell: the values of the axes at its first cell.
        cells: number of cells in the block.
        error: the error message.
    """

    block: int
    cell: dict[str, Any]
    cells: int
    error: str


class Store:
    """The store of a spec on disk.

    Args:
        path: where the store is, or will be.
        spec: the spec of the sweep.
        kind: the format of the store.
    """

    def __init__(self, path: Path, spec: SweepSpec, kind: str = FORMAT):
        self.path, self.spec, self.grid = path, spec, Grid.of(spec)
        self.kind = kind

    @classmethod
    def open(cls, path: Path) -> Store:
        """Open an existing store."""
        if not (path / "zarr.json").is_file():
            raise InputError(f"{path} is not the store of a sweep.")
        described = read_json(path / "zarr.json")
        try:
            attributes = described["attributes"]
            kind = attributes["format"]
            ours = kind in (FORMAT, *EARLIER)
            spec = parse_sweep(json.loads(attributes["spec"])) if ours else None
        except (ValueError, KeyError, TypeError, RecursionError):
            spec = None
        if spec is None:
            raise InputError(f"{path} is not the store of a sweep.")
        require_plain(path)
        return cls(path, spec, kind)

    def require_same_draws(self) -> None:
        """Raise if the store was started by a version that drew other random numbers."""
        if self.kind != FORMAT:
            raise InputError(
                f"{self.path} was started by an earlier version of attnflow, which drew other "
                "random numbers: it can be read but not resumed. Choose another path."
            )

    def create(self, kept: list[Variable], attributes: dict[str, Any]) -> None:
        """Create an empty store. It appears once it is complete, unless one exists by then."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(self.path) as place:
            if not self.path.exists():
                self._lay_out(place, kept, attributes)

    def _lay_out(self, place: Path, kept: list[Variable], attributes: dict[str, Any]) -> None:
        import xarray
        import zarr

        ts = self.spec.times.build()
        coordinates: dict[str, Any] = {
            "time": ("time", ts, {"long_name": "time t, in layers of unit step", "units": "1"})
        }
        for axis in self.grid.axes:
            coordinates[axis.name] = (axis.name, labels(axis), coordinate_attributes(axis))
        for name, keep in self.spec.keep.items():
            if keep.quantiles:
                coordinates[f"{name}_quantile"] = (f"{name}_quantile", keep.quantiles)
        fixed = {"format": FORMAT, "draws": RULE, "spec": canonical(self.spec), **attributes}
        data = xarray.Dataset(coords=coordinates, attrs=fixed)
        write_dataset(data, place)
        group = zarr.open_group(place, mode="r+")
        group.create_group(RECORDS)
        for variable in kept:
            group.create_array(
                variable.name,
                shape=(*self.grid.shape, *variable.shape),
                chunks=(*self.grid.block, *variable.shape),
                dtype=variable.dtype,
                compressors=compressor(),
                fill_value=-1 if variable.name == UNFINISHED else float("nan"),
                dimension_names=(*(axis.name for axis in self.grid.axes), *variable.dims),
                attributes={"long_name": variable.long_name, "units": "1"},
            )
        consolidate(place)

    @cached_property
    def _arrays(self) -> dict[str, Any]:
        """The saved arrays, with one chunk for each block."""
        import zarr

        with readable(self.path), zarr.config.set({"array.write_empty_chunks": True}):
            arrays = dict(zarr.open_group(self.path, mode="r+").arrays())
        beside = {"time", *self.spec.axes, *(f"{name}_quantile" for name in self.spec.keep)}
        kept = {name: array for name, array in arrays.items() if name not in beside}
        missing = {UNFINISHED, *self.spec.keep} - set(kept)
        k = len(self.grid.axes)
        cut = (name for name, array in kept.items() if array.chunks[:k] != self.grid.block)
        for name in (*missing, *cut):
            raise InputError(f"{self.path} is damaged: it has no {name} that fits its spec.")
        return kept

    def arrays(self) -> tuple[dict[str, tuple[int, ...]], dict[str, np.dtype]]:
        """The shapes and the dtypes of the saved arrays, by name."""
        names = [
            variable.name for variable in variables(self.spec, dict.fromkeys(self.spec.keep, ()))
        ]
        kept = {name: self._arrays[name] for name in names}
        return {n: a.shape for n, a in kept.items()}, {n: a.dtype for n, a in kept.items()}

    def write(self, block: Block, values: dict[str, np.ndarray]) -> None:
        """Write a block, then its record."""
        try:
            for name, value in values.items():
                self._arrays[name][block.region] = value
            chunks = {name: self._chunk(name, block).read_bytes() for name in values}
            checksums = {name: (len(chunk), crc32(chunk)) for name, chunk in chunks.items()}
            write_json(self._record(block), checksums)
            self._failure(block).unlink(missing_ok=True)
        except (OSError, InputError) as error:
            why = error.reason if isinstance(error, InputError) else f"{error.strerror}."
            raise InputError(
                f"{why} What was written before is safe, and the same command resumes from there.",
                where=(str(self.path), "a block could not be written"),
            ) from None

    def note_failure(self, block: Block, failure: Failure) -> None:
        """Record why a block could not be computed; `status` shows it."""
        write_json(self._failure(block), failure)

    def done(self) -> Iterator[Block]:
        """The blocks that are complete. A block with a truncated chunk is not."""
        numbers = sorted(int(file.stem) for file in self._records())
        blocks = (self.grid[number] for number in numbers if number < len(self.grid))
        return (block for block in blocks if self.is_done(block))

    def is_done(self, block: Block) -> bool:
        """Whether a block has its record and all of its chunks."""
        return self._agrees(block, lambda path, checksum: path.stat().st_size == checksum[0])

    def is_sound(self, block: Block) -> bool:
        """Whether the chunks of a block still hold the bytes written; reads all of them."""
        return self._agrees(block, lambda path, checksum: crc32(path.read_bytes()) == checksum[1])

    def _agrees(self, block: Block, agree: Callable[[Path, list[int]], bool]) -> bool:
        """Whether every chunk of a block agrees with its record."""
        kept = self._arrays.keys()
        try:
            checksums = read_json(self._record(block))
            return checksums.keys() == kept and all(
                agree(self._chunk(name, block), checksum) for name, checksum in checksums.items()
            )
        except (OSError, ValueError, AttributeError, LookupError, TypeError):
            return False

    def failures(self) -> list[dict[str, Any]]:
        """The blocks that could not be computed."""
        found = []
        for file in sorted((self.path / RECORDS).glob("[0-9]*.failed")):
            try:
                found.append(asdict(read_record(file, Failure, "record of a failed block")))
            except InputError:
                if file.exists():  # else the block has just been computed after all
                    raise
        return found

    def written(self) -> list[float]:
        """When the blocks were written, in seconds since 1970."""
        return sorted(file.stat().st_mtime for file in self._records())

    def _records(self) -> Iterator[Path]:
        found = (self.path / RECORDS).glob("[0-9]*.json")
        return (file for file in found if re.fullmatch("0|[1-9][0-9]*", file.stem))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only writer, after removing what crashed writers left behind."""
        with file_lock(self._lock, f"{self.path}: another process is computing this sweep"):
            clear_unfinished(self.path / RECORDS)
            for name in self._arrays:
                for left in (self.path / name).rglob("*.partial"):
                    left.unlink()
            yield

    @property
    def being_written(self) -> bool:
        """Whether a process is computing this sweep; needs no write permission."""
        return is_locked(self._lock)

    @property
    def _lock(self) -> Path:
        return self.path / RECORDS / "lock"

    def differences(self, spec: SweepSpec) -> list[str]:
        """How a spec differs from the store's own, field by field."""
        ours, theirs = (flat(json.loads(canonical(s))) for s in (self.spec, spec))
        names = [name for name in {**ours, **theirs} if name != "title"]
        return [
            f"{name}: {ours.get(name, 'nothing')} in the store, {theirs.get(name, 'nothing')} now"
            for name in names
            if ours.get(name) != theirs.get(name)
        ]

    def _record(self, block: Block) -> Path:
        return self.path / RECORDS / f"{block.number}.json"

    def _failure(self, block: Block) -> Path:
        return self._record(block).with_suffix(".failed")

    def _chunk(self, name: str, block: Block) -> Path:
        at = [r.start // b for r, b in zip(block.ranges, self.grid.block, strict=True)]
        rest = self._arrays[name].ndim - len(at)
        return self.path / name / self._arrays[name].metadata.encode_chunk_key((*at, *[0] * rest))


def canonical(spec: SweepSpec) -> str:
    """A spec as text, the same for equal specs."""
    return json.dumps(spec.model_dump(mode="json"), sort_keys=False)


def labels(axis: Axis) -> np.ndarray:
    """The coordinate of an axis: its numbers, or its values as text."""
    if axis.numeric:
        return np.asarray(axis.values)
    text = [v if isinstance(v, str) else json.dumps(v) for v in axis.values]
    return np.array(text, dtype=object)


def coordinate_attributes(axis: Axis) -> dict[str, str]:
    """The attributes of the coordinate of an axis."""
    known = {"beta": "inverse temperature β", "n": "number of tokens n", "d": "dimension d"}
    named = {"long_name": known.get(axis.name, path(axis.name))}
    return named | ({"units": "1"} if axis.numeric else {})
