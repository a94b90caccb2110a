"""A hundred thousand tiny cells: few tasks, and a client that does not grow."""

import numpy as np
import psutil
import pytest

import reference
from attnflow import sweep
from small_sweep import spec

CELLS = 100_000


def _memory():
    return psutil.Process().memory_info().rss


@pytest.mark.slow
def test_a_hundred_thousand_cells(tmp_path):
    given = spec(
        realisations=1,
        start={"name": "orthogonal", "n": 2, "d": 2},
        times={"stop": 1.0, "count": 2},
        method={"name": "Fixed", "dt": 0.1},
        axes={"beta": {"start": 0.0, "stop": 9.0, "count": CELLS}},
        keep={"overlap": {"observable": "overlaps"}},
    )
    seen = []
    progress = sweep.run(
        given, tmp_path / "store", workers=2, on_progress=lambda t: seen.append((t.done, _memory()))
    )
    assert progress.done == CELLS
    assert len(seen) < 250, "cells are grouped into tasks"
    begun = next(memory for done, memory in seen if done)
    assert seen[-1][1] - begun < 50e6
    with sweep.load(tmp_path / "store") as data:
        found = data["overlap"].values[:, -1, 0, 1]
    for i in (0, CELLS // 2, CELLS - 1):
        beta = given.values("beta")[i]
        expected = reference.gamma(beta, 2, np.array([0.0, 1.0]), normalised=True)[-1]
        assert abs(found[i] - expected) < 1e-4
