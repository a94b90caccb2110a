import jax.numpy as jnp
import numpy as np
import pytest

from attnflow.errors import InputError
from attnflow.observe import overlap_histogram, overlaps
from attnflow.observe.shape import BLOCK


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
def test_overlaps_are_inner_products(batch, rng):
    x = rng.normal(size=(*batch, 4, 3))
    got = overlaps(x)
    assert got.shape == (*batch, 4, 4)
    for i in range(4):
        for j in range(4):
            want = (x[..., i, :] * x[..., j, :]).sum(axis=-1)
            np.testing.assert_allclose(got[..., i, j], want, rtol=1e-12, atol=1e-14)


def test_overlaps_of_orthonormal_tokens():
    np.testing.assert_array_equal(overlaps(jnp.eye(3)), np.eye(3))


def test_float32_stays_float32():
    assert overlaps(jnp.eye(3, dtype=jnp.float32)).dtype == jnp.float32


def unit(rng, n, d=3):
    x = rng.normal(size=(n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


@pytest.mark.parametrize("n", [2, 20, BLOCK + 9])
def test_the_histogram_is_that_of_all_pairs(n, rng):
    x = unit(rng, n)
    pairs = (x @ x.T)[np.triu_indices(n, 1)]
    want, edges = np.histogram(pairs, bins=17, range=(-1, 1), density=True)
    density, got_edges = overlap_histogram(x, bins=17)
    np.testing.assert_allclose(got_edges, edges, atol=1e-15)
    np.testing.assert_allclose(density, want, rtol=1e-12)


def test_uniform_tokens_in_space_have_uniform_overlaps(rng):
    """Archimedes: on S² inner products are uniform on [−1, 1]."""
    density, _ = overlap_histogram(unit(rng, 700), bins=10)
    np.testing.assert_allclose(density, 0.5, atol=0.02)
    assert float(density.sum() * 0.2) == pytest.approx(1, rel=1e-12)


def test_rounding_beyond_one_is_in_the_last_bin():
    x = np.array([[1 + 1e-9, 0], [1, 0], [-1, 0], [-1 - 1e-9, 0]])
    density, _ = overlap_histogram(x, bins=4)
    np.testing.assert_allclose(density, [2 * 2 / 3, 0, 0, 2 / 3])


def test_order_and_precision(rng):
    x = unit(rng, 20)
    density, _ = overlap_histogram(x)
    assert density.shape == (50,)
    np.testing.assert_array_equal(overlap_histogram(x[rng.permutation(20)])[0], density)
    single = jnp.asarray(x, jnp.float32)
    assert all(a.dtype == jnp.float32 for a in overlap_histogram(single))


def test_bad_input():
    with pytest.raises(InputError, match="rows of norm 1, but token 1 has 2"):
        overlap_histogram(np.diag([1.0, 2.0]))
    with pytest.raises(InputError, match="at least 2 tokens"):
        overlap_histogram(np.array([[1.0]]))
    with pytest.raises(InputError, match="bins must be a whole number"):
        overlap_histogram(np.eye(2), bins=0)
