"""Cucker–Smale, Vicsek and consensus-based optimisation: the standard models, and what is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InputError
from attnflow.spec.read import parse_spec


def test_cucker_smale_by_hand(rng):
    x, v, K, b = rng.normal(size=(5, 2)), rng.normal(size=(5, 2)), 1.7, 0.4
    expected = np.zeros((5, 2))
    for i in range(5):
        for j in range(5):
            expected[i] += K / 5 * (1 + ((x[i] - x[j]) ** 2).sum()) ** -b * (v[j] - v[i])
    found = af.CuckerSmale(K, b).velocity(0.0, jnp.asarray(np.hstack([x, v])))
    assert np.allclose(found, np.hstack([v, expected]), atol=1e-13)


def test_masses_are_birds_that_fly_together(rng):
    one = jnp.asarray(rng.normal(size=(3, 4)))
    twice = jnp.concatenate([one, one[:1]])
    flock = af.CuckerSmale(2.0, 0.3)
    heavy = flock.velocity(0.0, one, jnp.array([2.0, 1.0, 1.0]))
    assert np.allclose(heavy, flock.velocity(0.0, twice)[:3], atol=1e-14)


@pytest.mark.parametrize(("b", "flocks"), [(0.25, True), (0.5, True), (1.5, False)])
def test_flocking_is_unconditional_up_to_one_half(b, flocks):
    x0 = af.initial.gaussian(n=10, d=4, scale=3.0, key=0)
    system = af.CuckerSmale(K=5.0, b=b)
    traj = af.simulate(system, x0, [0.0, 100.0, 200.0], method=af.Adaptive(rtol=1e-6))
    v = [np.asarray(system.velocities(x)) for x in traj.xs]
    x = [np.asarray(system.positions(x)) for x in traj.xs]
    assert np.allclose(v[0].mean(axis=0), v[2].mean(axis=0), atol=1e-5), "the mean is kept"
    spread = [float(af.observe.diameter(a)) for a in v]
    size = [float(af.observe.diameter(a)) for a in x]
    assert (spread[2] < 1e-2 * spread[0]) == flocks
    assert (abs(size[2] - size[1]) < 0.2 * size[1]) == flocks


def test_vicsek_by_hand():
    """Two neighbours across the border of the torus, and one far away."""
    birds = af.Vicsek(eta=0.0, radius=1.0, speed=0.5, box=10.0).with_key(jax.random.key(0))
    x = jnp.array([[0.2, 5.0, 0.0], [9.6, 5.0, 1.0], [5.0, 1.0, 2.0]])
    found = np.asarray(birds.layer(0, x, 2.0))
    assert np.allclose(found[:, 2], [0.5, 0.5, 2.0])
    moved = np.array([[0.2, 5.0], [9.6, 5.0], [5.0, 1.0]]) + np.stack(
        [np.cos(found[:, 2]), np.sin(found[:, 2])], axis=1
    )
    assert np.allclose(found[:, :2], (moved + 5.0) % 10.0 - 5.0)


def test_vicsek_loses_its_order_with_noise():
    x0 = af.initial.cube(n=100, d=3, side=10.0, key=0)
    order = []
    for eta in (0.5, 3.0, 6.2):
        system = af.Vicsek(eta=eta, box=5.0)
        traj = af.simulate(system, x0, np.arange(200.0, 401.0, 20.0) - 200, key=1)
        late = [af.observe.order_parameter(system.headings(x)) for x in traj.xs[5:]]
        order.append(float(np.mean(late)))
    assert order[0] > 0.9
    assert order[0] > order[1] + 0.1 > order[2] + 0.2


def test_vicsek_draws_for_each_layer_and_member():
    x0 = jnp.zeros((2, 4, 3))
    xs = np.asarray(af.simulate(af.Vicsek(eta=1.0), x0, [0.0, 1.0, 2.0], key=0).xs)
    assert len(np.unique(np.diff(xs[..., 2], axis=1).round(12))) == 16


def _minimum(objective, keys, alpha=50.0):
    system = af.CBO(objective, alpha=alpha, lam=1.0, sigma=0.5)
    x0 = af.initial.cube(n=100, d=2, side=6.0, key=0, batch=keys)
    traj = af.simulate(system, x0, [0.0, 12.0], method=af.Fixed(0.02, "euler"), key=7)
    return np.asarray(jax.vmap(system.best)(traj.final))


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["ackley", "rastrigin"])
def test_cbo_finds_the_minimum(objective):
    found = _minimum(objective, 50)
    assert np.mean(np.abs(found).max(axis=1) < 0.25) >= 0.9


def test_cbo_by_hand(rng):
    x = rng.normal(size=(6, 2))
    f = (x**2 + 10 * (1 - np.cos(2 * np.pi * x))).sum(axis=1)
    weight = np.exp(-0.3 * (f - f.min()))
    v = (weight[:, None] * x).sum(axis=0) / weight.sum()
    system = af.CBO("rastrigin", alpha=0.3, lam=2.0, sigma=0.7)
    assert np.allclose(system.velocity(0.0, jnp.asarray(x)), -2.0 * (x - v), atol=1e-12)
    w = rng.normal(size=(6, 2))
    kick = np.sqrt(2) * 0.7 * np.linalg.norm(x - v, axis=1, keepdims=True) * w
    assert np.allclose(system.apply_noise(0.0, jnp.asarray(x), jnp.asarray(w)), kick, atol=1e-12)
    counts = np.array([1, 3, 1, 2, 1, 1])
    many = system.velocity(0.0, jnp.asarray(np.repeat(x, counts, axis=0)))
    heavy = system.velocity(0.0, jnp.asarray(x), jnp.asarray(counts, float))
    assert np.allclose(many, np.repeat(heavy, counts, axis=0), atol=1e-12)


def test_cbo_is_meant_in_the_sense_of_ito():
    x0 = jnp.ones((3, 2))
    with pytest.raises(InputError, match="in the sense of Itô"):
        af.simulate(af.CBO("ackley"), x0, [0.0, 1.0], method=af.Fixed(0.1, "heun"), key=0)


def test_specs_of_them():
    base = {"start": {"name": "cube", "n": 5, "d": 4}, "times": {"stop": 1.0, "count": 3}}
    noisy = parse_spec(
        base | {"system": {"name": "Noisy", "sigma": 0.1, "system": {"name": "SA", "beta": 2.0}}}
    )
    built = noisy.build()
    assert repr(built.system) == "Noisy(system=SA(beta=2), sigma=0.1)"
    flock = parse_spec(base | {"system": {"name": "CuckerSmale", "K": 2.0, "b": 0.5}}).build()
    assert float(flock.system.K) == 2.0
    with pytest.raises(InputError, match=r"system\.system\.name: missing"):
        parse_spec(base | {"system": {"name": "Noisy", "sigma": 0.1, "system": {}}}).build()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: af.CBO("akley"), "did you mean 'ackley'"),
        (lambda: af.CBO(3), "objective must be a function"),
        (lambda: af.Vicsek(-1.0), "eta"),
        (lambda: af.CuckerSmale(b=-1.0), "b must be at least 0"),
        (lambda: af.simulate(af.CuckerSmale(), jnp.ones((2, 3)), [0.0, 1.0]), "even number"),
        (lambda: af.simulate(af.Vicsek(1.0), jnp.ones((2, 2)), [0.0, 1.0], key=0), "rows"),
    ],
)
def test_bad_input(untyped, make, said):
    with pytest.raises(InputError, match=said):
        make()
