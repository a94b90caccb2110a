from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from attnflow import weights
from attnflow.errors import InputError

N = 4000
RANDOM = {
    "ginibre": partial(weights.ginibre, 3),
    "wigner": partial(weights.wigner, 3),
    "goe": partial(weights.goe, 3),
    "wishart": partial(weights.wishart, 3),
    "spectrum": partial(weights.spectrum, [3.0, 1.0, -2.0]),
    "spectrum, not symmetric": partial(weights.spectrum, [3.0, 1j, -1j], symmetric=False),
    "paranormal": partial(weights.paranormal, 3, 1),
    "perron": partial(weights.perron, 3),
}
SYMMETRIC = [RANDOM[name] for name in ("wigner", "goe", "wishart", "spectrum")]
every_random = pytest.mark.parametrize("family", RANDOM.values(), ids=RANDOM.keys())


def within(sample, mean, variance):
    """The sample's mean is the law's mean, to five standard errors in every entry."""
    error = np.abs(np.mean(sample, axis=0) - mean)
    assert np.all(error <= 5 * np.sqrt(variance / len(sample))), error


def gap(found, wanted):
    """The largest distance between two lists of eigenvalues, matched as well as can be."""
    distance = np.abs(np.subtract.outer(np.asarray(found), np.asarray(wanted)))
    return distance[linear_sum_assignment(distance)].max()


def sample(family):
    return np.asarray(family(key=0, heads=N))


@every_random
def test_one_matrix_or_a_stack_of_different_ones(family):
    assert family(key=0).shape == (3, 3)
    stack = np.asarray(jax.jit(lambda: family(key=0, heads=2))())
    assert stack.shape == (2, 3, 3)
    assert np.abs(stack[0] - stack[1]).max() > 1e-3


@every_random
def test_the_same_key_is_the_same_draw(family):
    V = family(key=7)
    np.testing.assert_array_equal(V, family(key=7))
    np.testing.assert_array_equal(V, family(key=jax.random.key(7)))
    assert np.abs(V - family(key=8)).max() > 1e-3


@every_random
def test_a_key_is_needed(family):
    with pytest.raises(TypeError, match="key"):
        family()


@every_random
def test_traceable_with_a_key(family):
    key = jax.random.key(3)
    traced = jax.jit(lambda k: family(key=k))(key)
    np.testing.assert_allclose(traced, family(key=key), rtol=1e-10, atol=1e-12)


@every_random
@pytest.mark.parametrize("heads", [0, -1])
def test_heads_are_a_count(family, heads):
    with pytest.raises(InputError, match="heads must be a whole number"):
        family(key=0, heads=heads)


@pytest.mark.parametrize("name", ["ginibre", "wigner", "goe", "wishart", "perron"])
def test_d_is_a_count(name):
    with pytest.raises(InputError, match=r"^d must be a whole number"):
        weights.FAMILIES[name](0, key=0)


@pytest.mark.parametrize("family", SYMMETRIC)
def test_symmetric(family):
    V = family(key=0)
    np.testing.assert_allclose(V, V.T, rtol=1e-14, atol=1e-15)


def test_identity():
    np.testing.assert_array_equal(weights.identity(3), np.eye(3))
    with pytest.raises(InputError, match=r"^d must be a whole number"):
        weights.identity(0)


def test_ginibre_entries_are_independent_gaussians():
    G = sample(partial(RANDOM["ginibre"], scale=2))
    within(G, 0, 4)
    within(G**2, 4, 2 * 16)
    within(G**4, 3 * 16, 96 * 256)
    within(G * np.swapaxes(G, -1, -2) * (1 - np.eye(3)), 0, 16)
    within(G[:-1] * G[1:], 0, 16)


def test_a_bias_is_a_gaussian_vector():
    b = weights.bias(3, heads=20_000, scale=2, key=0)
    assert b.shape == (20_000, 3)
    within(b, 0, 4)
    within(b**2, 4, 2 * 16)
    assert weights.bias(3, key=0).shape == (3,)
    with pytest.raises(InputError, match="d must be a whole number"):
        weights.bias(0, key=0)


def test_ginibre_may_be_rectangular():
    shape = jax.eval_shape(lambda: weights.ginibre(3, rows=2, heads=4, key=0)).shape
    assert shape == (4, 2, 3)
    with pytest.raises(InputError, match="rows must be a whole number"):
        weights.ginibre(3, rows=0, key=0)


