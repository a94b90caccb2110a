"""Aggregation: forces against plain sums, and the collapse under a logarithm against its law."""

import tomllib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import approx_fprime

import attnflow as af
from attnflow.spec import write_spec
from attnflow.spec.read import parse_spec
from attnflow.systems.potentials import Log, Morse, Power

N = 12
CUBE = af.initial.cube(n=N, d=2, side=2.0, key=1)
MASSES = np.random.default_rng(3).uniform(0.5, 2, N)

BY_HAND = {
    "log": ("log", lambda z: np.log(np.linalg.norm(z))),
    "quadratic": ("quadratic", lambda z: z @ z / 2),
    "power": (
        {"name": "power", "a": 4.0, "b": 1.5},
        lambda z: np.linalg.norm(z) ** 4 / 4 - np.linalg.norm(z) ** 1.5 / 1.5,
    ),
    "power 0": (
        {"name": "power", "a": 2.0, "b": 0.0},
        lambda z: z @ z / 2 - np.log(np.linalg.norm(z)),
    ),
    "morse": (
        {"name": "morse", "C": 2.0, "l": 0.4},
        lambda z: -np.exp(-np.linalg.norm(z)) + 2 * np.exp(-np.linalg.norm(z) / 0.4),
    ),
    "function": (lambda z: jnp.cos(z[0]) * z[1] ** 2, lambda z: np.cos(z[0]) * z[1] ** 2),
}


def inertia(x, masses=None):
    x = np.asarray(x)
    m = np.ones(len(x)) if masses is None else masses
    centre = m @ x / m.sum()
    return float(m @ ((x - centre) ** 2).sum(axis=-1))


@pytest.mark.parametrize("name", BY_HAND)
def test_forces_are_differences_of_the_potential(name):
    W, by_hand = BY_HAND[name]
    system = af.Aggregation(W)
    x, m = np.asarray(CUBE), MASSES
    ours = np.asarray(system.velocity(0.0, CUBE, jnp.asarray(m)))
    for i in (0, 7):
        pulls = [m[j] * approx_fprime(x[i] - x[j], by_hand, 1e-7) for j in range(N) if j != i]
        assert np.abs(ours[i] + sum(pulls) / m.sum()).max() < 1e-5
    energy = sum(
        m[i] * m[j] * by_hand(x[i] - x[j]) for i in range(N) for j in range(N) if j != i
    ) / (2 * m.sum() ** 2)
    assert float(system.energy(CUBE, jnp.asarray(m))) == pytest.approx(energy, rel=1e-12)


def test_the_flow_is_the_steepest_descent_of_the_energy():
    system = af.Aggregation({"name": "morse", "C": 2.0, "l": 0.4})
    m = jnp.asarray(MASSES)
    slope = jax.grad(lambda x: system.energy(x, m))(CUBE)
    expected = -slope * (m.sum() / m)[:, None]
    assert np.abs(system.velocity(0.0, CUBE, m) - expected).max() < 1e-14


@pytest.mark.parametrize("W", ["log", {"name": "power", "a": 3.0, "b": 1.0}])
def test_equal_tokens_move_as_one_token_with_a_mass(W):
    few, counts = CUBE[:3], np.array([1, 3, 2])
    system = af.Aggregation(W)
    heavy = system.velocity(0.0, few, jnp.asarray(counts, float))
    plain = system.velocity(0.0, jnp.repeat(few, counts, axis=0))
    assert np.abs(plain - np.repeat(heavy, counts, axis=0)).max() < 1e-14


def test_permutations_rotations_and_translations():
    system = af.Aggregation({"name": "power", "a": 3.0, "b": 1.0})
    order = np.random.default_rng(0).permutation(N)
    O = jnp.asarray(np.linalg.qr(np.random.default_rng(1).normal(size=(2, 2)))[0])
    v = system.velocity(0.0, CUBE)
    assert np.abs(system.velocity(0.0, CUBE[order]) - v[order]).max() < 1e-14
    assert np.abs(system.velocity(0.0, CUBE @ O.T) - v @ O.T).max() < 1e-13
    assert np.abs(system.velocity(0.0, CUBE + 3.0) - v).max() < 1e-13
    assert np.abs(v.sum(axis=0)).max() < 1e-14


