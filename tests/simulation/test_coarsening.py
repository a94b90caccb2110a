"""Coarsening: the same run, only farther."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.attention import Blocked, Dense
from attnflow.simulation.merging import closest

CIRCLE = af.initial.sphere(n=12, d=2, key=4)
TIGHT = af.Adaptive(1e-11, 1e-13)
TS = np.linspace(0, 60, 31)


@pytest.fixture(scope="module")
def plain():
    return af.simulate(af.SA(6.0), CIRCLE, TS, method=TIGHT)


def coarse(tol, ts=TS, system=None, x0=CIRCLE, **more):
    method = af.Coarsening(tol, 1e-11, 1e-13)
    return af.simulate(system or af.SA(6.0), x0, ts, method=method, **more)


def test_the_difference_falls_linearly_with_eps(plain):
    errors = [float(np.abs(coarse(eps).xs - plain.xs).max()) for eps in (1e-3, 1e-4, 1e-5, 1e-6)]
    assert all(error < 3 * eps for error, eps in zip(errors, (1e-3, 1e-4, 1e-5, 1e-6), strict=True))
    slope = np.polyfit([-3, -4, -5, -6], np.log10(errors), 1)[0]
    assert slope == pytest.approx(1, abs=0.25)


def test_counts_of_clusters_are_those_of_the_plain_run(plain):
    ours = coarse(1e-6)
    counts = [[af.observe.clusters(x, 1e-2).count for x in run.xs] for run in (ours, plain)]
    assert counts[0] == counts[1]
    assert int(ours.steps) < int(plain.steps)


def test_a_merge_happens_when_the_plain_run_comes_within_eps():
    """The times are those of the means of the plain run's tokens, not the ends of steps."""
    tree, eps = coarse(1e-4).merges, 1e-4
    dense = af.simulate(af.SA(6.0), CIRCLE, np.linspace(0, 60, 6001), method=TIGHT)
    groups = {k: [k] for k in range(12)}
    for t, i, j in zip(*(np.asarray(a) for a in (tree.time, tree.kept, tree.gone)), strict=True):
        if not np.isfinite(t):
            break
        means = [np.mean(np.asarray(dense.xs)[:, groups[int(k)]], axis=1) for k in (i, j)]
        gap = np.linalg.norm(means[0] - means[1], axis=-1)
        k = int(np.argmax(gap < eps))
        first = np.interp(np.log(eps), np.log(gap[k : k - 2 : -1]), dense.ts[k : k - 2 : -1])
        assert float(t) == pytest.approx(first, abs=2e-3)
        groups[int(i)] += groups.pop(int(j))
    assert len(groups) < 4


@pytest.mark.slow
def test_the_tree_ends_in_one_token_of_all_mass():
    masses = np.arange(1.0, 13.0)
    tree = coarse(1e-6, [0.0, 1e9], masses=masses).merges
    assert int(tree.count) == 11
    assert np.all(np.diff(tree.time) >= 0)
    mass = masses.copy()
    for i, j, a, b in zip(tree.kept, tree.gone, tree.mass_kept, tree.mass_gone, strict=True):
        assert (mass[i], mass[j]) == pytest.approx((float(a), float(b)))
        mass[i], mass[j] = mass[i] + mass[j], 0
    assert mass.max() == pytest.approx(masses.sum())


def test_metastable_times_are_reached_and_end_in_one_cluster():
    x0 = af.initial.sphere(n=32, d=2, key=0)
    traj = af.simulate(af.SA(16.0), x0, [0.0, 1e13], method=af.Coarsening())
    assert af.observe.clusters(traj.final, 1e-6).count == 1
    assert float(traj.merges.time[-1]) == pytest.approx(1.5e12, rel=0.02)
    assert int(traj.steps) < 1000


