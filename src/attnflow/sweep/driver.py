"""`run` and `load`: compute what is missing of a sweep's store."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnflow._version import __version__
from attnflow.checks import require_count, require_positive
from attnflow.errors import InputError, sentence
from attnflow.retired import renamed_arguments
from attnflow.spec.read import parse_sweep, read_sweep
from attnflow.spec.sweep import SweepSpec
from attnflow.stores import open_dataset
from attnflow.sweep.check import check
from attnflow.sweep.engine import Engine, Result, distributed, engine, results
from attnflow.sweep.grid import Block
from attnflow.sweep.inspection import Inspection
from attnflow.sweep.reduce import variables
from attnflow.sweep.store import Failure, Store, canonical

if TYPE_CHECKING:
    import xarray

PACKAGES = ("jax", "jaxlib", "diffrax", "equinox", "numpy", "xarray", "zarr")
Place = str | os.PathLike[str]


@dataclass
class SweepProgress:
    """How far a sweep is: cells in all, done before, done now, and what failed."""

    cells: int
    before: int
    done: int = 0
    failures: list[Failure] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)
    stopping: int = 0
    """After Ctrl-C: so many blocks are in flight, and waited for."""

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return self.before + self.done == self.cells


@renamed_arguments(tell="on_progress")
def run(
    spec: SweepSpec | Mapping[str, Any] | Place,
    store: Place,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    patience: float | None = None,
    on_progress: Callable[[SweepProgress], object] = lambda progress: None,
) -> SweepProgress:
    """Compute every cell of a spec into a Zarr store, or what is missing of it.

    The spec is a `SweepSpec`, a dictionary or the path of a TOML file. The work is done by this
    process, by `workers` processes of a local Dask cluster, or by the cluster at the address
    `scheduler`; the numbers are the same. `on_progress` is called after every block. A block
    that fails is among the failures of the progress and does not stop the others. Ctrl-C keeps
    what is done, and the same call goes on from there. Workers hang at times: where none of them
    has done a block for `patience` seconds, they are started anew and their blocks given out
    again.

    >>> import tempfile
    >>> spec = {"system": {"name": "SA"}, "start": {"n": 4, "d": 2},
    ...         "times": {"stop": 1.0, "count": 2}, "axes": {"beta": [1.0, 4.0]},
    ...         "keep": {"E": {"observable": "energy"}}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     progress = run(spec, f"{folder}/store.zarr")
    ...     E = load(f"{folder}/store.zarr")["E"]
    >>> progress.complete, dict(E.sizes)
    (True, {'beta': 2, 'time': 2})
    """
    if workers is not None:
        require_count(workers, "workers")
    if workers is not None and scheduler is not None:
        raise InputError("give workers or scheduler, not both.")
    if workers is not None or scheduler is not None:
        distributed()
    elif patience is not None:
        raise InputError("patience: give workers too, as a process cannot restart itself.")
    if patience is not None:
        require_positive(patience, "patience")
    place = prepare(as_spec(spec), Path(store))
    with place.writing():
        done = {block.number for block in place.done() if place.is_sound(block)}
        progress = SweepProgress(place.grid.cells, sum(place.grid[number].size for number in done))
        on_progress(progress)
        missing = [number for number in range(len(place.grid)) if number not in done]
        if missing:
            with (
                engine(workers, scheduler) as chosen,
                closing(_results(chosen, place, missing, progress, patience, on_progress)) as found,
            ):
                for number, result in found:
                    _keep(place, place.grid[number], result, progress)
                    on_progress(progress)
    return progress


def _results(
    chosen: Engine,
    place: Store,
    missing: list[int],
    progress: SweepProgress,
    patience: float | None,
    on_progress: Callable[[SweepProgress], object],
) -> Generator[tuple[int, Result], None, None]:
    def stopping(in_flight: int) -> None:
        progress.stopping = in_flight
        on_progress(progress)

    inspection = Inspection(place.grid, *place.arrays())
    return results(
        chosen,
        canonical(place.spec),
        missing,
        fault=inspection.fault,
        patience=patience,
        stopping=stopping,
    )


def load(store: Place) -> xarray.Dataset:
    """What a store holds so far, opened lazily: cells that are not done are NaN."""
    Store.open(Path(store))
    return open_dataset(Path(store), whole=False)


def as_spec(spec: SweepSpec | Mapping[str, Any] | Place) -> SweepSpec:
    """The spec itself, from a dictionary, or from a TOML file."""
    if isinstance(spec, SweepSpec):
        return spec
    return parse_sweep(dict(spec)) if isinstance(spec, Mapping) else read_sweep(spec)


def prepare(spec: SweepSpec, path: Path) -> Store:
    """The store of a spec: a new one, or the one that is there if it is of the same spec."""
    if not path.exists():
        Store(path, spec).create(variables(spec, check(spec)), provenance(spec))
    store = Store.open(path)
    if differences := store.differences(spec):
        said = "; ".join(differences)
        raise InputError(f"{path} is the store of another sweep ({said}): choose another path.")
    store.require_same_draws()
    return store


def provenance(spec: SweepSpec) -> dict[str, Any]:
    """What made a store: package versions and the key."""
    versions = {"attnflow": __version__} | {name: version(name) for name in PACKAGES}
    return {"title": spec.title or "", "key": spec.key, "versions": json.dumps(versions)}


def _keep(store: Store, block: Block, result: Result, progress: SweepProgress) -> None:
    if isinstance(result, BaseException):
        cell = store.grid.values(block.cells()[0])
        failure = Failure(block.number, cell, block.size, sentence(result))
        progress.failures.append(failure)
        store.note_failure(block, failure)
        return
    store.write(block, result.values)
    progress.done += block.size