def test_wigner_has_one_variance():
    V = sample(partial(RANDOM["wigner"], scale=2))
    within(V, 0, 4)
    within(V**2, 4, 2 * 16)
    within(V[:, 0, 1] * V[:, 0, 2], 0, 16)


def test_goe_has_twice_the_variance_on_the_diagonal():
    V = sample(partial(RANDOM["goe"], scale=2))
    variance = 4 * (1 + np.eye(3))
    within(V, 0, variance)
    within(V**2, variance, 2 * variance**2)


def test_goe_looks_alike_from_every_direction():
    u = np.array([1.0, 2.0, -2.0]) / 3
    seen = np.einsum("i,nij,j->n", u, sample(RANDOM["goe"]), u)
    within(seen**2, 2, 8)


@pytest.mark.parametrize(("scale", "mean"), [(None, 1.0), (2, 6.0)])
def test_wishart_is_positive_definite(scale, mean):
    V = sample(partial(RANDOM["wishart"], scale=scale))
    c = mean / 3
    within(V, mean * np.eye(3), c**2 * 3 * (1 + np.eye(3)))
    assert np.linalg.eigvalsh(V).min() > 0


def test_perron_entries_are_uniform_and_positive():
    V = sample(partial(RANDOM["perron"], scale=2))
    assert V.min() > 0
    assert 1.99 < V.max() < 2
    within(V, 1, 4 / 12)
    within(V**2, 4 / 3, 16 * (1 / 5 - 1 / 9))
    eigenvalues = np.linalg.eigvals(V[:100])
    leading = np.take_along_axis(
        eigenvalues, np.abs(eigenvalues).argmax(axis=1, keepdims=True), axis=1
    )
    assert np.all(leading.real > 0)
    assert np.all(leading.imag == 0)


@pytest.mark.parametrize("scale", [-1.0, 0, np.nan, np.inf])
def test_the_scale_of_positive_entries_is_positive(scale):
    with pytest.raises(InputError, match=r"^scale must be a finite number above 0"):
        weights.perron(3, scale=scale, key=0)


def test_perron_entries_are_positive_in_single_precision():
    seed_of_a_draw_with_a_zero = 4
    with jax.enable_x64(False):
        V = weights.perron(600, key=seed_of_a_draw_with_a_zero)
        assert V.dtype == np.float32
        assert V.min() > 0


@st.composite
def spectra(draw):
    """Four eigenvalues: real ones, and complex ones in pairs."""
    number = st.integers(-20, 20).map(lambda i: i / 8)
    pairs = draw(st.lists(st.builds(complex, number, number.filter(bool)), max_size=2))
    room = 4 - 2 * len(pairs)
    reals = draw(st.lists(number, min_size=room, max_size=room))
    values = [*reals, *pairs, *(z.conjugate() for z in pairs)]
    return draw(st.permutations(values))


@given(values=spectra(), key=st.integers(0, 100))
@settings(deadline=None, max_examples=6, derandomize=True)
def test_a_spectrum_is_as_given(values, key):
    for V in np.asarray(weights.spectrum(values, symmetric=False, key=key, heads=2)):
        assert gap(np.linalg.eigvals(V), values) < 1e-7


@given(values=st.lists(st.integers(-9, 9), min_size=3, max_size=3), key=st.integers(0, 100))
@settings(deadline=None, max_examples=6, derandomize=True)
def test_a_symmetric_spectrum_is_as_given(values, key):
    V = weights.spectrum(np.array(values, float), key=key)
    np.testing.assert_array_equal(V, V.T)
    np.testing.assert_allclose(np.linalg.eigvalsh(V), np.sort(values), atol=1e-13)


def test_a_symmetric_spectrum_favours_no_direction():
    V = sample(partial(weights.spectrum, [2.0, 1.0, 0.0]))
    # E[(Σ λ_k u_k²)²] for u uniform on S²: (2 Σλ² + (Σλ)²)/15; off the diagonal by isotropy
    within(V, np.eye(3), 1)
    within(V[:, [0, 1, 2], [0, 1, 2]] ** 2, (2 * 5 + 9) / 15, 4)
    within(V[:, [0, 0, 1], [1, 2, 2]] ** 2, 2 / 10, 1)


def test_condition_one_is_a_normal_matrix():
    V = weights.spectrum([1.0, 0.5 + 1j, 0.5 - 1j], symmetric=False, condition=1, key=0)
    np.testing.assert_allclose(V @ V.T, V.T @ V, atol=1e-14)


