import jax
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from attnflow.observe import cluster_count, clusters, pairs_clustered

examples = settings(deadline=None, max_examples=30, derandomize=True)


@examples
@given(st.integers(0, 10_000), st.floats(0.01, 0.8))
def test_as_many_clusters_as_on_the_host(key, tol):
    x = np.random.default_rng(key).normal(size=(12, 2))
    assert int(cluster_count(x, tol)) == clusters(x, tol).count


def test_a_chain_in_any_order_is_one_cluster(rng):
    chain = np.arange(40.0)[rng.permutation(40), None]
    assert int(cluster_count(chain, 1.0)) == 1
    assert int(cluster_count(chain, 0.99)) == 40


def test_under_vmap(rng):
    x = rng.normal(size=(5, 9, 3))
    found = jax.vmap(lambda x: cluster_count(x, 0.7))(x)
    assert found.tolist() == [clusters(each, 0.7).count for each in x]


def test_pairs_by_hand(rng):
    x = rng.normal(size=(7, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    pairs = [(i, j) for i in range(7) for j in range(7) if i != j]
    expected = np.mean([x[i] @ x[j] >= 1 - 0.6 for i, j in pairs])
    assert 0 < expected < 1
    assert np.isclose(pairs_clustered(x, 0.6), expected)


def test_pairs_of_one_token():
    assert pairs_clustered(np.array([[1.0, 0.0]])) == 0
