import math

import numpy as np
import pytest

from attnflow.sweep.grid import TASK_RUNS, Grid
from small_sweep import spec


def grid(**changes):
    return Grid.of(spec(**changes))


@pytest.mark.parametrize(
    ("axes", "realisations"),
    [
        ({"beta": [1.0, 2.0, 3.0], "d": [2, 3]}, 200),
        ({"d": [2, 3, 4], "beta": {"start": 0.0, "stop": 1.0, "count": 700}}, 3),
        ({"beta": [1.0], "n": [4, 8]}, 5000),
        ({}, 1),
    ],
)
def test_blocks_hold_every_cell_once(axes, realisations):
    made = grid(axes=axes, realisations=realisations)
    seen = [cell for block in made for cell in block.cells()]
    assert len(seen) == len(set(seen)) == made.cells == math.prod(made.shape)
    for block in made:
        assert block.size == 1 or block.size * realisations <= TASK_RUNS
        assert len({made.kind(cell) for cell in block.cells()}) == 1


def test_what_is_traced():
    axes = {
        "beta": [1, 2],
        "n": [4, 8],
        "d": [2, 3],
        "start.spread": [0.1, 0.2],
        "method.rtol": [1e-3, 1e-6],
        "system.V.scale": [0.5, 1.0],
        "system.name": ["SA", "USA"],
        "ensemble": {"cases": {"a": {"system.K": -1.0}}},
    }
    made = grid(axes=axes)
    traced = {axis.name for axis in made.axes if axis.traced}
    assert traced == {"beta", "start.spread", "method.rtol"}


def test_many_cells_are_few_tasks():
    axes = {"beta": {"start": 0.0, "stop": 9.0, "count": 100_000}}
    assert len(grid(axes=axes, realisations=1)) == math.ceil(100_000 / TASK_RUNS)


def test_a_tile_is_a_power_of_two_that_fits_the_block():
    made = grid(realisations=100)
    for shape in ((4, 2), (32, 32), (64, 1024), (3000, 3)):
        tile = made.tile(shape)
        assert tile == 2 ** int(np.log2(tile))
        assert tile <= 512
    assert made.tile((4, 2)) == 512
    assert grid(realisations=2).tile((4, 2)) == 8
    assert made.tile((3000, 3)) == 1
