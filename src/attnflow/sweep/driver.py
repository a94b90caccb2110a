"""`run` and `load`: compute what a sweep's store still lacks, and open the store."""

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
    """How far a sweep has got.

    Attributes:
        cells: number of cells in all.
        before: cells that were done before this call.
        done: cells that this call has done.
        failures: the blocks that failed.
        started: when this call started, by `time.monotonic`.
        stopping: after Ctrl-C, the number of blocks in flight that it waits for.
    """

    cells: int
    before: int
    done: int = 0
    failures: list[Failure] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)
    stopping: int = 0

    @property
    def complete(self) -> bool:
        """Whether all cells are done."""
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
    """Compute the cells of a sweep into a Zarr store: all of them, or those still missing.

    The numbers do not depend on who computes them: this process, `workers` or a `scheduler`. A
    block that fails does not stop the others; the result lists it. Ctrl-C keeps what is done, and
    the same call resumes from there.

    Args:
        spec: a `SweepSpec`, a dictionary, or the path of a TOML file.
        store: the path of the store. If it exists, it must be of the same spec.
        workers: number of processes of a local Dask cluster. By default this process does the
            work.
        scheduler: the address of a Dask cluster, instead of `workers`.
        patience: seconds to wait for the next block. After that, workers that hang are restarted
            and their blocks are computed again. By default it waits forever.
        on_progress: called with the progress after every block.

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
        raise InputError("give either workers or scheduler, not both.")
    if workers is not None or scheduler is not None:
        distributed()
    elif patience is not None:
        raise InputError("patience needs workers: this process cannot restart itself.")
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
    """What a store holds so far, opened lazily. Cells that are not done yet are NaN."""
    Store.open(Path(store))
    return open_dataset(Path(store), whole=False)


def as_spec(spec: SweepSpec | Mapping[str, Any] | Place) -> SweepSpec:
    """A spec from a spec, a dictionary or the path of a TOML file."""
    if isinstance(spec, SweepSpec):
        return spec
    return parse_sweep(dict(spec)) if isinstance(spec, Mapping) else read_sweep(spec)


def prepare(spec: SweepSpec, path: Path) -> Store:
    """The store of a spec: a new one, or the existing one if it is of the same spec."""
    if not path.exists():
        Store(path, spec).create(variables(spec, check(spec)), provenance(spec))
    store = Store.open(path)
    if differences := store.differences(spec):
        said = "; ".join(differences)
        raise InputError(f"{path} is the store of another sweep ({said}): choose another path.")
    store.require_same_draws()
    return store


def provenance(spec: SweepSpec) -> dict[str, Any]:
    """What a store records about its origin: title, key and package versions."""
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
