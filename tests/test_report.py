"""Reports: counts, staircases, energies."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.report import summarise


def test_the_staircase_of_a_known_run():
    x0 = af.initial.clustered(n=12, d=3, clusters=2, spread=0.0, key=0)
    traj = af.simulate(af.SA(1.0), x0, np.linspace(0, 20, 21))
    report = summarise(traj)
    assert report.clusters[0] == 2
    assert report.clusters[-1] == 1
    assert [count for _, count in report.staircase] == [2, 1]
    assert report.energy[0] == pytest.approx(float(af.observe.energy(x0, 1.0)))
    assert report.energy[-1] == pytest.approx(np.exp(1) / 2, rel=1e-6)
    assert np.all(np.diff(report.energy) > -1e-12)
    assert report.to_json()["staircase"] == [list(s) for s in report.staircase]


def test_a_second_report_compiles_nothing(caplog):
    """What is compiled at each call stays in memory for good."""
    traj = af.simulate(af.SA(1.0), af.initial.sphere(n=12, d=3, key=1), np.linspace(0, 2, 22))
    with jax.log_compiles():
        summarise(traj)
        assert "Compiling" in caplog.text
        caplog.clear()
        summarise(traj)
        assert "Compiling" not in caplog.text


@pytest.mark.slow
def test_no_energy_off_the_sphere_and_a_scaled_tolerance():
    traj = af.simulate(af.RescaledAttention(), 100 * af.initial.sphere(n=4, d=2, key=0), [0.0, 1.0])
    report = summarise(traj)
    assert report.energy is None
    assert report.tolerance == pytest.approx(1.0)


def test_the_error_of_expanded_sums_is_told():
    """On the circle with 2100 tokens; not with a few, nor where one stands alone."""
    x0 = af.initial.sphere(n=2100, d=2, key=0)
    run = af.simulate(af.SA(9.0), x0, [0.0, 0.1], method=af.Layers(0.1))
    assert 0 < summarise(run).sums_error < 1e-11
    alone = jnp.tile(jnp.array([1.0, 0.0]), (2100, 1)).at[0].multiply(-1)
    lonely = eqx.tree_at(lambda t: t.final, run, alone)
    assert summarise(lonely).sums_error > 100 * summarise(run).sums_error
    few = af.simulate(af.SA(9.0), x0[:20], [0.0, 0.1], method=af.Layers(0.1))
    assert summarise(few).sums_error is None


def test_batches_have_no_report():
    traj = af.simulate(
        af.SA(1.0), af.initial.sphere(n=4, d=3, key=0, batch=2), [0.0, 1.0], method=af.Layers(1.0)
    )
    with pytest.raises(af.InputError, match="single run"):
        summarise(traj)


def test_a_title_leaves_out_arrays_and_nothing_else():
    x0, eye = af.initial.sphere(n=4, d=3, key=0), np.eye(3)
    titles = [
        (af.SA(9.0, V=eye), "SA(beta=9)"),
        (af.Hardmax(V=eye), "Hardmax"),
        (af.Noisy(af.SA(9.0, V=eye), 0.5), "Noisy(system=SA(beta=9), sigma=0.5)"),
    ]
    for system, title in titles:
        run = af.simulate(system, x0, [0.0, 0.1], method=af.Fixed(0.1, "euler"), key=0)
        report = summarise(run)
        assert report.title == title
        assert report.system == str(system)
