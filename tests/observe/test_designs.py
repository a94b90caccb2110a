import itertools

import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InputError
from attnflow.observe import design_strength, inner_products

phi = (1 + np.sqrt(5)) / 2


def signs(v):
    """All choices of signs of the entries that are not 0."""
    choices = [(1, -1) if entry else (1,) for entry in v]
    return [np.multiply(v, s) for s in itertools.product(*choices)]


def unit(points):
    x = np.array(points, float)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def even_permutations(v):
    for p in itertools.permutations(range(len(v))):
        if np.linalg.det(np.eye(len(v))[list(p)]) > 0:
            yield [v[i] for i in p]


def cross_polytope(d):
    return np.vstack([np.eye(d), -np.eye(d)])


def simplex(d):
    x = np.eye(d + 1) - 1 / (d + 1)
    return unit(x @ np.linalg.svd(x)[2][:d].T)


def icosahedron():
    return unit([s for k in range(3) for s in signs(np.roll([0, 1, phi], k))])


def cell_24():
    pairs = itertools.combinations(range(4), 2)
    return unit([s for i, j in pairs for s in signs(np.eye(4)[i] + np.eye(4)[j])])


def cell_600():
    halves = signs([0.5] * 4)
    golden = [s for v in even_permutations([phi, 1, 1 / phi, 0]) for s in signs(v)]
    return unit([*cross_polytope(4), *halves, *golden])


def e8():
    pairs = itertools.combinations(range(8), 2)
    roots = [s for i, j in pairs for s in signs(np.eye(8)[i] + np.eye(8)[j])]
    halves = [s for s in signs([0.5] * 8) if np.prod(s) > 0]
    return unit([*roots, *halves])


KNOWN = {
    "simplex in R^2": (simplex(2), 3, 2),
    "simplex in R^5": (simplex(5), 6, 2),
    "cross-polytope in R^3": (cross_polytope(3), 6, 3),
    "cross-polytope in R^6": (cross_polytope(6), 12, 3),
    "icosahedron": (icosahedron(), 12, 5),
    "24-cell": (cell_24(), 24, 5),
    "600-cell": (cell_600(), 120, 11),
    "E8": (e8(), 240, 7),
    "11-gon": (np.asarray(af.initial.circle(11)), 11, 10),
}


@pytest.mark.parametrize("name", KNOWN)
def test_strengths_of_known_designs(name, rng):
    x, n, strength = KNOWN[name]
    assert len(np.unique(x.round(6), axis=0)) == n
    assert design_strength(x) == strength
    O = np.linalg.qr(rng.normal(size=(x.shape[1],) * 2))[0]
    assert design_strength(x[rng.permutation(n)] @ O) == strength


def test_a_design_averages_polynomials(rng):
    """The mean of a quartic over the icosahedron is that over the sphere, of a sextic it is not."""
    u = unit(rng.normal(size=(1, 3)))[0]
    s = icosahedron() @ u
    assert np.mean(s**4) == pytest.approx(1 / 5, abs=1e-13)
    assert abs(np.mean(s**6) - 1 / 7) > 1e-4


def test_what_is_no_design():
    assert design_strength(np.array([[1.0, 0, 0], [0, 1, 0]])) == 0
    assert design_strength(np.array([[1.0, 0, 0], [-1, 0, 0]])) == 1
    assert design_strength(unit(cross_polytope(3) + np.array([0.01, 0, 0]))) == 0


def test_limits_and_tolerances():
    polygon = np.asarray(af.initial.circle(30))
    assert design_strength(polygon) == 20
    assert design_strength(polygon, limit=40) == 29
    shaken = unit(cross_polytope(3) + 1e-5 * np.array([1.0, 2, 3]) * np.arange(6)[:, None])
    assert design_strength(shaken) == 3
    assert design_strength(shaken, tol=1e-12) == 0


def test_inner_products_of_the_600_cell():
    found = inner_products(cell_600())
    want = sorted([-1, -phi / 2, -0.5, -0.5 / phi, 0, 0.5 / phi, 0.5, phi / 2])
    np.testing.assert_allclose(found.values, want, atol=1e-12)
    assert found.counts.tolist() == [60 * k for k in (1, 12, 20, 12, 30, 12, 20, 12)]


def test_inner_products_are_counted_once_for_each_pair(rng):
    x = rng.normal(size=(9, 3))
    found = inner_products(x)
    assert found.counts.sum() == 36
    every = np.sort([x[i] @ x[j] for i in range(9) for j in range(i)])
    np.testing.assert_allclose(found.values, every, atol=1e-12)
    merged = inner_products(x, tol=100.0)
    np.testing.assert_allclose(merged.values, [every.mean()])
    assert len(inner_products(x[:1]).values) == 0


def test_bad_input():
    with pytest.raises(InputError, match="rows of norm 1, but token 0 has 2"):
        design_strength(2 * np.eye(2))
    with pytest.raises(InputError, match="d ≥ 2"):
        design_strength(np.array([[1.0], [-1.0]]))
    with pytest.raises(InputError, match="tol must be"):
        inner_products(np.eye(2), tol=-1.0)
