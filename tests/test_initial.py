from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from attnflow import checks, initial
from attnflow.errors import InputError
from attnflow.spaces import unit_rows

RANDOM = {
    "gaussian": partial(initial.gaussian, 4, 5),
    "sphere": partial(initial.sphere, 4, 5),
    "hemisphere": partial(initial.hemisphere, 4, 5),
    "orthogonal": partial(initial.orthogonal, 4, 5),
    "cube": partial(initial.cube, 4, 5),
    "clustered": partial(initial.clustered, 4, 5, clusters=2),
}
ON_SPHERE = [RANDOM[name] for name in ("sphere", "hemisphere", "orthogonal", "clustered")]
every_random = pytest.mark.parametrize("start", RANDOM.values(), ids=RANDOM.keys())


def within(sample, mean, variance):
    """The sample's mean is the law's mean, to five standard errors in every entry."""
    error = np.abs(np.mean(sample, axis=0) - mean)
    assert np.all(error <= 5 * np.sqrt(variance / len(sample))), error


@every_random
def test_members_of_a_batch_differ(start):
    x = np.asarray(jax.jit(lambda: start(key=0, batch=2))())
    assert x.shape == (2, 4, 5)
    assert np.all(x[0] != x[1])


@every_random
@pytest.mark.parametrize(("batch", "shape"), [((), (4, 5)), ((2, 3), (2, 3, 4, 5))])
def test_a_batch_has_any_number_of_axes(start, batch, shape):
    assert jax.eval_shape(lambda: start(key=0, batch=batch)).shape == shape


@every_random
def test_dtype_is_as_asked(start):
    assert jax.eval_shape(lambda: start(key=0)).dtype == np.float64
    assert jax.eval_shape(lambda: start(key=0, dtype=np.float32)).dtype == np.float32


@every_random
def test_the_same_key_is_the_same_draw(start):
    x = start(key=7)
    np.testing.assert_array_equal(x, start(key=7))
    np.testing.assert_array_equal(x, start(key=jax.random.key(7)))
    assert np.all(np.asarray(x != start(key=8)))


@every_random
def test_a_key_is_needed(start):
    with pytest.raises(TypeError, match="key"):
        start()


@every_random
def test_traceable_with_a_key(start):
    key = jax.random.key(3)
    np.testing.assert_allclose(jax.jit(lambda k: start(key=k))(key), start(key=key), rtol=1e-12)


@every_random
def test_a_batch_is_a_count(start):
    with pytest.raises(InputError, match="batch must be a whole number of at least 1, not 0"):
        start(key=0, batch=(2, 0))


@pytest.mark.parametrize(
    "start",
    [s for name, s in initial.STARTS.items() if name not in ("circle", "angles")],
    ids=lambda s: s.__name__,
)
@pytest.mark.parametrize(("n", "d", "name"), [(0, 2, "n"), (-1, 2, "n"), (2, 0, "d")])
def test_sizes_are_counts(start, n, d, name):
    with pytest.raises(InputError, match=f"^{name} must be a whole number"):
        start(n, d, key=0)


def test_a_number_of_angles_is_a_count():
    with pytest.raises(InputError, match=r"^n must be a whole number"):
        initial.angles(0, key=0)


def test_a_start_that_does_not_fit_is_refused_before_it_is_drawn(monkeypatch):
    monkeypatch.setattr(checks, "available_memory", lambda: 2 * 4 * 5 * 8)
    initial.gaussian(4, 5, key=0)
    with pytest.raises(InputError, match=r"a start of shape \(2, 4, 5\) would need"):
        initial.gaussian(4, 5, key=0, batch=2)


@pytest.mark.parametrize(
    ("start", "most"),
    [
        (partial(initial.gaussian, d=7, scale=3.0, key=0), 1),
        (partial(initial.sphere, d=7, key=1), 1),
        (partial(initial.sphere, d=13, key=1), 2),
        (partial(initial.sphere, d=300, reduced=True, key=2), 2),
        (partial(initial.hemisphere, d=7, key=3, dtype=np.float32), 1),
        (partial(initial.orthogonal, d=43, key=4), 2),
        (partial(initial.cube, d=7, side=3.0, key=5), 1),
        (partial(initial.angles, arc=3.0, key=6), 1),
        (partial(initial.clustered, d=7, key=7, batch=2), 1),
        (initial.circle, 1),
        (partial(initial.sinusoidal, d=7), 1),
    ],
)
def test_a_start_compiles_a_program_or_two(start, most, programs):
    jax.clear_caches()
    start(n=41)
    assert 1 <= len(programs) <= most, programs


def test_known_tokens_are_normalised_without_a_program(programs):
    jax.clear_caches()
    initial.normalise(np.ones((2, 5)))
    initial.normalise(np.ones((2, 3, 7), np.float32))
    assert programs == []


def plain_orthogonal(key, shape, dtype):
    Q, R = jnp.linalg.qr(jax.random.normal(key, shape, dtype).mT)
    return (Q * jnp.sign(jnp.diagonal(R, axis1=-2, axis2=-1))[..., None, :]).mT


