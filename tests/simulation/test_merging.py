"""Which systems may be merged, merge times and trees, rest, and times beyond the digits of t."""

from fractions import Fraction
from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad

import attnflow as af
from attnflow.simulation.clock import Clock
from attnflow.simulation.merging import Merges
from attnflow.simulation.rest import at_rest
from attnflow.spaces import Sphere

EPS = 1e-6
CIRCLE = af.initial.sphere(n=12, d=2, key=4)
TURNED = np.random.default_rng(0).normal(size=(3, 2, 2))
TWO = np.array([[1.0, 0.0], [np.cos(2.0), np.sin(2.0)]])
W = jnp.asarray(TURNED[0])


def drawn(key):
    return af.weights.ginibre(2, key=key)


PARTING = {
    "mask": (af.SA(1.0, mask="causal"), "mask"),
    "rotary": (af.Transformer(1.0, rotary=[1.0]), "rotary"),
    "PerLayer": (af.SA(4.0, V=af.weights.PerLayer(TURNED)), "change in time"),
    "Redrawn": (af.USA(1.0, Q=af.weights.Redrawn(drawn, every=1.0, key=0)), "change in time"),
    "function of t": (af.SA(1.0, V=lambda t: jnp.cos(t)), "change in time"),
    "bias of t": (af.Transformer(1.0, b_O=lambda t: t * jnp.ones(2)), "change in time"),
    "feed-forward of t": (af.Transformer(1.0, w=W, a=lambda t: t * W), "feed-forward"),
    "ellipsoid of t": (
        af.EllipsoidAttention(1.0, D=np.ones(2), K=lambda t: t * jnp.eye(2)),
        "change in time",
    ),
    "rescaled": (af.RescaledAttention(), "changes in time"),
    "R^d": (af.PureAttention(V=-1.0), "run apart"),
    "repelling": (af.Aggregation({"name": "power", "a": 4.0, "b": 2.5}), "attract"),
    "unknown W": (af.Aggregation(lambda z: z @ z), "attract"),
    "network": (af.ResNet(w=-1.0), "never meet"),
    "opinions": (af.Krause("indicator"), "neighbours"),
}


@pytest.mark.parametrize("name", PARTING)
def test_where_tokens_may_part_again_merging_is_refused_and_says_why(name):
    system, why = PARTING[name]
    with pytest.raises(af.InputError, match=f"Coarsening does not work for .*: .*{why}"):
        af.simulate(system, CIRCLE, [0.0, 1.0], method=af.Coarsening())


class Undeclared(af.systems.System):
    """Tokens that fall to a place that moves: nothing is declared of them."""

    space: Sphere = Sphere()

    def velocity(self, t, x, masses=None):
        return self.space.project(x, jnp.ones_like(x))


class Timed(Undeclared):
    """One that may be merged, and does not say whether it depends on t."""

    @property
    def merging_obstacle(self):
        return None


def test_a_system_that_declares_nothing_is_refused():
    for system, why in ((Undeclared(), "equal tokens stay equal"), (Timed(), "depend on t")):
        with pytest.raises(af.InputError, match=f"Coarsening .* Undeclared|Timed.*{why}"):
            af.simulate(system, CIRCLE, [0.0, 1.0], method=af.Coarsening())


MERGED = {
    "SA": af.SA(3.0, Q=TURNED[0], K=TURNED[1], V=TURNED[2]),
    "USA": af.USA(2.0, V=-1.0),
    "SinkhornSA": af.SinkhornSA(2.0),
    "EllipsoidAttention": af.EllipsoidAttention(2.0, D=np.array([1.0, 1.0])),
    "Transformer": af.Transformer(1.0, w=W, a=W, b_Q=np.ones(2), b_O=np.ones(2)),
    "Log": af.Aggregation("log"),
    "Power": af.Aggregation({"name": "power", "a": 1.0, "b": 2.0}),
    "Morse": af.Aggregation({"name": "morse", "C": 0.2, "l": 0.5}),
}


@pytest.mark.parametrize("name", MERGED)
def test_what_may_be_merged_moves_as_one_at_all_times(name):
    system, times = MERGED[name], np.array([2, 1, 3])
    assert system.merging_obstacle is None
    assert system.autonomous
    few = CIRCLE[:3]
    many = jnp.repeat(few, times, axis=0)
    for t in (0.0, 7.3):
        alone = system.velocity(t, few, jnp.asarray(times, float))
        assert np.abs(system.velocity(t, many) - np.repeat(alone, times, axis=0)).max() < 1e-7


def test_rotary_positions_part_equal_tokens():
    v = PARTING["rotary"][0].velocity(0.0, jnp.stack([CIRCLE[0], CIRCLE[0], CIRCLE[5]]))
    assert np.abs(v[0] - v[1]).max() > 1e-3


