"""Numbers from an attention matrix: rank, distance to zeros and ones, entropy, leaders."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.observe import attention, boolean_distance, entropy, leaders, rank


def stochastic(rng, *shape):
    P = rng.uniform(size=shape)
    return P / P.sum(axis=-1, keepdims=True)


def test_rank_of_products(rng):
    for r in (1, 2, 4):
        P = rng.normal(size=(3, 6, r)) @ rng.normal(size=(3, r, 6))
        assert rank(P).tolist() == [r] * 3
        noisy = P + 1e-9 * rng.normal(size=P.shape)
        assert rank(noisy).tolist() == [r] * 3
        assert rank(noisy, tol=1e-13).tolist() == [6] * 3
    assert int(rank(np.zeros((3, 3)))) == 0
    assert int(rank(1e-30 * np.eye(3))) == 3


def test_distance_to_zeros_and_ones(rng):
    P = stochastic(rng, 2, 5, 5)
    for got, matrix in zip(boolean_distance(P), P, strict=True):
        assert float(got) == max(min(abs(p), abs(1 - p)) for p in matrix.ravel())
    assert float(boolean_distance(np.eye(4, dtype=int)[[0, 0, 2, 1]])) == 0
    assert float(boolean_distance(np.array([[3.0]]))) == 2


def test_entropy_of_rows(rng):
    P = stochastic(rng, 2, 4, 6)
    np.testing.assert_allclose(entropy(P), -(P * np.log(P)).sum(axis=-1), rtol=1e-13)
    np.testing.assert_allclose(entropy(np.full((3, 8), 1 / 8)), np.log(8), rtol=1e-14)
    np.testing.assert_array_equal(entropy(np.eye(3)), 0)


def test_leaders_by_columns():
    P = np.array([[0.6, 0.4, 0.0], [0.5, 0.3, 0.2], [0.1, 0.45, 0.45]])
    assert leaders(P).tolist() == [True, False, False]
    assert leaders(P, share=0.45).tolist() == [True, True, True]
    assert leaders(P, share=0.46).tolist() == [True, False, False]
    assert leaders(np.stack([P, np.eye(3)])).tolist() == [[True, False, False], [True] * 3]


def test_relabelled_tokens(rng):
    P, p = stochastic(rng, 6, 6), rng.permutation(6)
    moved = P[np.ix_(p, p)]
    np.testing.assert_array_equal(leaders(moved, share=0.3), leaders(P, share=0.3)[p])
    np.testing.assert_allclose(entropy(moved), entropy(P)[p], rtol=1e-14)
    assert float(boolean_distance(moved)) == float(boolean_distance(P))


def test_hard_attention_on_the_line():
    """T2.1 in the small: at a large scale the two ends lead and P is boolean of rank 2."""
    x = np.array([[-3.0], [-1.0], [0.5], [2.0]])
    soft, hard = (attention(af.PureAttention(beta=beta), x) for beta in (0.01, 1000.0))
    assert leaders(hard).tolist() == [True, False, False, True]
    assert int(rank(hard)) == 2
    assert float(boolean_distance(hard)) < 1e-12
    assert float(boolean_distance(soft)) > 0.2
    assert not leaders(soft).any()
    assert np.all(entropy(soft) > 1.3)


def test_several_heads_and_float32(rng):
    x = jnp.asarray(rng.normal(size=(5, 3)), jnp.float32)
    P = attention(af.PureAttention(Q=rng.normal(size=(2, 3, 3))), x)
    assert rank(P).shape == boolean_distance(P).shape == (2,)
    assert leaders(P).shape == entropy(P).shape == (2, 5)
    assert boolean_distance(P).dtype == entropy(P).dtype == jnp.float32


@pytest.mark.parametrize("fn", [rank, boolean_distance, entropy, leaders])
def test_jit(fn, rng):
    P = jnp.asarray(stochastic(rng, 3, 4, 4))
    np.testing.assert_allclose(jax.jit(jax.vmap(fn))(P), fn(P), rtol=1e-13)
