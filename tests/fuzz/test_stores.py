"""Zarr stores of runs and sweeps in which any file is another one, or missing."""

import json
import shutil

import pytest
from hypothesis import strategies as st

import attnflow as af
from attnflow import sweep
from attnflow.sweep.store import Failure
from fuzz.mutations import mutated_bytes, mutated_json
from fuzz.verdict import refused
from small_sweep import spec
from tries import tries


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """A store of a run, and one of a sweep with a block that failed."""
    root = tmp_path_factory.mktemp("stores")
    x0 = af.initial.sphere(n=4, d=3, key=0, batch=(2,))
    af.simulate(af.SA(2.0), x0, [0.0, 1.0, 2.0], method=af.Coarsening()).save(root / "run")
    sweep.run(spec(), root / "sweep")
    failure = Failure(0, {"beta": 1.0}, 1, "RuntimeError: no")
    (root / "sweep" / "blocks" / "0.failed").write_text(json.dumps(vars(failure)))
    return root


@st.composite
def attacks(draw, files):
    """One of the files, and its new bytes; None removes it."""
    name = draw(st.sampled_from(sorted(files)))
    data = files[name]
    texts = name.endswith((".json", ".failed"))
    changes = mutated_json([data.decode()]) if texts and data else mutated_bytes([data])
    return name, draw(changes | st.none())


def spoilt(root, draw, use):
    """Change a file of a store, look what happens, and put it right."""
    files = {str(f.relative_to(root)): f.read_bytes() for f in root.rglob("*") if f.is_file()}
    name, data = draw(attacks(files))
    path = root / name
    path.unlink()
    if data is not None:
        path.write_bytes(data)
    try:
        said = refused(use, root)
        assert said is None or str(root) in said
    finally:
        shutil.rmtree(root)
        for file, before in files.items():
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            (root / file).write_bytes(before)


def read_run(path):
    repr(af.Trajectory.load(path))


def read_sweep(path):
    """All that one does with a store: ask how it stands, open it, read it, go on with it."""
    sweep.status(path)
    sweep.load(path)
    with sweep.driver.prepare(spec(), path).writing():
        pass


def test_what_the_attacks_begin_from_is_right(stores):
    assert refused(read_run, stores / "run") is None
    assert refused(read_sweep, stores / "sweep") is None


@pytest.mark.slow
@tries(200, 10_000, data=st.data())
def test_a_changed_store_of_a_run(data, stores):
    spoilt(stores / "run", data.draw, read_run)


@pytest.mark.slow
@tries(200, 10_000, data=st.data())
def test_a_changed_store_of_a_sweep(data, stores):
    spoilt(stores / "sweep", data.draw, read_sweep)
