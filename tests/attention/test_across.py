"""Forces between clusters of equal tokens, which are far below the rounding of a sum over them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.attention import Blocked, Dense, Softmax, Unnormalised, attend
from attnflow.attention.across import equal_mass, fingerprints

RNG = np.random.default_rng(3)
Q, K = RNG.normal(size=(2, 3, 3))
SYSTEMS = [
    af.SA(30.0),
    af.SA(30.0, V=-2.0),
    af.USA(30.0),
    af.SA(15.0, Q=Q, K=K),
    af.SinkhornSA(3.0),
    af.SA(30.0, backend=Blocked(64, exact=True)),
    af.USA(30.0, backend=Blocked(64, exact=True)),
]


def clusters(d):
    """Two directions at an angle of 2.9, and a third token."""
    x = RNG.normal(size=(3, d))
    x[1] = np.cos(2.9) * x[0] + np.sin(2.9) * np.linalg.norm(x[0]) * across(x[0], x[1])
    return jnp.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


def across(a, b):
    """The direction of b across a."""
    b = b - (a @ b) / (a @ a) * a
    return b / np.linalg.norm(b)


@pytest.mark.parametrize("system", SYSTEMS, ids=str)
def test_equal_tokens_are_one_of_their_mass(system):
    """500 equal tokens had a speed of 2e-15 in SA, and of 2e-2 in USA, and hardly move."""
    x, counts = clusters(3), np.array([500, 20, 7])
    heavy = np.asarray(system.velocity(0.0, x, jnp.asarray(counts, float)))
    light = np.asarray(system.velocity(0.0, jnp.repeat(x, counts, axis=0)))
    of_each = np.split(light, np.cumsum(counts)[:-1])
    tolerance = 1e-6 if not system.kind.rowwise else 1e-9
    for one, equal in zip(heavy, of_each, strict=True):
        assert np.linalg.norm(equal - one, axis=1).max() < tolerance * np.linalg.norm(one)


@pytest.mark.parametrize("d", [2, 3, 8])
@pytest.mark.parametrize("backend", [Dense(), Blocked(64, exact=True)], ids=str)
@pytest.mark.parametrize("weigh", [False, True], ids=["tokens", "masses"])
def test_two_clusters_in_closed_form(d, backend, weigh):
    """a moves to b at the speed `n_b sin θ e^{β(cos θ − 1)} / n_a`, here 1e-51."""
    beta, angle, counts = 60.0, 2.9, np.array([500, 3])
    x = jnp.repeat(clusters(d)[:2], counts, axis=0)
    m = jnp.asarray(RNG.uniform(0.5, 2, len(x))) if weigh else None
    v = np.asarray(af.SA(beta, backend=backend).velocity(0.0, x, m))
    a, b = (np.ones(len(x)) if m is None else np.asarray(m))[:500].sum(), None
    b = 3.0 if m is None else float(m[500:].sum())
    speed = b / a * np.sin(angle) * np.exp(beta * (np.cos(angle) - 1))
    np.testing.assert_allclose(np.linalg.norm(v[:500], axis=1), speed, rtol=1e-8)
    towards = across(np.asarray(x[0]), np.asarray(x[-1]))
    np.testing.assert_allclose(v[:500] @ towards, speed, rtol=1e-8)


@pytest.mark.parametrize("backend", [Dense(), Blocked(2, exact=True)], ids=str)
def test_derivatives_at_equal_tokens_are_those_of_the_sum(backend):
    """A token that leaves its equals pulls them along: the term that is 0 has a derivative."""
    x = jnp.repeat(clusters(3), np.array([3, 2, 1]), axis=0)
    system = af.USA(2.0, backend=backend)

    def plain(x):
        means = jnp.exp(2.0 * x @ x.T) @ x / len(x)
        return means - jnp.sum(means * x, axis=1, keepdims=True) * x

    want = jax.jacfwd(plain)(x)
    for jacobian in (jax.jacfwd, jax.jacrev):
        got = jacobian(lambda x: system.velocity(0.0, x))(x)
        across_x = got - jnp.einsum("na,nb,nbmc->namc", x, x, got)
        want_x = want - jnp.einsum("na,nb,nbmc->namc", x, x, want)
        np.testing.assert_allclose(across_x, want_x, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fingerprints_are_equal_for_equal_tokens_alone(dtype):
    e = np.eye(64)
    round_numbers = np.concatenate([e, -e, e / 2, np.roll(e, 1, axis=1) + e, 0 * e[:1]])
    random = RNG.normal(size=(2000, 64))
    x = np.concatenate([round_numbers, random, np.nextafter(random[:9], 2)]).astype(dtype)
    x = np.unique(x, axis=0)
    prints = np.asarray(fingerprints(jnp.asarray(x)))
    assert len(np.unique(prints, axis=0)) == len(x)
    again = np.asarray(fingerprints(jnp.asarray(np.concatenate([x[::-1], -x, x]))))
    np.testing.assert_array_equal(again[-len(x) :], prints)
    np.testing.assert_array_equal(again[: len(x)], prints[::-1])
    zeros = fingerprints(jnp.array([[0.0, 1.0], [-0.0, 1.0]], dtype))
    np.testing.assert_array_equal(zeros[0], zeros[1])


def test_weights_of_infinite_tokens_do_not_spoil_the_others():
    """At β = 800 a token's own term of USA is infinite: it has no part across the token."""
    x = jnp.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    means = attend(x, x, x, beta=800.0, kind=Unnormalised(), unit=True, tangential=True)
    np.testing.assert_array_equal(means, [[0.0, 0.5, 0.0], [0.5, 0.0, 0.0]])


