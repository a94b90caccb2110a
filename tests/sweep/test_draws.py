"""The draws of a cell follow from what it says, whatever other cells a sweep has."""

import hashlib
import json

import jax
import numpy as np
import pytest

from attnflow.errors import InputError
from attnflow.sweep import load, run, status
from attnflow.sweep.draws import RULE, CellHashes, run_hash, run_keys
from attnflow.sweep.grid import Grid
from attnflow.sweep.tile import Computer
from small_sweep import spec

BETA = [0.5, 1.0, 2.0, 4.0]


def marks(given):
    """The hash of every cell by the values of its axes."""
    grid = Grid.of(given)
    of = CellHashes(given, grid)
    return {
        tuple(grid.values(cell).values()): tuple(map(int, word))
        for block in grid
        for cell, word in zip(block.cells(), of.of(block.cells()), strict=True)
    }


def test_a_mark_is_the_hash_of_what_the_cell_says():
    """The rule as stores state it, by hand."""
    lines = 'start.d=2\nstart.n=4\nstart.name="sphere"\nsystem.beta=0.5\nsystem.name="SA"'
    digest = hashlib.sha256(lines.encode()).digest()
    expected = np.frombuffer(digest[:8], ">u4")
    assert marks(spec())[(0.5,)] == tuple(expected)
    assert "SHA-256" in RULE


def test_all_cells_have_other_marks():
    axes = {"beta": {"start": 0.0, "stop": 9.0, "count": 500}, "n": [4, 5], "d": [2, 3]}
    assert len(set(marks(spec(axes=axes)).values())) == 2000


@pytest.mark.parametrize(
    "axes",
    [
        {"beta": [4.0, 0.25, *BETA[:3]]},
        {"n": [3, 4, 5], "beta": BETA},
        {"system.beta": BETA},
        {"beta": BETA, "start.spread": [0.1, 0.2]},
        {"ensemble": {"cases": {"plain": {"start.n": 4}, "more": {"n": 5}}}, "beta": BETA},
        {"beta": BETA, "method.dt": [0.5, 0.25]},
        {"beta": [1e-1 * 5, *BETA[1:]], "system.name": ["SA", "USA"]},
    ],
    ids=["values", "axis", "name", "default", "cases", "method", "system"],
)
def test_cells_keep_their_marks_when_axes_change(axes):
    """Four cells of other grids; the spread of clusters is 0.1 by default."""
    start = {"name": "clustered" if "start.spread" in axes else "sphere", "n": 4, "d": 2}
    before = marks(spec(start=start))
    after = marks(spec(start=start, axes=axes))
    numbers = set(after.values())
    assert set(before.values()) <= numbers
    if "method.dt" in axes:
        assert set(before.values()) == numbers, "how it is integrated is not drawn from"


def test_what_is_drawn_is_the_same_in_a_larger_grid():
    times, axes = {"stop": 0.5, "count": 2}, {"d": [3, 2], "beta": [0.5, 1.0]}
    system = {"name": "SA", "V": {"family": "goe"}}
    small = Computer(spec(axes={"beta": [1.0]}, times=times, system=system))
    large = Computer(spec(axes=axes, times=times, system=system))
    first = small.values(small.grid[0])["E"][0]
    again = large.values(large.grid[1])["E"][0, 1]
    assert np.allclose(first, again, rtol=1e-12)
    assert not np.allclose(first[0], first[1], rtol=1e-3), "realisations differ"


def test_fields_with_their_defaults_say_nothing():
    plain = spec(system={"name": "CBO", "objective": "ackley"}, axes={})
    given = spec(system={"name": "CBO", "objective": "ackley", "alpha": 50}, axes={})
    other = spec(system={"name": "CBO", "objective": "ackley", "alpha": 51}, axes={})
    found = [tuple(run_hash(each.cell({}))) for each in (plain, given, other)]
    assert found[0] == found[1] != found[2]


def test_keys_depend_on_key_mark_and_number_alone():
    words = np.array([[3, 1], [3, 1], [3, 2], [2, 3]], np.uint32)
    numbers = np.array([0, 1, 0, 0])
    keys = jax.random.key_data(run_keys(0, words, numbers))
    assert len({tuple(np.asarray(key)) for key in keys}) == 4
    back = jax.random.key_data(run_keys(0, words[::-1], numbers[::-1]))
    assert (keys == back[::-1]).all()
    assert not (keys == jax.random.key_data(run_keys(1, words, numbers))).any(axis=1).all()


def test_a_store_of_the_earlier_rule_is_read_and_not_gone_on_with(tmp_path):
    path = tmp_path / "store.zarr"
    run(spec(), path)
    assert load(path).attrs["draws"] == RULE
    root = path / "zarr.json"
    table = json.loads(root.read_text())
    table["attributes"]["format"] = "attnflow-sweep-1"
    root.write_text(json.dumps(table))
    assert np.isfinite(load(path)["E"].values).all()
    assert status(path).done == status(path).cells
    (path / "blocks" / "0.json").unlink()
    with pytest.raises(InputError, match="drew other random numbers"):
        run(spec(), path)
