import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from attnflow.errors import InputError
from attnflow.observe import hull, hull_history

examples = settings(deadline=None, max_examples=15, derandomize=True)
keys = st.integers(0, 2**32 - 1)


def cloud(key, n=14, d=3):
    return np.random.default_rng(key).normal(size=(n, d))


def rotation(key, d):
    return np.linalg.qr(cloud(key, d, d))[0]


def is_extreme(x, i):
    """Whether x_i is no convex combination of the other tokens, by linear programming."""
    others = np.delete(x, i, axis=0).T
    equal = np.vstack([others, np.ones(others.shape[1])])
    found = linprog(np.zeros(others.shape[1]), A_eq=equal, b_eq=np.append(x[i], 1))
    return found.status == 2


def cube(d):
    return np.array(list(itertools.product([0.0, 1.0], repeat=d)))


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_the_cube(d):
    x = np.vstack([np.full((1, d), 0.5), cube(d)])
    found = hull(x)
    assert found.vertices.tolist() == list(range(1, 2**d + 1))
    assert found.dimension == d
    assert found.volume == pytest.approx(1)
    np.testing.assert_array_equal(found.points, cube(d))
    np.testing.assert_allclose(found.depth(x[:1]), [0.5])
    np.testing.assert_allclose(found.depth(cube(d)), 0, atol=1e-14)
    np.testing.assert_allclose(found.depth(np.full((1, d), 1.25)), [-0.25])
    np.testing.assert_allclose(found.distance(x[:1]), [0.5 * math.sqrt(d)])


@pytest.mark.parametrize("d", [2, 3, 5, 8])
def test_the_simplex(d):
    x = np.vstack([np.zeros((1, d)), np.eye(d)])
    found = hull(x)
    assert found.vertices.tolist() == list(range(d + 1))
    assert found.volume == pytest.approx(1 / math.factorial(d))
    assert {frozenset(f) for f in found.facets} == {
        frozenset(range(d + 1)) - {i} for i in range(d + 1)
    }
    centre = x.mean(axis=0, keepdims=True)
    assert found.depth(centre)[0] == pytest.approx(
        min(1 / (d + 1), (1 - d / (d + 1)) / math.sqrt(d))
    )


def test_the_cross_polytope_in_eight_dimensions():
    found = hull(np.vstack([np.eye(8), -np.eye(8)]))
    assert len(found.vertices) == 16
    assert len(found.facets) == 2**8
    assert found.volume == pytest.approx(2**8 / math.factorial(8))
    np.testing.assert_allclose(found.depth(np.zeros((1, 8))), [1 / math.sqrt(8)])


@given(key=keys, size=st.sampled_from([(6, 2), (14, 3), (12, 4)]))
@examples
def test_extreme_points_by_linear_programming(key, size):
    x = cloud(key, *size)
    want = [i for i in range(len(x)) if is_extreme(x, i)]
    assert hull(x).vertices.tolist() == want


@given(key=keys)
@examples
def test_depth_against_the_support_function(key):
    """The depth of an inner point is the least distance to a supporting plane."""
    x = cloud(key, 12, 2)
    found = hull(x)
    y = np.random.default_rng(key).dirichlet(np.ones(12), size=5) @ x
    angles = np.linspace(0, 2 * np.pi, 20_001)
    u = np.stack([np.cos(angles), np.sin(angles)])
    gaps = (x @ u).max(axis=0) - y @ u
    np.testing.assert_allclose(found.depth(y), gaps.min(axis=1), atol=1e-3)
    assert np.all(found.depth(y) > 0)
    outside = found.depth(y + 100)
    nearest = ((x @ u).max(axis=0) - (y + 100) @ u).min(axis=1)
    assert np.all((nearest - 1e-3 <= outside) & (outside < 0)), "facets are some of these planes"


@pytest.mark.parametrize("d", [1, 2, 3])
def test_flat_sets_have_their_hull_in_their_span(d):
    """A cube with its centre in an affine subspace of R^5."""
    c = np.vstack([cube(d), np.full((1, d), 0.5)])
    frame = rotation(0, 5)
    x = 3 + 2 * c @ frame[:d]
    found = hull(x)
    assert found.dimension == d
    assert found.vertices.tolist() == list(range(2**d))
    assert found.volume == pytest.approx(2**d)
    np.testing.assert_allclose(found.depth(x[-1:]), [1.0])
    above = x[-1:] + 0.3 * frame[d:][:1]
    np.testing.assert_allclose(found.depth(above), [-0.3])


def test_a_thin_cloud_is_not_flat():
    x = cube(3) * [1, 1, 1e-6]
    found = hull(x)
    assert found.dimension == 3
    assert found.volume == pytest.approx(1e-6)
    assert len(found.vertices) == 8
    assert hull(x, tol=1e-5).dimension == 2


@pytest.mark.parametrize("shift", [0.0, 1.0, 1e6])
def test_one_place_is_a_point(shift):
    x = np.full((4, 3), shift) * (1 + np.array([[0.0], [1e-16], [0], [-2e-16]]))
    found = hull(x)
    assert found.vertices.tolist() == [0]
    assert (found.dimension, found.volume, found.facets) == (0, 0.0, ())
    away = x[:1] + np.array([[0, 3, 4]])
    np.testing.assert_allclose(found.depth(away), [-5])
    np.testing.assert_allclose(found.distance(away), [5])