def test_quadratic_tokens_fall_to_the_centre_exponentially():
    ts = np.array([0.0, 0.7, 2.0])
    run = af.simulate(af.Aggregation("quadratic"), CUBE, ts, masses=MASSES)
    centre = MASSES @ np.asarray(CUBE) / MASSES.sum()
    expected = centre + np.exp(-ts)[:, None, None] * (np.asarray(CUBE) - centre)
    assert np.abs(run.xs - expected).max() < 1e-8


@pytest.fixture(scope="module")
def collapse():
    ts = np.linspace(0, 1.2, 61)
    method = af.Coarsening(1e-6)
    return af.simulate(af.Aggregation("log"), CUBE, ts, method=method)


def expected_inertia(start, masses, merges, ts):
    """Linear between collisions, with the slope −(M² − Σ m²)/M of the masses that there are."""
    m, M = np.array(masses), float(np.sum(masses))
    times = [0.0, *np.asarray(merges.time)]
    values = np.full(len(ts), start)
    for k, (i, j) in enumerate(zip(merges.kept, merges.gone, strict=True)):
        slope = (M**2 - np.sum(m**2)) / M
        values -= slope * (np.clip(ts, times[k], times[k + 1]) - times[k])
        m[int(i)], m[int(j)] = m[int(i)] + m[int(j)], 0.0
    return values, m


def test_inertia_falls_by_its_law(collapse):
    ts = np.asarray(collapse.ts)
    measured = np.array([inertia(x) for x in collapse.xs])
    before = ts < float(collapse.merges.time[0])
    assert before.sum() >= 4
    law = measured[0] - (N - 1) * ts
    assert np.abs(measured - law)[before].max() < 1e-6
    values, _ = expected_inertia(measured[0], np.ones(N), collapse.merges, ts)
    assert np.abs(measured - values).max() < 1e-6


def test_it_ends_as_one_token_of_all_mass_at_the_centre(collapse):
    centre = np.asarray(CUBE).mean(axis=0)
    assert int(collapse.merges.count) == N - 1
    _, m = expected_inertia(0.0, np.ones(N), collapse.merges, np.zeros(1))
    assert sorted(m) == [0.0] * (N - 1) + [N]
    assert np.abs(np.asarray(collapse.final) - centre).max() < 1e-12
    centres = np.asarray(collapse.xs).mean(axis=1)
    assert np.abs(centres - centre).max() < 1e-9


def test_a_polygon_collapses_when_its_inertia_is_used_up():
    """T = I(0)/(n−1), which is n/(n−1) for a regular polygon of radius 1."""
    ts = np.linspace(0, 1.2, 61)
    polygon = af.initial.circle(N)
    run = af.simulate(af.Aggregation("log"), polygon, ts, method=af.Coarsening(1e-6))
    assert int(run.merges.count) == N - 1
    assert float(run.merges.time[-1]) == pytest.approx(N / (N - 1), abs=1e-6)


@pytest.mark.slow
def test_masses_of_ones_own_are_conserved_through_collisions():
    ts = np.linspace(0, 1.5, 31)
    method = af.Coarsening(1e-6)
    run = af.simulate(af.Aggregation("log"), CUBE, ts, masses=MASSES, method=method)
    values, m = expected_inertia(inertia(CUBE, MASSES), MASSES, run.merges, ts)
    measured = np.array([inertia(x, MASSES) for x in run.xs])
    assert np.abs(measured - values).max() < 1e-6
    assert m.max() == pytest.approx(MASSES.sum(), rel=1e-14)
    centres = np.einsum("n,tnd->td", MASSES, run.xs) / MASSES.sum()
    assert np.abs(centres - centres[0]).max() < 1e-9
    assert np.abs(np.asarray(run.final) - centres[0]).max() < 1e-9