def test_weights_that_change_sign_lead_tokens_back_to_where_they_came_from():
    turns = af.SA(1.0, V=af.weights.PerLayer(np.array([1.0, -1.0]), every=18.0))
    run = af.simulate(turns, TWO, [0.0, 18.0, 36.0], method=af.Adaptive(1e-12, 1e-14))
    gap = np.linalg.norm(run.xs[:, 0] - run.xs[:, 1], axis=-1)
    assert gap[1] < EPS
    assert gap[2] == pytest.approx(gap[0], rel=1e-3)
    with pytest.raises(af.InputError, match="change in time"):
        af.simulate(turns, TWO, [0.0, 36.0], method=af.Coarsening())


def two_body_time(beta, normalised):
    """∫ dφ/|φ'| from the angle 2 to where the chord is EPS."""

    def integrand(s):
        phi = np.exp(s)
        pull = np.exp(beta * (np.cos(phi) - 1))
        pull = 2 * pull / (1 + pull) if normalised else pull * np.exp(beta)
        return phi / (np.sin(phi) * pull)

    first, last = np.log(2 * np.arcsin(EPS / 2)), np.log(2.0)
    return quad(integrand, first, last, epsabs=0, epsrel=1e-11, limit=2000)[0]


@pytest.mark.parametrize("system", [af.SA(30.0), af.USA(30.0)], ids=["SA", "USA"])
def test_two_tokens_meet_at_the_time_of_the_two_body_equation(system):
    run = af.simulate(system, TWO, [0.0, 1e15, 1e30], method=af.Coarsening(EPS))
    expected = two_body_time(30.0, isinstance(system, af.SA))
    assert float(run.merges.time[0]) == pytest.approx(expected, rel=1e-6)
    assert af.observe.clusters(run.final, 1e-6).count == 1
    assert float(run.ts[-1]) == 1e30


def test_a_short_time_of_a_merge_is_no_end_of_a_step():
    """Steps are about 1 long here, and the ends of steps were off by as much."""
    method = af.Coarsening(EPS, 1e-11, 1e-13)
    run = af.simulate(af.SA(1.0), TWO, [0.0, 100.0, 200.0], method=method)
    assert float(run.merges.time[0]) == pytest.approx(two_body_time(1.0, True), rel=1e-7)


def test_a_late_start_changes_nothing_but_the_clock():
    """The spacing of floats at 1e20 is 16384, and the tokens meet within 16 units of time."""
    run = partial(af.simulate, af.SA(1.0), TWO, method=af.Coarsening(EPS))
    early, late = run([0.0, 1e5, 1e6]), run([1e20, 1e20 + 1e5, 1e20 + 1e6])
    assert int(early.steps) == int(late.steps)
    assert np.array_equal(early.final, late.final)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "d"), [(af.SA, 3), (af.USA, 2)])
def test_thirty_two_tokens_go_to_one_cluster_and_on_to_1e30(kind, d):
    starts = af.initial.sphere(n=32, d=d, key=1, batch=(2,))
    for beta in (1.0, 16.0):
        run = af.simulate(kind(beta), starts, [0.0, 1e20, 1e30], method=af.Coarsening())
        assert np.all(np.asarray(run.merges.count) == 31)
        assert np.all(np.diff(run.merges.time) >= 0)
        assert np.abs(run.xs[:, 1] - run.xs[:, 2]).max() < 1e-15


def test_a_clock_counts_what_floats_lose():
    clock, exact = Clock.at(1e30), Fraction(1e30)
    for dt in np.random.default_rng(0).uniform(0, 1, 50) * 10.0 ** np.arange(50) ** 0.8:
        clock, exact = clock.after(jnp.asarray(dt)), exact + Fraction(float(dt))
    found = Fraction(float(clock.high)) + Fraction(float(clock.low))
    assert abs(found - exact) / exact < 1e-30
    assert float(clock.until(1e30)) == pytest.approx(float(Fraction(1e30) - exact), rel=1e-14)