def test_many_tokens_that_are_merged_have_exact_forces():
    """Above 1024 tokens sums go in blocks, and Coarsening needs their forces exact."""
    x = jnp.repeat(clusters(8)[:2], np.array([1500, 10]), axis=0)
    system = af.SA(30.0)
    v = np.asarray(system.with_exact_sums(len(x)).velocity(0.0, x))
    speed = 10 / 1500 * np.sin(2.9) * np.exp(30 * (np.cos(2.9) - 1))
    np.testing.assert_allclose(np.linalg.norm(v[:1500], axis=1), speed, rtol=1e-8)


TWINS = {"none": [], "a pair": [(1, 4)], "a pair and three": [(1, 4), (2, 5), (2, 7)]}


def with_twins(pairs, d, dtype=float):
    x = np.asarray(af.initial.sphere(n=9, d=d, key=d, dtype=dtype)).copy()
    for kept, equal in pairs:
        x[equal] = x[kept]
    return jnp.asarray(x)


@pytest.mark.parametrize("kind", [Softmax(), Unnormalised()], ids=["softmax", "unnormalised"])
@pytest.mark.parametrize("masses", [None, np.array([1, 2, 0, 1, 3, 2, 1, 0.5, 1])], ids=["1", "m"])
@pytest.mark.parametrize("d", [2, 3, 9])
@pytest.mark.parametrize("twins", TWINS)
def test_dense_sums_over_unequal_tokens_are_those_over_all(twins, d, masses, kind):
    """Against a plain sum over all pairs, projected."""
    x = with_twins(TWINS[twins], d)
    m = np.ones(9) if masses is None else masses
    weights = m * np.exp(3.0 * np.asarray(x) @ np.asarray(x).T)
    total = weights.sum(axis=1) if kind == Softmax() else np.full(9, m.sum())
    v = weights @ np.asarray(x) / total[:, None]
    expected = v - (v * x).sum(axis=1, keepdims=True) * x

    def velocity(x):
        given = None if masses is None else jnp.asarray(masses)
        means = attend(x, x, x, beta=3.0, kind=kind, masses=given, unit=True, tangential=True)
        return means - (means * x).sum(axis=1, keepdims=True) * x

    scale = np.abs(expected).max()
    assert np.allclose(velocity(x), expected, rtol=0, atol=1e-14 * scale)
    batch = jnp.stack([x, with_twins([], d), with_twins(TWINS["a pair"], d)])
    assert np.allclose(jax.vmap(velocity)(batch)[0], expected, rtol=0, atol=1e-14 * scale)


@pytest.mark.parametrize("twins", TWINS)
def test_dense_sums_have_the_derivative_of_the_sum_over_all(twins):
    x = with_twins(TWINS[twins], 3)
    u = jax.random.normal(jax.random.key(0), x.shape)

    def velocity(x, **how):
        means = attend(x, x, x, beta=3.0, **how)
        return means - (means * x).sum(axis=1, keepdims=True) * x

    def dense(x):
        return velocity(x, unit=True, tangential=True)

    along = u - (u * x).sum(axis=1, keepdims=True) * x
    ours, plain = (jax.jvp(f, (x,), (along,))[1] for f in (dense, velocity))
    # Off the sphere `tangential` may add multiples of x: only what is across counts.
    across = [v - (v * x).sum(axis=1, keepdims=True) * x for v in (ours, plain)]
    assert np.allclose(*across, atol=1e-13)


def test_masses_of_equal_tokens_are_found_in_every_member_of_a_batch():
    x = jnp.stack([with_twins(TWINS[twins], 3) for twins in TWINS])
    found = jax.vmap(lambda x: equal_mass(fingerprints(x), None, float))(x)
    assert np.array_equal(found[0], np.ones(9))
    assert np.array_equal(found[1], [1, 2, 1, 1, 2, 1, 1, 1, 1])
    assert np.array_equal(found[2], [1, 2, 3, 1, 2, 3, 1, 3, 1])