def test_numbers_on_a_line():
    found = hull(np.array([[1.0], [5.0], [-2.0], [5.0], [0.0]]))
    assert found.vertices.tolist() == [1, 2]
    assert found.volume == pytest.approx(7)
    assert found.facets == ((0,), (1,))
    np.testing.assert_allclose(
        found.depth(np.array([[0.0], [5.0], [6.0], [-4.0]])), [2, 0, -1, -2], atol=1e-14
    )


def test_clustered_tokens_are_one_vertex(rng):
    """Of tokens at a vertex only the first counts, whatever the tolerance they share it to."""
    corners = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    exact = corners[rng.permutation(np.repeat(np.arange(4), 5))]
    found = hull(exact)
    first = sorted(int(np.flatnonzero((exact == c).all(axis=1))[0]) for c in corners)
    assert found.vertices.tolist() == first
    assert found.volume == pytest.approx(1 / 6)
    near = exact + rng.uniform(-1e-4, 1e-4, size=exact.shape)
    assert hull(near, tol=1e-3).vertices.tolist() == first
    assert len(hull(near).vertices) > 4


@pytest.mark.parametrize("noise", [0.0, 1e-15, 1e-11])
@pytest.mark.parametrize("d", [2, 3, 5])
def test_tokens_on_faces_are_no_vertices(d, noise):
    """Of a turned cube, with noise that a run leaves: Qhull alone counts almost all of them."""
    rng = np.random.default_rng(d)
    corners = cube(d)
    ends = np.array([rng.choice(2**d, 2, replace=False) for _ in range(40)])
    share = rng.uniform(0.05, 0.95, size=(40, 1))
    between = share * corners[ends[:, 0]] + (1 - share) * corners[ends[:, 1]]
    x = np.vstack([between, corners]) @ rotation(1, d)
    found = hull(x + noise * rng.normal(size=x.shape))
    assert found.vertices.tolist() == list(range(40, 40 + 2**d))
    assert found.volume == pytest.approx(1)
    assert {i for facet in found.facets for i in facet} == set(range(2**d))
    np.testing.assert_allclose(found.depth(x[:40]), hull(x[40:]).depth(x[:40]), atol=1e-9)


@given(key=keys, tol=st.sampled_from([1e-9, 1e-6, 1e-3, 1e-2]), spread=st.floats(-10, -2))
@examples
def test_every_token_is_inside_up_to_the_tolerance(key, tol, spread):
    """Also where clusters are about as wide as the tolerance."""
    rng = np.random.default_rng(key)
    x = cloud(key, 6, 4)[rng.integers(0, 6, size=40)] + 10**spread * rng.normal(size=(40, 4))
    found = hull(x, tol)
    assert found.depth(x).min() > -4 * tol * np.linalg.norm(x - x.mean(axis=0), axis=1).max()


@pytest.mark.parametrize("key", range(3))
def test_no_corner_is_lost_to_a_wide_tolerance(key):
    """Qhull alone, told of errors of 1e-2, leaves tokens five times as far outside."""
    x = cloud(key, 50, 6)
    size = np.linalg.norm(x - x.mean(axis=0), axis=1).max()
    assert hull(x, tol=1e-2).depth(x).min() > -0.02 * size


@given(key=keys)
@examples
def test_order_rotation_and_scale(key):
    x, p = cloud(key), np.random.default_rng(key).permutation(14)
    found, moved = hull(x), hull(5 * x[p] @ rotation(key, 3) + 7)
    assert sorted(p[moved.vertices]) == found.vertices.tolist()
    assert moved.volume == pytest.approx(125 * found.volume)
    y = cloud(key + 1)
    moved_y = 5 * y @ rotation(key, 3) + 7
    np.testing.assert_allclose(moved.depth(moved_y), 5 * found.depth(y), atol=1e-12)
    np.testing.assert_allclose(moved.distance(moved_y), 5 * found.distance(y), atol=1e-12)


def test_facets_are_the_boundary():
    """The facets of a hull in the plane form one closed polygon of the right length."""
    angles = 2 * np.pi * np.arange(12) / 12
    found = hull(np.stack([np.cos(angles), np.sin(angles)], axis=1))
    ends = found.points[np.array(found.facets)]
    assert np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1).sum() == pytest.approx(
        24 * math.sin(math.pi / 12)
    )
    assert sorted(i for facet in found.facets for i in facet) == sorted(2 * list(range(12)))


def test_a_history_counts_in_one_dimension():
    square = cube(2)
    flat = square * [1, 0]
    history = hull_history(np.stack([2 * square, square, flat, 0 * square]))
    np.testing.assert_allclose(history.volumes, [4, 1, 0, 0])
    assert history.counts.tolist() == [4, 4, 2, 1]


def test_many_dimensions_are_refused_and_few_tokens_are_not():
    with pytest.raises(InputError, match="spans 9 dimensions"):
        hull(cloud(0, 20, 9))
    assert hull(cloud(0, 5, 100)).dimension == 4


def test_bad_input(untyped):
    with pytest.raises(InputError, match="x must be finite"):
        hull(np.array([[0.0], [np.nan]]))
    with pytest.raises(InputError, match="tol must be a finite number above 0"):
        hull(np.eye(2), tol=0.0)
    with pytest.raises(InputError, match=r"y must have shape \(k, 2\)"):
        hull(np.eye(2)).depth(np.ones(2))