def plain_clustered(key, shape, dtype):
    at, around = jax.random.split(key)
    centres = unit_rows(jax.random.normal(at, (*shape[:-2], 2, shape[-1]), dtype))
    noise = 0.1 * jax.random.normal(around, shape, dtype)
    return unit_rows(centres[..., jnp.arange(shape[-2]) % 2, :] + noise)


def plain_hemisphere(key, shape, dtype):
    x = unit_rows(jax.random.normal(key, shape, dtype))
    return x.at[..., -1].set(jnp.abs(x[..., -1]))


PLAIN = {
    "gaussian": jax.random.normal,
    "sphere": lambda key, shape, dtype: unit_rows(jax.random.normal(key, shape, dtype)),
    "hemisphere": plain_hemisphere,
    "orthogonal": plain_orthogonal,
    "cube": partial(jax.random.uniform, minval=-5.0, maxval=5.0),
    "clustered": plain_clustered,
}
"""The starts, each operation by JAX in the shape of the tokens."""


@pytest.mark.parametrize("name", RANDOM)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("batch", [(), (2, 3)])
def test_a_start_is_its_formula_to_the_last_digit(name, dtype, batch):
    plain = PLAIN[name](jax.random.key(5), (*batch, 4, 5), dtype)
    drawn = RANDOM[name](key=5, batch=batch, dtype=dtype)
    np.testing.assert_array_max_ulp(np.asarray(drawn), np.asarray(plain), maxulp=1)


@pytest.mark.parametrize("d", [1, 8, 9, 70])
@pytest.mark.parametrize("inside", [lambda call: call(), lambda call: jax.jit(call)()])
def test_known_tokens_are_normalised_to_the_last_digit(d, inside, rng):
    x = jnp.asarray(rng.normal(size=(6, d)))
    y = inside(lambda: initial.normalise(x))
    np.testing.assert_array_max_ulp(np.asarray(y), np.asarray(unit_rows(x)), maxulp=1)


@pytest.mark.parametrize("start", ON_SPHERE)
def test_tokens_are_on_the_sphere(start):
    np.testing.assert_allclose(np.linalg.norm(start(key=0), axis=-1), 1, rtol=1e-15)


def test_gaussian_moments():
    x = np.ravel(initial.gaussian(20_000, 3, scale=3, key=0))
    within(x, 0, 9)
    within(x**2, 9, 2 * 81)
    within(x**4, 3 * 81, 96 * 81**2)


def test_sphere_is_uniform():
    d, N = 3, 20_000
    x = np.asarray(initial.sphere(N, d, key=0))
    fourth = 3 / (d * (d + 2))
    within(x, 0, 1 / d)
    within(x**2, 1 / d, fourth - 1 / d**2)
    within(x[:, 0] * x[:, 1], 0, 1 / (d * (d + 2)))
    within(x**4, fourth, 105 / (d * (d + 2) * (d + 4) * (d + 6)))


def test_hemisphere_is_uniform_on_its_half():
    x = np.asarray(initial.hemisphere(20_000, 3, key=0))
    assert np.all(x[:, -1] > 0)
    within(x[:, -1], 1 / 2, 1 / 12)
    within(x[:, :-1], 0, 1 / 3)


@pytest.mark.parametrize(("n", "d"), [(4, 5), (5, 5)])
def test_orthogonal_tokens_are_orthonormal(n, d):
    x = initial.orthogonal(n, d, key=0)
    np.testing.assert_allclose(x @ x.T, np.eye(n), atol=1e-14)


def test_orthogonal_frames_favour_no_direction():
    x = np.asarray(initial.orthogonal(2, 3, key=0, batch=5000))
    within(x, 0, 1 / 3)
    within(x**2, 1 / 3, 1 / 5)


def test_orthogonal_tokens_are_at_most_d():
    with pytest.raises(InputError, match=r"n = 4 orthogonal tokens need d ≥ n, but d = 3"):
        initial.orthogonal(4, 3, key=0)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_circle_is_equally_spaced(n):
    roots = np.exp(2j * np.pi * np.arange(n) / n)
    x = initial.circle(n, dtype=np.float32)
    assert x.dtype == np.float32
    np.testing.assert_allclose(initial.circle(n), np.c_[roots.real, roots.imag], atol=1e-15)


def test_circle_needs_a_count():
    with pytest.raises(InputError, match="n must be a whole number"):
        initial.circle(0)


def test_cube_is_uniform_between_its_sides():
    x = np.asarray(initial.cube(20_000, 3, side=4, key=0))
    assert np.all(np.abs(x) <= 2)
    within(x, 0, 16 / 12)
    within(x**2, 16 / 12, 16**2 / 180)
    assert np.abs(initial.cube(20_000, 3, key=0)).max() == pytest.approx(5, rel=0.01)


def test_clusters_take_turns():
    x = np.asarray(initial.clustered(300, 3, clusters=3, spread=0, key=0))
    np.testing.assert_array_equal(x[3:], x[:-3])
    assert len(np.unique(x[:, 0])) == 3


