"""The Zarr store of a sweep: labelled arrays, written block by block, each block once.

A block is done when its record is there, which is written last and atomically. It has the size of
every chunk file, so that a file that was cut short later is found. Whoever writes holds a lock,
which the system takes back when the process dies.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np

from attnflow.errors import InputError
from attnflow.files import write_whole
from attnflow.spec.sweep import SweepSpec, path
from attnflow.sweep.grid import Axis, Block, Grid
from attnflow.sweep.reduce import UNFINISHED, Variable

try:
    import fcntl
except ImportError:  # on Windows, where a second writer is not noticed
    fcntl = None  # type: ignore[assignment]

FORMAT = "attnflow-sweep-1"
RECORDS = "blocks"
LOOKS = 10
"""So often a writer tries for the lock, as `status` may hold it for a moment."""


class Store:
    """A store on disk, of one spec."""

    def __init__(self, path: Path, spec: SweepSpec):
        self.path, self.spec, self.grid = path, spec, Grid.of(spec)

    @classmethod
    def open(cls, path: Path) -> Store:
        """A store that exists."""
        try:
            attributes = json.loads((path / "zarr.json").read_text())["attributes"]
            if attributes["format"] == FORMAT:
                return cls(path, SweepSpec.model_validate_json(attributes["spec"]))
        except (OSError, ValueError, KeyError, TypeError):
            pass
        raise InputError(f"{path} is not the store of a sweep.")

    def create(self, variables: list[Variable], attributes: dict[str, Any]) -> None:
        """An empty store; it appears when it is complete."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{self.path.name}-", dir=self.path.parent))
        try:
            self._lay_out(scratch / "store", variables, attributes)
            (scratch / "store").rename(self.path)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _lay_out(self, place: Path, variables: list[Variable], attributes: dict[str, Any]) -> None:
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
        fixed = {"format": FORMAT, "spec": canonical(self.spec), **attributes}
        data = xarray.Dataset(coords=coordinates, attrs=fixed)
        data.to_zarr(place, mode="w", consolidated=False, zarr_format=3)
        group = zarr.open_group(place, mode="r+")
        group.create_group(RECORDS)
        for variable in variables:
            whole = variable.name == UNFINISHED
            group.create_array(
                variable.name,
                shape=(*self.grid.shape, *variable.shape),
                chunks=(*self.grid.block, *variable.shape),
                dtype="int32" if whole else self.spec.dtype,
                fill_value=-1 if whole else float("nan"),
                dimension_names=(*(axis.name for axis in self.grid.axes), *variable.dims),
                attributes={"long_name": variable.long_name, "units": "1"},
            )
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Consolidated metadata", category=UserWarning)
            zarr.consolidate_metadata(place)

    @cached_property
    def _arrays(self) -> dict[str, Any]:
        import zarr

        with zarr.config.set({"array.write_empty_chunks": True}):
            return dict(zarr.open_group(self.path, mode="r+").arrays())

    def write(self, block: Block, values: dict[str, np.ndarray]) -> None:
        """Write a block, then its record."""
        try:
            for name, value in values.items():
                self._arrays[name][block.region] = value
            sizes = {name: self._chunk(name, block).stat().st_size for name in values}
            write_whole(self._record(block), json.dumps(sizes))
        except OSError as error:
            raise InputError(
                f"{self.path}: a block could not be written: {error}. What was written before is "
                "safe, and the same command goes on from there."
            ) from None
        self._failure(block).unlink(missing_ok=True)

    def note_failure(self, block: Block, failure: dict[str, Any]) -> None:
        """Remember why a block could not be computed, for whoever asks how the sweep stands."""
        write_whole(self._failure(block), json.dumps(failure))

    def done(self) -> Iterator[Block]:
        """The blocks that are complete; damaged ones are not."""
        return (block for block in self.grid if self.is_done(block))

    def is_done(self, block: Block) -> bool:
        """Whether a block has its record and all of its chunks."""
        try:
            sizes = json.loads(self._record(block).read_text())
            return all(
                self._chunk(name, block).stat().st_size == size for name, size in sizes.items()
            )
        except (OSError, ValueError):
            return False

    def failures(self) -> list[dict[str, Any]]:
        """What is known of blocks that could not be computed."""
        found = sorted((self.path / RECORDS).glob("*.failed"))
        return [json.loads(file.read_text()) for file in found]

    def written(self) -> list[float]:
        """When the blocks were written, in seconds since 1970."""
        return sorted(file.stat().st_mtime for file in (self.path / RECORDS).glob("[0-9]*.json"))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only one who writes."""
        with self._lock.open("w") as file:
            if not _locked(file, exclusive=True):
                raise InputError(f"{self.path}: another process is computing this sweep.")
            yield

    @property
    def being_written(self) -> bool:
        """Whether a process is computing this sweep; looking needs no right to write."""
        if not self._lock.exists():
            return False
        with self._lock.open() as file:
            return not _locked(file, exclusive=False)

    @property
    def _lock(self) -> Path:
        return self.path / RECORDS / "lock"

    def differences(self, spec: SweepSpec) -> list[str]:
        """How a spec differs from that of this store, field by field."""
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


def _locked(file: IO[str], exclusive: bool) -> bool:
    """Try to lock a file until it is closed. Whoever only looks shares, and is gone at once."""
    if fcntl is None:
        return True
    kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
    for _ in range(LOOKS if exclusive else 1):
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
            return True
        except OSError:
            time.sleep(0.05)
    return False


def canonical(spec: SweepSpec) -> str:
    """A spec as text, the same for equal specs."""
    return json.dumps(spec.model_dump(mode="json"), sort_keys=False)


def flat(value: Any, name: str = "") -> dict[str, Any]:
    """The leaves of nested tables by their dotted names.

    >>> flat({"a": {"b": 1}, "c": [2]})
    {'a.b': 1, 'c': [2]}
    """
    if not isinstance(value, dict) or not value:
        return {name: value}
    inner = (flat(each, f"{name}.{key}".strip(".")) for key, each in value.items())
    return {k: v for part in inner for k, v in part.items()}


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
