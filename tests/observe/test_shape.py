import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.distance import pdist

from attnflow.errors import InputError
from attnflow.observe import diameter, effective_rank, order_parameter, span_dimension
from attnflow.observe.shape import BLOCK


@pytest.mark.parametrize("n", [2, BLOCK + 3])
def test_the_diameter_is_the_largest_distance(n, rng):
    x = rng.normal(size=(n, 3))
    assert float(diameter(x)) == pytest.approx(pdist(x).max(), rel=1e-14)
    O = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    assert float(diameter(x[::-1] @ O + 5)) == pytest.approx(float(diameter(x)), rel=1e-13)


def test_the_diameter_of_close_tokens_has_full_precision():
    """Differences are squared, and not inner products subtracted."""
    x = np.array([[1.0, 0.0], [1.0, 1e-12]])
    assert float(diameter(x)) == pytest.approx(1e-12, rel=1e-12)
    assert float(diameter(np.ones((4, 2), int))) == 0


def test_kuramotos_order_parameter(rng):
    theta = rng.uniform(0, 2 * np.pi, size=(4, 7))
    x = np.stack([np.cos(theta), np.sin(theta)], axis=-1)
    m = rng.uniform(0.1, 3, size=7)
    np.testing.assert_allclose(order_parameter(x), np.abs(np.exp(1j * theta).mean(axis=1)))
    want = np.abs((m * np.exp(1j * theta[0])).sum()) / m.sum()
    np.testing.assert_allclose(order_parameter(x[0], m), want)
    assert float(order_parameter(np.tile([0.0, 1.0], (5, 1)))) == 1


def test_the_effective_rank_is_a_perplexity(rng):
    U, O = (np.linalg.qr(rng.normal(size=(n, 3)))[0] for n in (6, 4))
    s = np.array([5.0, 2.0, 1.0])
    p = s / 8
    want = np.prod(p**-p)
    np.testing.assert_allclose(effective_rank(U * s @ O.T), want, rtol=1e-12)
    equal = effective_rank(np.stack([U @ O.T, U[:, :1] @ O[:, :1].T]))
    np.testing.assert_allclose(equal, [3, 1], rtol=1e-8)
    assert float(effective_rank(np.zeros((3, 2)))) == 0


def test_the_span_counts_singular_values(rng):
    U, O = (np.linalg.qr(rng.normal(size=(n, 3)))[0] for n in (6, 4))
    x = (U * [1, 1e-3, 1e-12]) @ O.T
    assert int(span_dimension(x)) == 2
    assert int(span_dimension(x, tol=1e-2)) == 1
    assert int(span_dimension(x, tol=1e-13)) == 3
    assert span_dimension(np.stack([x, 0 * x])).tolist() == [2, 0]


@pytest.mark.parametrize("fn", [diameter, order_parameter, effective_rank])
def test_float32_stays_float32(fn):
    x = jnp.asarray(np.random.default_rng(0).normal(size=(5, 3)), jnp.float32)
    assert fn(x).dtype == jnp.float32
    assert jax.jit(fn)(x).shape == ()


def test_tokens_are_a_matrix(untyped):
    with pytest.raises(InputError, match=r"x must have shape \(n, d\)"):
        diameter(np.ones(3))