def test_clustered_tokens_are_near_their_centres():
    key = jax.random.key(0)
    centres = initial.clustered(300, 3, clusters=3, spread=0.0, key=key)
    x = initial.clustered(300, 3, clusters=3, spread=0.01, key=key)
    distance = np.linalg.norm(x - centres, axis=-1)
    assert 0 < distance.min() < distance.max() < 0.06
    # the tangential part of the noise has two of its three directions
    within(distance**2, 2e-4, 4e-8 * 1.2)


def test_clusters_are_a_count():
    with pytest.raises(InputError, match="clusters must be a whole number"):
        initial.clustered(4, 3, clusters=0, key=0)


@pytest.mark.parametrize(("n", "d", "M"), [(1, 2, 1e4), (6, 4, 1e4), (5, 3, 100)])
def test_sinusoidal_encodings(n, d, M):
    p = np.zeros((n, d))
    for k in range(n):
        for i in range(d):
            angle = k * M ** (-2 * (i // 2) / d)
            p[k, i] = np.cos(angle) if i % 2 else np.sin(angle)
    np.testing.assert_allclose(initial.sinusoidal(n, d, M=M), p, atol=1e-15)
    assert initial.sinusoidal(n, d, M=M, dtype=np.float32).dtype == np.float32


@pytest.mark.parametrize(("n", "d", "name"), [(0, 2, "n"), (2, 0, "d")])
def test_sinusoidal_sizes_are_counts(n, d, name):
    with pytest.raises(InputError, match=f"^{name} must be a whole number"):
        initial.sinusoidal(n, d)


@pytest.mark.parametrize("batch", [(), (2, 3)])
def test_encodings_are_appended_to_each_member(batch):
    x = np.random.default_rng(0).normal(size=(*batch, 4, 3)).astype(np.float32)
    p = initial.sinusoidal(4, 2)
    both = initial.concatenated(x, p)
    assert both.dtype == np.float32
    np.testing.assert_array_equal(both[..., :3], x)
    np.testing.assert_array_equal(both[..., 3:], np.broadcast_to(p.astype("f"), (*batch, 4, 2)))


def test_encodings_are_as_many_as_tokens(untyped):
    with pytest.raises(InputError, match="x has 4 tokens, but p has 3 positions"):
        initial.concatenated(jnp.ones((4, 2)), jnp.ones((3, 2)))


@given(key=st.integers(0, 2**32 - 1), scale=st.sampled_from([1e-200, 1e-3, 1.0, 1e200]))
@settings(deadline=None, max_examples=6, derandomize=True)
def test_normalise_keeps_directions_and_forgets_lengths(key, scale):
    x = np.random.default_rng(key).normal(size=(2, 4, 3))
    unit = np.asarray(initial.normalise(jnp.asarray(scale * x)))
    lengths = np.linalg.norm(x, axis=-1, keepdims=True)
    np.testing.assert_allclose(unit * lengths, x, rtol=1e-14)


def test_normalise_takes_traced_tokens():
    np.testing.assert_allclose(jax.jit(initial.normalise)(3 * jnp.eye(2)), np.eye(2))


def test_normalise_refuses_a_token_at_the_origin():
    with pytest.raises(InputError, match="x has a token at the origin"):
        initial.normalise(jnp.array([[1.0, 0.0], [0.0, 0.0]]))


def test_normalise_refuses_what_is_not_finite():
    with pytest.raises(InputError, match=r"x must be finite.*\(1, 0\)"):
        initial.normalise(jnp.array([[1.0, 0.0], [jnp.nan, 1.0]]))


def test_starts_are_known_by_their_names():
    assert set(initial.STARTS) == {*RANDOM, "circle", "angles"}
    assert all(getattr(initial, name) is start for name, start in initial.STARTS.items())


def test_a_reduced_start_has_min_of_n_and_d_coordinates():
    assert initial.sphere(5, 1_000_000, key=0, reduced=True).shape == (5, 5)
    assert initial.sphere(5, 3, key=0, reduced=True).shape == (5, 3)
    x = initial.sphere(5, 7, key=0, reduced=True, batch=(2,), dtype=jnp.float32)
    assert x.shape == (2, 5, 5)
    assert x.dtype == jnp.float32
    np.testing.assert_allclose(np.linalg.norm(x, axis=-1), 1, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("d", [4, 9])
def test_overlaps_of_a_reduced_start_are_distributed_like_those_of_a_full_one(d):
    """Each pair, tokens early and late in the triangle alike; and all three of a triple."""
    reduced, full = (
        np.asarray(initial.sphere(3, d, key=0, batch=4000, reduced=r)) for r in (True, False)
    )
    gram = [np.einsum("bid,bjd->bij", x, x) for x in (reduced, full)]
    for i, j in ((0, 1), (0, 2), (1, 2)):
        assert stats.ks_2samp(gram[0][:, i, j], gram[1][:, i, j]).pvalue > 1e-3
    triples = [g[:, 0, 1] * g[:, 1, 2] * g[:, 0, 2] for g in gram]
    assert stats.ks_2samp(*triples).pvalue > 1e-3