def test_condition_bounds_the_norm_and_is_felt():
    norms = [
        np.linalg.norm(weights.spectrum([1.0, -1.0, 0.5], symmetric=False, condition=c, key=s), 2)
        for c in (4, 100)
        for s in range(5)
    ]
    assert min(norms) > 1.01
    assert max(norms[:5]) <= 4 * (1 + 1e-12)
    assert 4 < max(norms) <= 100


@pytest.mark.parametrize(
    "values", [[1j], [1 + 1j, 2 + 1j], [1j, 1j, -1j], [1j, -1j, -1j], [1j, -2j], [1 + 1j, 2 - 1j]]
)
def test_complex_eigenvalues_come_in_pairs(values):
    with pytest.raises(InputError, match="eigenvalues must be real or come in conjugate pairs"):
        weights.spectrum(values, symmetric=False, key=0)


@pytest.mark.parametrize("values", [[], [1.0, np.nan], [np.inf], np.empty(0)])
def test_eigenvalues_are_finite_and_some(values):
    with pytest.raises(InputError, match="eigenvalues must be a non-empty list of finite"):
        weights.spectrum(values, key=0)


def test_eigenvalues_are_a_list(untyped):
    with pytest.raises(InputError, match="eigenvalues must be a non-empty list"):
        weights.spectrum(np.ones((2, 2)), key=0)


def test_symmetric_matrices_have_real_eigenvalues():
    with pytest.raises(InputError, match="eigenvalues of a symmetric matrix must be real"):
        weights.spectrum([1j, -1j], key=0)


@pytest.mark.parametrize(
    "family", [partial(weights.spectrum, [1.0, 2.0], symmetric=False), RANDOM["paranormal"]]
)
@pytest.mark.parametrize("bad", [0.5, -1, np.nan, np.inf])
def test_a_condition_number_is_at_least_one(family, bad):
    with pytest.raises(InputError, match="condition must be finite and at least 1"):
        family(condition=bad, key=0)


@pytest.mark.parametrize(("d", "m", "leading", "radius"), [(3, 1, 1.0, 0.5), (6, 2, 2, 1.9)])
def test_paranormal_is_leading_on_a_subspace_and_less_on_the_rest(d, m, leading, radius):
    draw = partial(weights.paranormal, d, m, leading=leading, radius=radius, heads=2)
    for V in np.asarray(jax.jit(lambda: draw(key=0))()):
        singular = np.linalg.svd(V - leading * np.eye(d), compute_uv=False)
        assert singular[-m:].max() < 1e-13
        assert singular[-m - 1] > 1e-6
        size = np.sort(np.abs(np.linalg.eigvals(V)))
        np.testing.assert_allclose(size[-m:], leading, rtol=1e-12)
        np.testing.assert_allclose(size[-m - 1], radius, rtol=1e-12)


def test_paranormal_with_radius_zero_is_a_projection():
    V = weights.paranormal(3, 1, radius=0, key=0)
    np.testing.assert_allclose(V @ V, V, atol=1e-14)
    np.testing.assert_allclose(np.trace(V), 1, atol=1e-14)


@pytest.mark.parametrize("m", [3, 4])
def test_multiplicity_is_below_d(m):
    with pytest.raises(InputError, match="multiplicity must be below d = 3"):
        weights.paranormal(3, m, key=0)


@pytest.mark.parametrize(("d", "m", "name"), [(0, 1, "d"), (3, 0, "multiplicity")])
def test_paranormal_sizes_are_counts(d, m, name):
    with pytest.raises(InputError, match=f"^{name} must be a whole number"):
        weights.paranormal(d, m, key=0)


@pytest.mark.parametrize("radius", [-0.1, 1.0, 2.0, np.nan])
def test_radius_is_below_leading(radius):
    with pytest.raises(InputError, match=r"radius must lie between 0 and leading = 1\.0"):
        weights.paranormal(3, 1, radius=radius, key=0)


@pytest.mark.parametrize("leading", [np.nan, np.inf])
def test_leading_is_finite(leading):
    with pytest.raises(InputError, match="leading must be finite"):
        weights.paranormal(3, 1, leading=leading, key=0)


def test_families_are_known_by_their_names():
    assert set(weights.FAMILIES) == {name.split(",")[0] for name in RANDOM} | {"identity", "bias"}
    assert all(getattr(weights, name) is family for name, family in weights.FAMILIES.items())


def test_entries_are_floats_of_the_default_precision():
    assert {family(key=0).dtype for family in RANDOM.values()} == {jnp.dtype(float)}
