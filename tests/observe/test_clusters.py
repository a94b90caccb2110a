import tracemalloc
from importlib import import_module

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnflow.errors import InputError
from attnflow.observe import clusters

module = import_module("attnflow.observe.clusters")
examples = settings(deadline=None, max_examples=20, derandomize=True)
keys = st.integers(0, 2**32 - 1)
sizes = st.sampled_from([(1, 2), (12, 1), (30, 2), (40, 5)])
TOL = 0.3


def tokens(key, n, d):
    return np.random.default_rng(key).normal(size=(n, d))


def partition(labels):
    return {frozenset(np.flatnonzero(labels == c)) for c in np.unique(labels)}


def union_find(x, tol):
    """The partition by single linkage, from all pairs."""
    parent = list(range(len(x)))

    def root(i):
        while parent[i] != i:
            i = parent[i]
        return i

    for i in range(len(x)):
        for j in range(i):
            if np.linalg.norm(x[i] - x[j]) <= tol:
                parent[root(i)] = root(j)
    return partition(np.array([root(i) for i in range(len(x))]))


@pytest.mark.parametrize("limit", [module.MAX_LINKS, 0], ids=["linked", "flooded"])
@given(key=keys, size=sizes, tol=st.floats(0.05, 2))
@examples
def test_clusters_are_those_of_brute_force(limit, key, size, tol):
    x = tokens(key, *size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_LINKS", limit)
        found = clusters(x, tol)
    assert partition(found.labels) == union_find(x, tol)
    assert found.count == len(found.centers) == len(found.masses)
    assert set(found.labels) == set(range(found.count))


@given(key=keys, tol=st.floats(0.05, 2), block=st.sampled_from([1, 2, 7]))
@examples
def test_flooding_in_blocks_loses_no_token(key, tol, block):
    x = tokens(key, 40, 2)
    assert partition(module._flooded(x, tol, block)) == union_find(x, tol)


@given(key=keys, size=sizes)
@examples
def test_order_of_tokens_only_changes_names(key, size):
    rng = np.random.default_rng(key)
    x, m, p = tokens(key, *size), rng.uniform(0.1, 2, size=size[0]), rng.permutation(size[0])
    straight, permuted = clusters(x, TOL, m), clusters(x[p], TOL, m[p])
    assert partition(straight.labels) == partition(permuted.labels[np.argsort(p)])
    np.testing.assert_allclose(straight.masses, permuted.masses, rtol=1e-13)


@given(key=keys, size=sizes, weighted=st.booleans())
@examples
def test_masses_and_centres_are_sums_and_means(key, size, weighted):
    x = tokens(key, *size)
    m = np.random.default_rng(key).uniform(0.1, 2, size=size[0]) if weighted else None
    found = clusters(x, TOL, m)
    m = np.ones(len(x)) if m is None else m
    for c in range(found.count):
        inside = found.labels == c
        assert found.masses[c] == pytest.approx(m[inside].sum(), rel=1e-13)
        mean = np.average(x[inside], axis=0, weights=m[inside])
        np.testing.assert_allclose(found.centers[c], mean, rtol=1e-11, atol=1e-13)


@given(key=keys, size=sizes)
@examples
def test_the_heaviest_comes_first_then_the_earliest(key, size):
    found = clusters(tokens(key, *size), TOL)
    first = [np.flatnonzero(found.labels == c)[0] for c in range(found.count)]
    ranks = list(zip(-found.masses, first, strict=True))
    assert ranks == sorted(ranks)


def test_masses_decide_which_is_first():
    x = np.array([[0.0], [0.0], [1.0]])
    assert clusters(x).labels.tolist() == [0, 0, 1]
    assert clusters(x, masses=np.array([1, 1, 3])).labels.tolist() == [1, 1, 0]


def test_a_cluster_without_mass_is_where_its_tokens_are():
    x = np.array([[0.0], [1.0], [1.0005], [2.0], [2.0005]])
    found = clusters(x, masses=np.array([0, 0, 0, 0, 3]))
    assert found.labels.tolist() == [1, 2, 2, 0, 0]
    assert found.masses.tolist() == [3, 0, 0]
    np.testing.assert_allclose(found.centers[:, 0], [2.0005, 0.0, 1.00025], rtol=1e-15)


def test_a_chain_is_one_cluster():
    chain = 0.9e-3 * np.arange(50.0)[:, None]
    assert clusters(chain).count == 1
    assert clusters(np.delete(chain, 20, axis=0)).masses.tolist() == [29, 20]


def test_the_default_tolerance():
    assert clusters(np.array([[0.0], [0.999e-3]])).count == 1
    assert clusters(np.array([[0.0], [1.001e-3]])).count == 2


def test_a_wider_tolerance_never_splits():
    x = tokens(0, 40, 2)
    counts = [clusters(x, tol).count for tol in (0.01, 0.1, 0.3, 1, 10)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1] == 1


@pytest.mark.parametrize(
    "x", [jnp.eye(3, dtype=jnp.float32), np.eye(3, dtype=int), jnp.eye(3)], ids=["f4", "i8", "f8"]
)
def test_any_real_array_will_do(x):
    found = clusters(x)
    assert found.count == 3
    np.testing.assert_array_equal(found.centers, np.eye(3))


def test_many_tokens_in_one_place_need_little_memory():
    x = 1e-5 * tokens(0, 20_000, 3)
    x[7] += 1
    tracemalloc.start()
    found = clusters(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.masses.tolist() == [19_999, 1]
    assert peak < 2**28


def test_many_tokens_apart_are_quick():
    assert clusters(tokens(0, 20_000, 3)).count == 20_000


@pytest.mark.parametrize("bad", [0, -1.0, np.nan, np.inf])
def test_a_tolerance_is_positive(bad):
    with pytest.raises(InputError, match="tol must be a finite number above 0"):
        clusters(np.eye(2), bad)


def test_tokens_are_finite():
    with pytest.raises(InputError, match=r"x must be finite.*\(1, 0\)"):
        clusters(np.array([[0.0], [np.nan]]))


@pytest.mark.parametrize("shape", [(3,), (2, 3, 3)])
def test_tokens_are_a_matrix(shape, untyped):
    with pytest.raises(InputError, match=r"x must have shape \(n, d\)"):
        clusters(np.ones(shape))


def test_masses_are_as_many_as_tokens(untyped):
    with pytest.raises(InputError, match=r"masses must have shape \(2,\)"):
        clusters(np.eye(2), masses=np.ones(3))
