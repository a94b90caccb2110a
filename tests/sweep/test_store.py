import json
import os

import numpy as np
import pytest
import xarray

from attnflow.errors import InputError
from attnflow.sweep import load, status
from attnflow.sweep.reduce import variables
from attnflow.sweep.store import Store
from small_sweep import contents, spec


@pytest.fixture
def store(tmp_path):
    given = spec(axes={"d": [2, 3], "beta": [1.0, 2.0, 4.0]}, realisations=200)
    made = Store(tmp_path / "store.zarr", given)
    made.create(variables(given, {"E": ()}), {"key": 0})
    return made


def fill(store, block, value):
    shape = block.shape
    E = np.full((*shape, 3), value)
    store.write(block, {"unfinished": np.zeros(shape, np.int32), "E": E, "E_error": E})


def test_blocks_appear_where_they_belong(store):
    assert len(store.grid) == 4
    for block in store.grid:
        fill(store, block, float(block.number))
    with xarray.open_zarr(store.path) as data:
        E = data["E"].values
        assert (data["d"].values.tolist(), data["beta"].values.tolist()) == ([2, 3], [1, 2, 4])
    assert E[..., 0].tolist() == [[0, 0, 1], [2, 2, 3]]


def test_what_is_not_written_is_nan_and_not_done(store):
    fill(store, store.grid[2], 1.0)
    assert [block.number for block in store.done()] == [2]
    with xarray.open_zarr(store.path) as data:
        assert np.isnan(data["E"].sel(d=2).values).all()
        assert data["unfinished"].sel(d=2).values.tolist() == [-1, -1, -1]


@pytest.mark.parametrize("harm", ["truncate", "remove", "record", "empty", "list"])
def test_damage_is_found(store, harm):
    for block in store.grid:
        fill(store, block, 1.0)
    victim = store._chunk("E_error", store.grid[1])
    assert victim.stat().st_size > 4
    if harm == "truncate":
        os.truncate(victim, 4)
    elif harm == "remove":
        victim.unlink()
    else:
        text = {"record": "{", "empty": "{}", "list": "[1]"}[harm]
        store._record(store.grid[1]).write_text(text)
    assert [block.number for block in store.done()] == [0, 2, 3]


def test_other_bytes_of_the_same_number_are_found_by_reading(store):
    for block in store.grid:
        fill(store, block, 1.0)
    assert all(map(store.is_sound, store.grid))
    victim = store._chunk("E", store.grid[1])
    victim.write_bytes(bytes(byte ^ 1 for byte in victim.read_bytes()))
    assert store.is_done(store.grid[1])
    assert [block.number for block in store.grid if not store.is_sound(block)] == [1]


def test_a_copy_of_a_record_does_not_count(store):
    fill(store, store.grid[0], 1.0)
    record = store._record(store.grid[0])
    record.with_name("00.json").write_text(record.read_text())
    assert [block.number for block in store.done()] == [0]


def test_a_store_that_was_cut_off_is_not_called_another(store):
    os.truncate(store.path / "zarr.json", 60)
    with pytest.raises(InputError, match=r"zarr\.json is no JSON"):
        status(store.path)


def test_a_chunk_of_zeros_or_nan_is_a_file_too(store):
    """Zarr leaves out chunks that are all fill value, which would look like damage."""
    fill(store, store.grid[0], np.nan)
    assert store.is_done(store.grid[0])


def test_opening(store, tmp_path):
    again = Store.open(store.path)
    assert again.spec == store.spec
    assert again.differences(store.spec) == []
    for wrong in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(InputError, match="not the store of a sweep"):
            Store.open(wrong)
    (store.path / "zarr.json").write_text("{}")
    with pytest.raises(InputError, match="not the store of a sweep"):
        Store.open(store.path)


def test_differences_are_named(store):
    other = spec(axes={"d": [2, 4], "beta": [1.0, 2.0, 4.0]}, key=7, title="only a title")
    said = store.differences(other)
    assert sorted(s.split(":")[0] for s in said) == ["axes.d", "key", "realisations"]
    assert "realisations: 200 in the store, 2 now" in said


def test_an_interrupted_creation_leaves_nothing(tmp_path, monkeypatch):
    made = Store(tmp_path / "store.zarr", spec())
    monkeypatch.setattr(Store, "_lay_out", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        made.create([], {})
    assert list(tmp_path.iterdir()) == []


def test_one_writer_at_a_time(store):
    other = Store.open(store.path)
    with store.writing():
        assert other.being_written
        with pytest.raises(InputError, match="another process"), other.writing():
            pass
    assert not other.being_written


def test_attributes_say_what_it_is(store):
    with xarray.open_zarr(store.path) as data:
        assert json.loads(data.attrs["spec"])["realisations"] == 200
        assert data["beta"].attrs["long_name"] == "inverse temperature β"
        assert data["time"].attrs["units"] == "1"
    assert not any(".zarr-" in name for name in contents(store.path))


def test_a_full_disk_loses_nothing(store, monkeypatch):
    fill(store, store.grid[0], 1.0)
    monkeypatch.setattr("attnflow.sweep.store.write_json", _full)
    with pytest.raises(InputError, match="No space left on device"):
        fill(store, store.grid[1], 2.0)
    assert [block.number for block in store.done()] == [0]


def _full(*args):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("file", ["E/zarr.json", "blocks/0.failed", "unfinished/zarr.json"])
def test_a_damaged_store_says_so(store, file):
    fill(store, store.grid[0], 1.0)
    (store.path / file).write_text('{"shape": [1e99]}')
    root = store.path / "zarr.json"
    table = json.loads(root.read_text())
    del table["consolidated_metadata"]
    root.write_text(json.dumps(table))
    with pytest.raises(InputError, match=r"store\.zarr.* is (damaged|no record)"):
        status(store.path)


def test_a_store_that_claims_to_be_huge_is_not_read(store):
    file = store.path / "time" / "zarr.json"
    table = json.loads(file.read_text())
    table["shape"] = [10**14]
    table["chunk_grid"]["configuration"]["chunk_shape"] = [10**14]
    file.write_text(json.dumps(table))
    with pytest.raises(InputError, match="as it describes itself, would need about"):
        load(store.path)


def test_a_store_of_many_blocks_is_looked_through_at_once(tmp_path):
    """What is asked costs as much as there is, not as much as there could be."""
    given = spec(axes={"beta": {"start": 0.0, "stop": 1.0, "count": 1_000_000}}, realisations=600)
    large = Store(tmp_path / "store.zarr", given)
    large.create(variables(given, {"E": ()}), {"key": 0})
    looked = []
    large.is_done = looked.append
    assert not list(large.done())
    assert not looked