def test_without_merging_the_collision_stops_the_run():
    with pytest.raises(af.IncompleteRun) as caught:
        af.simulate(af.Aggregation("log"), CUBE, np.linspace(0, 1.2, 61))
    assert caught.value.time == pytest.approx(0.0891409, abs=1e-4)


@pytest.mark.slow
def test_quartic_attraction_and_softer_repulsion_make_a_ring():
    """Balance on a ring of radius R, a = 4, b = 2: ⟨|2R sin s|⁴⟩ = ⟨|2R sin s|²⟩, so R² = 1/3."""
    system = af.Aggregation(Power(4.0, 2.0))
    run = af.simulate(system, af.initial.gaussian(n=40, d=2, scale=0.5, key=0), [0.0, 400.0])
    x = np.asarray(run.final)
    radii = np.linalg.norm(x - x.mean(axis=0), axis=1)
    assert radii.mean() == pytest.approx(np.sqrt(1 / 3), abs=0.02)


@pytest.mark.slow
def test_in_high_dimension_it_runs_in_the_span_of_its_tokens():
    x0 = af.initial.gaussian(n=N, d=40, key=0)
    assert af.Aggregation("log").restricted(x0[:2]) is not None
    assert af.Aggregation(lambda z: z[0] ** 2).restricted(x0[:2]) is None
    run = af.simulate(af.Aggregation("quadratic"), x0, [0.0, 1.0])
    expected = x0.mean(axis=0) + np.exp(-1.0) * (x0 - x0.mean(axis=0))
    assert np.abs(run.final - expected).max() < 1e-8


def test_a_new_exponent_compiles_nothing_and_float32_stays():
    count = 0

    @jax.jit
    def velocity(system, x):
        nonlocal count
        count += 1
        return system.velocity(0.0, x)

    for a in (2.0, 3.0):
        velocity(af.Aggregation(Power(a, 1.0)), CUBE)
    assert count == 1
    single = CUBE.astype(np.float32)
    for system in (af.Aggregation(Log()), af.Aggregation(Morse()), af.Aggregation(Power(4, 2.5))):
        assert system.velocity(0.0, single).dtype == np.float32
        both = jax.vmap(lambda x, s=system: s.velocity(0.0, x))(jnp.stack([CUBE, CUBE[::-1]]))
        assert np.abs(both[0] - both[1][::-1]).max() < 1e-14


@pytest.mark.parametrize("W", ["log", {"name": "power", "a": 4.0, "b": 2.5}, {"name": "morse"}])
def test_a_spec_holds_a_potential(W):
    system = af.Aggregation(W)
    text = write_spec(system, CUBE, [0.0, 1.0])
    built = parse_spec(tomllib.loads(text)).build().system
    assert repr(built) == repr(system)
    assert np.array_equal(built.velocity(0.0, CUBE), system.velocity(0.0, CUBE))


@pytest.mark.parametrize(
    ("W", "said"),
    [
        ("lgo", "did you mean 'log'"),
        ({"a": 2.0}, "W must be a function"),
        ({"name": "power", "c": 2.0}, "power does not take"),
        ({"name": "power", "a": np.nan}, "a must be finite"),
        ({"name": "morse", "l": 0.0}, "l must be a finite number above 0"),
        (7.0, "W must be a function"),
    ],
)
def test_bad_potentials_are_refused(W, said):
    with pytest.raises(af.InputError, match=said):
        af.Aggregation(W)


def test_a_potential_that_does_not_fit_is_refused_before_the_run():
    with pytest.raises(af.InputError, match="single real number"):
        af.simulate(af.Aggregation(lambda z: z), CUBE, [0.0, 1.0])
    with pytest.raises(af.InputError, match="W must take a vector"):
        af.simulate(af.Aggregation(lambda z: z @ jnp.ones(3)), CUBE, [0.0, 1.0])
    with pytest.raises(af.InputError, match="W is a function"):
        write_spec(af.Aggregation(lambda z: z @ z), CUBE, [0.0, 1.0])
