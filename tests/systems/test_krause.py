"""Krause's model against plain sums, a closed form for two tokens, and its symmetries."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

import attnflow as af
from attnflow.errors import InputError
from attnflow.spec.read import parse_spec
from attnflow.spec.write import write_spec

PLAIN = {
    "gaussian": lambda s: np.exp(-s / 2),
    "indicator": lambda s: 1.0 * (s <= 1),
    "cauchy": lambda s: 1 / (1 + s),
}


def plain(x, phi, radius, masses):
    v = np.zeros_like(x)
    for i in range(len(x)):
        w = [m * phi(np.sum((x[i] - y) ** 2) / radius**2) for y, m in zip(x, masses, strict=True)]
        v[i] = sum(a * (y - x[i]) for a, y in zip(w, x, strict=True)) / sum(w)
    return v


def tokens(n=6, d=3, key=0):
    return np.random.default_rng(key).normal(size=(n, d))


@pytest.mark.parametrize("phi", PLAIN)
def test_the_velocity_is_the_plain_sum(phi, rng):
    x, m = tokens(), rng.uniform(0.5, 2.0, 6)
    for radius in (0.6, 1.7):
        system = af.Krause(phi, radius=radius)
        for masses in (None, m):
            got = system.velocity(0.0, jnp.asarray(x), None if masses is None else jnp.asarray(m))
            want = plain(x, PLAIN[phi], radius, np.ones(6) if masses is None else m)
            np.testing.assert_allclose(got, want, atol=1e-14)


def test_a_function_of_ones_own():
    own = af.Krause(lambda s: 1 / (1 + s), radius=2)
    x = jnp.asarray(tokens())
    np.testing.assert_array_equal(
        own.velocity(0.0, x), af.Krause("cauchy", radius=2.0).velocity(0.0, x)
    )


def test_two_tokens_have_a_closed_form():
    """With φ = 1/(1+s) the gap g has g' = −2g/(2+g²), so 2 log g + g²/2 falls like 2t."""
    ts = np.array([0.0, 1.0, 4.0])
    run = af.simulate(af.Krause("cauchy"), np.array([[0.0], [3.0]]), ts)
    gaps = np.asarray(run.xs[:, 1, 0] - run.xs[:, 0, 0])

    def invariant(g):
        return 2 * np.log(g) + g * g / 2

    want = [brentq(lambda g, t=t: invariant(g) - invariant(3.0) + 2 * t, 1e-6, 3.1) for t in ts]
    np.testing.assert_allclose(gaps, want, atol=1e-7)
    np.testing.assert_allclose(run.xs.mean(axis=1), 1.5, atol=1e-9)


@pytest.mark.parametrize("phi", PLAIN)
def test_motions_and_scale(phi, rng):
    x, p = tokens(), rng.permutation(6)
    O = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    v = af.Krause(phi, radius=1.5).velocity(0.0, jnp.asarray(x))
    moved = af.Krause(phi, radius=3.0).velocity(0.0, jnp.asarray(2 * x[p] @ O + 5.0))
    np.testing.assert_allclose(moved, 2 * v[p] @ O, atol=1e-13)


def test_equal_tokens_are_one_of_their_mass():
    x = tokens()
    twice = jnp.asarray(np.concatenate([x, x[:1]]))
    masses = jnp.asarray([2.0, 1, 1, 1, 1, 1])
    for phi in PLAIN:
        system = af.Krause(phi)
        got = system.velocity(0.0, jnp.asarray(x), masses)
        np.testing.assert_allclose(got, system.velocity(0.0, twice)[:6], atol=1e-14)


def test_the_hull_shrinks_and_the_radius_compiles_nothing():
    x0 = tokens(6, 2)
    run = af.simulate(af.Krause(), x0, [0.0, 1.0, 3.0, 100.0])
    u = np.random.default_rng(1).normal(size=(40, 2))
    reach = (np.asarray(run.xs) @ u.T).max(axis=1)
    assert (np.diff(reach, axis=0) < 1e-9).all()
    assert float(af.observe.diameter(run.final)) < 1e-6
    traces = []

    @jax.jit
    def velocity(system, x):
        traces.append(1)
        return system.velocity(0.0, x)

    for radius in (1.0, 2.0):
        velocity(af.Krause(radius=radius), jnp.asarray(x0))
    assert len(traces) == 1


def test_float32_batches_and_masses_under_vmap():
    x = jnp.asarray(np.stack([tokens(), tokens(key=1)]), jnp.float32)
    got = jax.vmap(lambda x: af.Krause("gaussian").velocity(0.0, x))(x)
    assert got.dtype == jnp.float32
    want = plain(np.asarray(x[1], float), PLAIN["gaussian"], 1.0, np.ones(6))
    np.testing.assert_allclose(got[1], want, atol=1e-5)


def test_specs_name_the_kernel():
    text = write_spec(af.Krause("cauchy", radius=2.0), np.eye(2), [0.0, 1.0])
    assert 'phi = "cauchy"\nradius = 2.0' in text
    spec = {"system": {"name": "Krause", "phi": "indicator", "radius": 2}}
    built = parse_spec(spec | {"start": {"n": 4, "d": 2}, "times": {"stop": 1.0}}).build().system
    assert str(built) == "Krause(phi='indicator', radius=2)"
    with pytest.raises(InputError, match="phi is a function of distance"):
        write_spec(af.Krause(lambda s: 1 / (1 + s)), np.eye(2), [0.0, 1.0])


def test_bad_input(untyped):
    for make, said in (
        (lambda: af.Krause("gausian"), "did you mean 'gaussian'"),
        (lambda: af.Krause(3), "phi must be a name"),
        (lambda: af.Krause(lambda s: s), r"phi\(0\) is 0"),
        (lambda: af.Krause(radius=-1.0), "radius must be a finite number above 0"),
        (lambda: af.Krause(radius=[1.0, 2.0]), "radius must be a single real number"),
    ):
        with pytest.raises(InputError, match=said):
            make()
