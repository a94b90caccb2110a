"""`run` and `load`: compute what is missing of a sweep's store."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnflow._version import __version__
from attnflow.checks import require_count
from attnflow.errors import InputError
from attnflow.spec.read import parse_sweep, read_sweep
from attnflow.spec.sweep import SweepSpec
from attnflow.sweep.check import check
from attnflow.sweep.engine import Result, engine, results
from attnflow.sweep.grid import Block
from attnflow.sweep.reduce import variables
from attnflow.sweep.store import Store, canonical

if TYPE_CHECKING:
    import xarray

PACKAGES = ("jax", "jaxlib", "diffrax", "equinox", "numpy", "xarray", "zarr")
Place = str | os.PathLike[str]


@dataclass(frozen=True)
class Failure:
    """A block that could not be computed: the values of its first cell, its cells, and why."""

    block: int
    cell: dict[str, Any]
    cells: int
    error: str


@dataclass
class Tally:
    """How far a sweep is: cells in all, done before, done now, and what failed."""

    cells: int
    before: int
    done: int = 0
    failures: list[Failure] = field(default_factory=list)
    begun: float = field(default_factory=time.monotonic)

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return self.before + self.done == self.cells


def run(
    spec: SweepSpec | Mapping[str, Any] | Place,
    store: Place,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    tell: Callable[[Tally], object] = lambda tally: None,
) -> Tally:
    """Compute every cell of a spec into a Zarr store, or what is missing of it.

    The spec is a `SweepSpec`, a dictionary or the path of a TOML file. The work is done by this
    process, by `workers` processes of a local Dask cluster, or by the cluster at the address
    `scheduler`; the numbers are the same. `tell` is called after every block. A block that fails
    is told in the tally and does not stop the others. Ctrl-C keeps what is done, and the same call
    goes on from there.

    >>> import tempfile
    >>> spec = {"system": {"name": "SA"}, "start": {"n": 4, "d": 2},
    ...         "times": {"stop": 1.0, "count": 2}, "axes": {"beta": [1.0, 4.0]},
    ...         "keep": {"E": {"observable": "energy"}}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tally = run(spec, f"{folder}/store.zarr")
    ...     E = load(f"{folder}/store.zarr")["E"]
    >>> tally.complete, dict(E.sizes)
    (True, {'beta': 2, 'time': 2})
    """
    if workers is not None:
        require_count(workers, "workers")
    if workers is not None and scheduler is not None:
        raise InputError("give workers or scheduler, not both.")
    place = prepare(as_spec(spec), Path(store))
    with place.writing():
        done = {block.number for block in place.done()}
        tally = Tally(place.grid.cells, sum(place.grid[number].size for number in done))
        tell(tally)
        missing = [number for number in range(len(place.grid)) if number not in done]
        if missing:
            with (
                engine(workers, scheduler) as chosen,
                closing(results(chosen, canonical(place.spec), missing)) as found,
            ):
                for number, result in found:
                    _keep(place, place.grid[number], result, tally)
                    tell(tally)
    return tally


def load(store: Place) -> xarray.Dataset:
    """What a store holds so far, opened lazily: cells that are not done are NaN."""
    import xarray

    Store.open(Path(store))
    return xarray.open_zarr(store)


def as_spec(spec: SweepSpec | Mapping[str, Any] | Place) -> SweepSpec:
    """The spec itself, from a dictionary, or from a TOML file."""
    if isinstance(spec, SweepSpec):
        return spec
    return parse_sweep(dict(spec)) if isinstance(spec, Mapping) else read_sweep(spec)


def prepare(spec: SweepSpec, path: Path) -> Store:
    """The store of a spec: a new one, or the one that is there if it is of the same spec."""
    if path.exists():
        store = Store.open(path)
        if differences := store.differences(spec):
            said = "; ".join(differences)
            raise InputError(f"{path} is the store of another sweep ({said}): choose another path.")
        return store
    store = Store(path, spec)
    store.create(variables(spec, check(spec)), provenance(spec))
    return store


def provenance(spec: SweepSpec) -> dict[str, Any]:
    """What made a store: package versions and the seed."""
    versions = {"attnflow": __version__} | {name: version(name) for name in PACKAGES}
    return {"title": spec.title or "", "seed": spec.seed, "versions": json.dumps(versions)}


def sentence(error: BaseException) -> str:
    r"""An error in one line; of one that quotes a traceback, as XLA's do, the line that says why.

    >>> sentence(ValueError("no"))
    'ValueError: no'
    >>> sentence(RuntimeError("Traceback (most recent call last):\n ...\nOSError: disk full"))
    'OSError: disk full'
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if any("Traceback" in line for line in lines):
        return next((li for li in reversed(lines) if re.match(r"[\w.]+: ", li)), lines[0])
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"


def _keep(store: Store, block: Block, result: Result, tally: Tally) -> None:
    if isinstance(result, BaseException):
        cell = store.grid.values(block.cells()[0])
        failure = Failure(block.number, cell, block.size, sentence(result))
        tally.failures.append(failure)
        store.note_failure(block, asdict(failure))
        return
    store.write(block, result)
    tally.done += block.size