@pytest.mark.slow
def test_two_clusters_merge_at_the_time_of_the_two_body_equation():
    """Masses a, b at angle θ on the circle: θ' = −(a + b)-weighted pull, integrated by hand."""
    beta, a, b, theta = 8.0, 2.0, 3.0, 2.0
    x0 = jnp.array([[1.0, 0.0], [np.cos(theta), np.sin(theta)]])
    traj = coarse(1e-6, [0.0, 1e8], af.SA(beta), x0, masses=np.array([a, b]))

    def pull(angle):
        e = np.exp(beta * (np.cos(angle) - 1))
        return e * np.sin(angle) * (b / (a + b * e) + a / (b + a * e))

    s = np.linspace(np.log(1e-6), np.log(theta), 200_001)
    expected = np.trapezoid(np.exp(s) / pull(np.exp(s)), s)
    assert float(traj.merges.time[0]) == pytest.approx(expected, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("system", [af.USA(2.0), af.SA(4.0, V=af.weights.wishart(3, key=1))])
def test_other_systems_on_the_sphere(system):
    x0 = af.initial.sphere(n=8, d=3, key=0)
    ts = np.linspace(0, 20, 11)
    ours = coarse(1e-7, ts, system, x0)
    theirs = af.simulate(system, x0, ts, method=TIGHT)
    assert np.abs(ours.xs - theirs.xs).max() < 1e-6
    assert int(ours.merges.count) > 0


@pytest.mark.slow
def test_a_batch_and_a_store(tmp_path):
    x0 = jnp.stack([CIRCLE, CIRCLE[::-1] * jnp.array([1.0, -1.0])])
    traj = coarse(1e-6, [0.0, 60.0], x0=x0)
    assert traj.merges.time.shape == (2, 11)
    assert int(traj.merges.count[0]) == int(traj.merges.count[1]) > 5
    back = af.Trajectory.load(traj.save(tmp_path / "run.zarr"))
    assert np.array_equal(back.merges.time, traj.merges.time, equal_nan=True)
    assert np.array_equal(back.merges.gone, traj.merges.gone)


def test_only_approaching_pairs_are_candidates():
    x = jnp.array([[0.0, 0.0], [1e-3, 0.0], [1.0, 0.0], [1.1, 0.0]])
    apart = jnp.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 0.0], [-1.0, 0.0]])
    squared, i, j = closest(x, apart, jnp.ones(4))
    assert (int(i), int(j)) == (2, 3)
    assert float(squared) == pytest.approx(0.01)
    assert closest(x, -apart, jnp.array([1.0, 1, 0, 1]))[1:] == (0, 1)


@pytest.mark.parametrize(
    "system",
    [af.SA(1.0, mask="causal"), af.RescaledAttention(), af.PureAttention(V=-1.0)],
    ids=["mask", "rescaled", "R^d"],
)
def test_where_merging_is_not_exact_it_is_refused(system):
    with pytest.raises(af.InputError, match="Coarsening does not work for"):
        af.simulate(system, CIRCLE, [0.0, 1.0], method=af.Coarsening())


def test_eps_must_be_positive():
    with pytest.raises(af.InputError, match="tol"):
        af.Coarsening(0.0)


def test_forces_are_not_expanded_in_harmonics():
    """Metastable forces are far below the error of an expansion."""
    system = af.SA(4.0)
    assert system.with_exact_sums(3000).backend == Blocked(exact=True)
    assert system.with_exact_sums(30).backend == Dense()
    mine = af.SA(4.0, backend="spectral")
    assert mine.with_exact_sums(3000) is mine
    ts, x = jnp.array([0.0, 1.0]), jnp.asarray(af.initial.sphere(2100, 2, key=0))
    for method, expanded in ((af.Coarsening(), False), (af.Adaptive(), True)):
        pieces = method.solver_parts(system, None, ts, x)
        y = pieces.encode(0.0, x)
        traced = jax.make_jaxpr(lambda y, p=pieces: p.term.vf(0.0, y, None))(y)
        assert ("branches" in str(traced)) == expanded
