"""The compiled call against single runs by `simulate`."""

import jax
import numpy as np
import pytest

import attnflow as af
from attnflow.sweep.draws import run_hash
from attnflow.sweep.tile import Computer
from small_sweep import spec

ADAPTIVE = {"name": "Adaptive", "rtol": 1e-9}


def alone(given, values, number):
    """One realisation by itself, from the same key."""
    run = given.cell(values)
    key = jax.random.key(given.key)
    for word in (*run_hash(run), number):
        key = jax.random.fold_in(key, word)
    system, x0 = run.draw(key)
    return af.simulate(system, x0, run.times.build(), method=run.build_method())


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"method": ADAPTIVE, "realisations": 3},
        {"axes": {"n": [3, 5], "beta": [1.0, 2.0]}},
        {"system": {"name": "SA", "V": {"family": "ginibre"}, "K": {"family": "goe"}}},
        {"start": {"name": "sphere", "n": 3, "d": 50, "reduced": True}},
    ],
    ids=["fixed", "adaptive", "sizes", "random weights", "reduced"],
)
def test_each_row_is_a_run_of_its_own(changes):
    given = spec(key=5, **changes)
    computer = Computer(given)
    for block in computer.grid:
        found = computer.values(block)
        assert found["ended"].all()
        for cell in block.cells():
            values = computer.grid.values(cell)
            at = tuple(i - r.start for i, r in zip(cell, block.ranges, strict=True))
            for r in range(given.realisations):
                traj = alone(given, values, r)
                expected = [af.observe.energy(x, values["beta"]) for x in traj.xs]
                assert np.allclose(found["E"][(*at, r)], expected, rtol=1e-7)


def test_realisations_and_cells_are_different_draws():
    given = spec(times={"stop": 0.5, "count": 2}, keep={"R": {"observable": "order_parameter"}})
    found = Computer(given).values(Computer(given).grid[0])["R"][..., 0]
    assert len(np.unique(found)) == found.size == 8


def test_a_value_of_beta_compiles_nothing():
    computer = Computer(spec(axes={"beta": [float(b) for b in range(9)]}, realisations=100))
    assert len(computer.grid) == 2
    first = computer.values(computer.grid[0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(computer, "_compile", lambda kind: pytest.fail("compiled again"))
        second = computer.values(computer.grid[1])
    assert first["E"].shape == (5, 100, 3)
    assert second["E"].shape == (4, 100, 3)


def test_a_run_that_cannot_go_on_leaves_nan():
    given = spec(
        system={"name": "PureAttention", "V": 40.0},
        start={"name": "gaussian", "n": 3, "d": 2},
        times={"stop": 40.0, "count": 5},
        keep={"width": {"observable": "diameter"}},
        axes={"beta": [1.0]},
    )
    found = Computer(given).values(Computer(given).grid[0])
    assert not found["ended"].any()
    assert np.isfinite(found["width"][..., 0]).all()
    assert not np.isfinite(found["width"][..., -1]).any()


def test_precision_is_that_of_the_spec():
    single = spec(dtype="float32", system={"name": "SA", "V": {"family": "ginibre"}})
    assert Computer(single).values(Computer(single).grid[0])["E"].dtype == np.float32