RESTS = {
    "repelling": (af.SA(1.0, V=-1.0), af.initial.sphere(n=6, d=3, key=0)),
    "V of one's own": (af.SA(4.0, V=np.diag([1.0, 0.5, 0.2])), af.initial.sphere(8, 3, key=0)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RESTS)
def test_a_stable_rest_is_the_end(name):
    system, x0 = RESTS[name]
    run = af.simulate(system, x0, [0.0, 1e3, 1e30], method=af.Coarsening())
    plain = af.simulate(system, x0, [0.0, 1e3])
    assert np.abs(run.xs[1] - plain.final).max() < 1e-6
    assert np.abs(run.xs[2] - plain.final).max() < 1e-6
    assert int(run.steps) < 1000


def test_an_unstable_rest_is_no_rest():
    polygon = af.initial.circle(8)
    assert np.abs(af.SA(4.0).velocity(0.0, polygon)).max() < 1e-15
    assert not at_rest(af.SA(4.0), polygon, jnp.ones(8), 1e-8)
    assert at_rest(af.SA(4.0, V=-1.0), polygon, jnp.ones(8), 1e-8)
    moved = jnp.asarray(af.initial.normalise(polygon + 1e-3 * np.eye(8, 2)))
    assert not at_rest(af.SA(4.0, V=-1.0), moved, jnp.ones(8), 1e-8)


@pytest.mark.slow
def test_motion_without_end_stops_with_its_reason():
    turning = af.SA(1.0, V=np.array([[0.0, -1.0], [1.0, 0.0]]))
    with pytest.raises(af.IncompleteRun, match="used up its 300 steps"):
        af.simulate(turning, CIRCLE, [0.0, 1e30], method=af.Coarsening(max_steps=300))


def replayed(tree, n, masses=None):
    """The masses at the end of a tree, after a look at each entry."""
    mass = np.ones(n) if masses is None else np.array(masses)
    for i, j, a, b in zip(tree.kept, tree.gone, tree.mass_kept, tree.mass_gone, strict=True):
        if j >= 0:
            assert (mass[i], mass[j]) == pytest.approx((float(a), float(b)))
            mass[i], mass[j] = mass[i] + mass[j], 0
    return mass


@pytest.mark.slow
@pytest.mark.parametrize("known", [True, False], ids=["continued", "from the places alone"])
def test_a_continued_run_has_the_merge_tree_of_one_run(known):
    run = partial(af.simulate, af.SA(6.0), method=af.Coarsening(EPS))
    whole = run(CIRCLE, [0.0, 1e9])
    first = run(CIRCLE, [0.0, 12.0])
    assert 0 < int(first.merges.count) < int(whole.merges.count) == 11
    later = run(first if known else first.final, [12.0, 1e9])
    both = first.join(later).merges
    assert np.allclose(both.time, whole.merges.time, rtol=1e-5)
    for name in ("kept", "gone"):
        assert np.array_equal(getattr(both, name), getattr(whole.merges, name))
    assert replayed(both, 12).max() == 12
    if known:
        assert np.array_equal(later.merges.time, both.time)


@pytest.mark.slow
def test_a_continued_batch_with_masses_from_a_store(tmp_path):
    masses = np.arange(1.0, 13.0)
    starts = jnp.stack([CIRCLE, CIRCLE[::-1]])
    run = partial(af.simulate, af.SA(6.0), method=af.Coarsening(EPS))
    first = run(starts, [0.0, 12.0], masses=masses)
    back = af.Trajectory.load(first.save(tmp_path / "run.zarr"))
    both = back.join(run(back, [12.0, 1e9])).merges
    whole = run(starts, [0.0, 1e9], masses=masses).merges
    assert both.time.shape == (2, 11)
    assert np.allclose(both.time, whole.time, rtol=1e-5)
    for k in range(2):
        tree = Merges(*(getattr(both, name)[k] for name in vars(both)))
        assert replayed(tree, 12, masses).max() == masses.sum()


def test_a_system_of_ones_own_is_merged_once_it_says_that_it_may():
    """Two tokens on the circle under x' = P⊥((1/n) Σ_j x_j): tan(φ/2) falls like e^{−t}."""

    class Mean(Timed):
        """Everybody goes to the mean, at all times."""

        autonomous = True

        def velocity(self, t, x, masses=None):
            m = jnp.ones(len(x), x.dtype) if masses is None else masses
            return self.space.project(x, jnp.broadcast_to(m @ x / m.sum(), x.shape))

    run = af.simulate(Mean(), TWO, [0.0, 20.0, 1e30], method=af.Coarsening(EPS, 1e-11, 1e-13))
    expected = np.log(np.tan(1.0) / np.tan(np.arcsin(EPS / 2)))
    assert float(run.merges.time[0]) == pytest.approx(expected, rel=1e-7)


def test_equal_tokens_are_merged_at_once():
    """Their difference, as it is compiled, need not be 0."""
    three = np.asarray(af.initial.sphere(n=3, d=2, key=3))
    run = af.simulate(
        af.SA(9.0), np.concatenate([three, three]), [3.0, 5.0], method=af.Coarsening(EPS)
    )
    assert np.asarray(run.merges.time)[:3].tolist() == [3.0, 3.0, 3.0]
    assert int(run.merges.count) == 3
