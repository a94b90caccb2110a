import json
import os

import numpy as np
import pytest
import xarray

from attnflow import sweep
from attnflow.errors import InputError
from attnflow.sweep.store import Store
from attnflow.sweep.tile import Computer
from small_sweep import contents, records, spec

BLOCKS = {"axes": {"beta": [0.5, 1.0, 2.0, 4.0]}, "realisations": 300}


@pytest.fixture
def given():
    return spec(**BLOCKS)


def test_the_store_holds_what_was_computed(given, tmp_path):
    progress = sweep.run(given, tmp_path / "store")
    assert (progress.before, progress.done, progress.failures) == (0, 4, [])
    computer = Computer(given)
    with sweep.load(tmp_path / "store") as data:
        for block in computer.grid:
            values = computer.values(block)["E"]
            assert np.array_equal(data["E"].values[block.region], values.mean(axis=1))
        assert (data["unfinished"].values == 0).all()
        assert data.attrs["key"] == 0
        assert set(json.loads(data.attrs["versions"])) >= {"attnflow", "jax", "diffrax", "numpy"}


def test_the_same_bits_however_often_it_stops(given, tmp_path):
    sweep.run(given, tmp_path / "whole")

    def stop(progress):
        if progress.done == 1:
            raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            sweep.run(given, tmp_path / "pieces", on_progress=stop)
    before = records(tmp_path / "pieces")
    assert len(before) == 2
    progress = sweep.run(given, tmp_path / "pieces")
    assert (progress.before, progress.done) == (2, 2)
    assert contents(tmp_path / "pieces") == contents(tmp_path / "whole")
    assert before.items() <= records(tmp_path / "pieces").items(), "nothing was written twice"


def test_a_complete_store_computes_nothing(given, tmp_path, monkeypatch):
    sweep.run(given, tmp_path / "store")
    monkeypatch.setattr(Computer, "values", lambda *args: pytest.fail("computed again"))
    progress = sweep.run(given, tmp_path / "store")
    assert (progress.before, progress.done, progress.complete) == (4, 0, True)


def test_a_truncated_chunk_is_computed_again(given, tmp_path):
    sweep.run(given, tmp_path / "store")
    whole = contents(tmp_path / "store")
    store = Store.open(tmp_path / "store")
    os.truncate(store._chunk("E", store.grid[2]), 5)
    assert contents(tmp_path / "store") != whole
    progress = sweep.run(given, tmp_path / "store")
    assert (progress.before, progress.done) == (3, 1)
    assert contents(tmp_path / "store") == whole


def test_another_spec_is_refused_with_the_difference(given, tmp_path):
    sweep.run(given, tmp_path / "store")
    before = contents(tmp_path / "store")
    with pytest.raises(InputError, match=r"another sweep .*key: 0 in the store, 3 now"):
        sweep.run(spec(**BLOCKS, key=3), tmp_path / "store")
    assert contents(tmp_path / "store") == before


def test_a_title_is_no_difference(given, tmp_path):
    sweep.run(given, tmp_path / "store")
    assert sweep.run(spec(**BLOCKS, title="Another"), tmp_path / "store").complete


def test_a_cell_that_fails_is_told_and_the_rest_goes_on(tmp_path):
    """Qhull refuses d = 9, which is seen only when it runs."""
    keep = {"K": {"observable": "hull_vertices"}}
    start = {"name": "sphere", "n": 12}
    bad = spec(keep=keep, start=start, axes={"d": [2, 9, 3], "beta": [1.0]})
    progress = sweep.run(bad, tmp_path / "store")
    assert progress.done == 2
    (failure,) = progress.failures
    assert failure.cell == {"d": 9, "beta": 1.0}
    assert "8" in failure.error
    found = sweep.status(tmp_path / "store")
    assert (found.done, found.cells, found.complete) == (2, 3, False)
    assert found.failures[0]["cell"] == {"d": 9, "beta": 1.0}
    with sweep.load(tmp_path / "store") as data:
        assert np.isfinite(data["K"].sel(d=3).values).all()


def test_status_of_what_stands_still(given, tmp_path):
    sweep.run(given, tmp_path / "store")
    found = sweep.status(tmp_path / "store")
    assert (found.done, found.cells, found.realisations) == (4, 4, 300)
    assert found.complete
    assert not found.running
    assert found.failures == []
    assert found.cells_per_second > 0


def test_status_while_it_runs(given, tmp_path):
    seen = []
    sweep.run(
        given,
        tmp_path / "store",
        on_progress=lambda t: seen.append(sweep.status(tmp_path / "store")),
    )
    assert all(found.running for found in seen)
    assert [found.done for found in seen] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"workers": 0}, "workers"),
        ({"workers": 2, "scheduler": "tcp://127.0.0.1:1"}, "not both"),
    ],
)
def test_arguments(given, tmp_path, arguments, said):
    with pytest.raises(InputError, match=said):
        sweep.run(given, tmp_path / "store", **arguments)
    assert not (tmp_path / "store").exists()


def test_a_folder_that_is_something_else(given, tmp_path):
    (tmp_path / "store").mkdir()
    with pytest.raises(InputError, match="not the store of a sweep"):
        sweep.run(given, tmp_path / "store")


def test_labels_of_axes_that_are_not_numbers(tmp_path):
    axes = {
        "system.name": ["SA", "USA"],
        "V": {"cases": {"attract": {"system.V": 1.0}, "repel": {"system.V": -1.0}}},
    }
    given = spec(system={"name": "SA", "beta": 1.0}, axes=axes)
    sweep.run(given, tmp_path / "store")
    with xarray.open_zarr(tmp_path / "store") as data:
        E = data["E"].sel({"system.name": "USA"})
        assert float(E.sel(V="attract")[-1]) > float(E.sel(V="attract")[0])
        assert float(E.sel(V="repel")[-1]) < float(E.sel(V="repel")[0])
