"""Velocities and layers against the plain NumPy implementation."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import attnflow as af
import reference

V3 = np.random.default_rng(8).normal(size=(3, 3))
TS = [0.0, 0.5, 2.0]
CASES = [(3, 2, 2, 1), (6, 3, 2, 2), (9, 4, 4, 3)]


@st.composite
def draws(draw):
    n, d, k, H = draw(st.sampled_from(CASES))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return {
        "x": rng.normal(size=(n, d)),
        "beta": draw(st.sampled_from([0.0, 0.3, 2.0, 8.0])),
        "Q": rng.normal(size=(H, k, d)),
        "K": rng.normal(size=(H, k, d)),
        "V": rng.normal(size=(H, d, d)),
        "masses": rng.uniform(0.2, 3, n) if draw(st.booleans()) else None,
        "mask": draw(st.sampled_from([None, "causal", "given"])),
        "D": rng.uniform(0.5, 2, d),
        "rng": rng,
    }


def mask_matrix(mask, n, rng):
    if mask is None:
        return None
    if mask == "causal":
        return np.tril(np.ones((n, n), bool))
    return (rng.uniform(size=(n, n)) < 0.5) | np.eye(n, dtype=bool)


def close(ours, theirs):
    scale = np.abs(theirs).max() + 1e-300
    assert np.abs(np.asarray(ours) - theirs).max() <= 1e-12 * scale


def squeeze(c):
    """One head is passed without its axis in half of the cases."""
    one = len(c["Q"]) == 1
    return {name: c[name][0] if one else c[name] for name in "QKV"}


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


few = settings(max_examples=6, deadline=None, derandomize=True)


@few
@given(draws())
def test_sphere_and_euclidean_velocities(c):
    allowed = mask_matrix(c["mask"], len(c["x"]), c["rng"])
    mask = allowed if c["mask"] == "given" else c["mask"]
    lists = [list(c[name]) for name in "QKV"]
    masses = None if c["masses"] is None else jnp.asarray(c["masses"])
    weights, x = squeeze(c), unit(c["x"])
    for make, normalised in ((af.SA, True), (af.USA, False)):
        system = make(c["beta"], **weights, mask=mask)
        theirs = reference.sphere_velocity(x, *lists, c["beta"], c["masses"], allowed, normalised)
        close(system.velocity(0.0, jnp.asarray(x), masses), theirs)
    system = af.PureAttention(**weights, beta=c["beta"], mask=mask)
    theirs = reference.drift(c["x"], *lists, c["beta"], c["masses"], allowed)
    close(system.velocity(0.0, jnp.asarray(c["x"]), masses), theirs)


@few
@given(draws())
def test_ellipsoid_and_normalised_layers(c):
    lists = [list(c[name]) for name in "QKV"]
    weights, masses = squeeze(c), c["masses"]
    m = None if masses is None else jnp.asarray(masses)
    x = c["x"] / np.linalg.norm(c["x"] / c["D"], axis=-1, keepdims=True)
    flow = af.EllipsoidAttention(c["beta"], D=c["D"], **weights)
    theirs = reference.ellipsoid_velocity(x, c["D"], *lists, c["beta"], masses)
    close(flow.velocity(0.0, jnp.asarray(x), m), theirs)
    post = af.PostNorm(c["beta"], D=c["D"], **weights)
    theirs = reference.rms_post_layer(x, 0.7, c["D"], *lists, c["beta"], masses)
    close(post.layer(0, jnp.asarray(x), 0.7, m), theirs)
    pre = af.PreNorm(c["beta"], D=c["D"], **weights)
    theirs = reference.rms_pre_layer(x, 0.7, c["D"], *lists, c["beta"], masses)
    close(pre.layer(0, jnp.asarray(x), 0.7, m), theirs)


@few
@given(draws())
def test_layers_on_the_sphere_and_in_space(c):
    lists = [list(c[name]) for name in "QKV"]
    weights, x = squeeze(c), unit(c["x"])
    sphere = af.SA(c["beta"], **weights)
    close(sphere.layer(3, jnp.asarray(x), 0.5), reference.sphere_layer(x, 0.5, *lists, c["beta"]))
    pure = af.PureAttention(**weights, beta=c["beta"])
    close(
        pure.layer(3, jnp.asarray(c["x"]), 0.5),
        reference.euler_layer(c["x"], 0.5, *lists, c["beta"]),
    )


@few
@given(draws(), st.sampled_from([0.0, 0.4, 1.0]))
def test_rescaled_velocity(c, t):
    lists = [list(c[name]) for name in "QKV"]
    m = None if c["masses"] is None else jnp.asarray(c["masses"])
    system = af.RescaledAttention(**squeeze(c), beta=c["beta"])
    theirs = reference.rescaled_velocity(t, c["x"], *lists, c["beta"], c["masses"])
    ours = system.velocity(t, jnp.asarray(c["x"]), m)
    # Scores of size S carry a rounding error of S·1e-16 into the exponent, in both.
    x = np.asarray(system.to_x(t, jnp.asarray(c["x"])))
    size = max(np.abs((x @ Q.T) @ (x @ K.T).T).max() for Q, K in zip(c["Q"], c["K"], strict=True))
    scale = np.abs(theirs).max()
    assert np.abs(ours - theirs).max() <= 1e-12 * scale * max(1, c["beta"] * size)


@few
@given(draws(), st.integers(0, 5))
def test_rescaled_layers(c, k):
    lists = [list(c[name]) for name in "QKV"]
    m = None if c["masses"] is None else jnp.asarray(c["masses"])
    beta = min(c["beta"], 0.3)
    system = af.RescaledAttention(**squeeze(c), beta=beta)
    theirs = reference.rescaled_layer(k, c["x"], 0.3, *lists, beta, c["masses"])
    ours = np.asarray(system.layer(k, jnp.asarray(c["x"]), 0.3, m))
    R = np.eye(c["x"].shape[1]) + 0.3 * c["V"].sum(axis=0)
    x = c["x"] @ np.linalg.matrix_power(R, k).T
    size = max(np.abs((x @ Q.T) @ (x @ K.T).T).max() for Q, K in zip(c["Q"], c["K"], strict=True))
    loss = max(1, beta * size) * np.linalg.cond(R) ** (1 if len(c["Q"]) == 1 else k + 1)
    assert np.abs(ours - theirs).max() <= 1e-12 * loss * np.abs(theirs).max()


def test_identity_number_and_matrix_are_the_same_weight():
    x = af.initial.sphere(n=7, d=3, key=0)
    eye = np.eye(3)
    for make in (af.SA, af.USA):
        plain = make(2.0).velocity(0.0, x)
        given_ = make(2.0, Q=eye, K=eye, V=eye).velocity(0.0, x)
        assert np.allclose(plain, given_, atol=1e-14)
        repulsive = make(2.0, V=-1.0).velocity(0.0, x)
        assert np.allclose(repulsive, -plain, atol=1e-14)


def test_heads_add_up():
    x = af.initial.sphere(n=7, d=3, key=0)
    Q, K, V = (af.weights.ginibre(3, heads=4, key=s) for s in range(3))
    together = af.SA(1.5, Q=Q, K=K, V=V).velocity(0.0, x)
    each = [af.SA(1.5, Q=Q[h], K=K[h], V=V[h]).velocity(0.0, x) for h in range(4)]
    assert np.allclose(together, sum(each), atol=1e-13)
    shared = af.SA(1.5, Q=Q, K=K[0], V=2.0).velocity(0.0, x)
    each = [af.SA(1.5, Q=Q[h], K=K[0], V=2.0).velocity(0.0, x) for h in range(4)]
    assert np.allclose(shared, sum(each), atol=1e-13)


@pytest.mark.parametrize("make", [af.SA, af.USA])
def test_permutation_and_rotation_equivariance(make):
    x = af.initial.sphere(n=9, d=4, key=3)
    O = jnp.asarray(np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0])
    order = np.random.default_rng(1).permutation(9)
    run = af.simulate(make(2.0), x, TS).xs
    assert np.abs(af.simulate(make(2.0), x[order], TS).xs - run[:, order]).max() < 1e-10
    assert np.abs(af.simulate(make(2.0), x @ O.T, TS).xs - run @ O.T).max() < 1e-10


def repeated(system):
    few = system.retract(af.initial.sphere(n=3, d=3, key=5))
    counts = np.array([1, 3, 2])
    return few, jnp.repeat(few, counts, axis=0), counts


@pytest.mark.parametrize(
    "system",
    [
        af.SA(3.0, V=V3),
        af.USA(1.0, Q=V3),
        af.PureAttention(V=-1.0),
        af.RescaledAttention(V=np.diag([1.0, 0.5, -0.3])),
        af.EllipsoidAttention(2.0, D=np.array([1.5, 1.0, 0.7])),
        af.PreNorm(2.0, D=np.array([1.5, 1.0, 0.7])),
    ],
    ids=lambda s: type(s).__name__,
)
def test_equal_tokens_move_as_one_token_with_a_mass(system):
    few, many, counts = repeated(system)
    heavy = system.velocity(0.3, few, jnp.asarray(counts, float))
    plain = system.velocity(0.3, many)
    assert np.abs(plain - np.repeat(heavy, counts, axis=0)).max() < 1e-13


@pytest.mark.slow
@pytest.mark.parametrize("system", [af.SA(3.0), af.USA(1.0)])
def test_equal_tokens_stay_one_token_with_a_mass(system):
    few, many, counts = repeated(system)
    heavy = af.simulate(system, few, TS, masses=counts).xs
    plain = af.simulate(system, many, TS).xs
    assert np.abs(plain - np.repeat(heavy, counts, axis=1)).max() < 1e-10


def test_a_causal_prefix_does_not_see_what_follows():
    x = af.initial.sphere(n=8, d=3, key=0)
    system = af.SA(4.0, mask="causal")
    whole, prefix = system.velocity(0.0, x), system.velocity(0.0, x[:5])
    assert np.abs(whole[:5] - prefix).max() < 1e-14
    assert np.abs(whole[0]).max() < 1e-15


def test_beta_zero_is_the_mean_field():
    x = af.initial.sphere(n=6, d=4, key=0)
    mean = jnp.broadcast_to(x.mean(axis=0), x.shape)
    expected = mean - jnp.sum(x * mean, axis=1, keepdims=True) * x
    assert np.allclose(af.SA(0.0).velocity(0.0, x), expected, atol=1e-15)
    assert np.allclose(af.USA(0.0).velocity(0.0, x), expected, atol=1e-15)


def test_float32_velocity_stays_float32():
    x = af.initial.sphere(n=5, d=3, key=0, dtype=np.float32)
    V = af.weights.ginibre(3, key=0)
    for system in (af.SA(2.0, V=V), af.USA(2), af.PureAttention(V=V), af.RescaledAttention(V=V)):
        assert system.velocity(0.0, x).dtype == np.float32


D3 = np.array([1.5, 1.0, 0.7])
ANY = [
    af.SA(2.5, V=V3),
    af.SA(2.5, mask="causal"),
    af.USA(2.5),
    af.PureAttention(V=V3, beta=2.5),
    af.RescaledAttention(V=V3, beta=2.5),
    af.RescaledAttention(V=0.5, beta=0.5),
    af.EllipsoidAttention(2.5, D=D3),
    af.PreNorm(2.5, D=D3),
    af.PostNorm(2.5, D=D3),
]


@pytest.mark.parametrize("system", ANY, ids=str)
def test_tokens_that_are_integers_become_floats(system):
    x = jnp.array([[1, 0, 0], [0, 1, 0], [0, 0, -1], [1, 0, 0]])
    calls = [system.drift, system.attention, lambda t, x: system.layer(1, x, t)]
    if not isinstance(system, af.systems.Map):
        calls.append(system.velocity)
    if isinstance(system, af.RescaledAttention):
        calls += [system.to_x, system.to_z]
    for call in calls:
        whole, floats = call(0.5, x), call(0.5, x.astype(float))
        assert whole.dtype == floats.dtype
        np.testing.assert_array_equal(whole, floats)


def test_repr_names_what_is_not_default():
    assert repr(af.SA(4.0)) == "SA(beta=4)"
    assert (
        repr(af.SA(4.0, V=np.eye(2), mask="causal")) == "SA(beta=4, V=array(2, 2), mask=Causal())"
    )
