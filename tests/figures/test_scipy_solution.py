"""The second solution that figures are compared with, against closed forms and the slow oracle."""

import numpy as np
import pytest
from scipy.linalg import expm

import reference
from attnflow.figures.perspective.fig2 import life_of_two
from attnflow.figures.scipy_solution import (
    Head,
    compare_with_scipy,
    pure,
    rescaled,
    solution,
    sphere,
    weights,
)

TS = [0.0, 0.3, 0.6]


@pytest.fixture
def matrices(rng):
    return rng.normal(size=(2, 3, 3, 3)) / 2


@pytest.mark.parametrize("normalised", [True, False])
def test_weights_are_those_of_the_slow_oracle(rng, matrices, normalised):
    x, m = rng.normal(size=(5, 3)), rng.uniform(0.5, 2.0, 5)
    Q, K, V = matrices[0]
    expected = reference.attention_matrix(x, Q, K, 0.7, m, normalised=normalised)
    np.testing.assert_allclose(weights(x, Head(Q, K, V), 0.7, m, normalised), expected)


def test_fields_are_those_of_the_slow_oracle(rng, matrices):
    x, m = rng.normal(size=(5, 3)), rng.uniform(0.5, 2.0, 5)
    heads = [Head(*three) for three in matrices]
    drift = reference.drift(x, *zip(*matrices, strict=True), 0.7, m)
    np.testing.assert_allclose(pure(*heads, beta=0.7, masses=m)(0.0, x), drift)
    y = x / np.linalg.norm(x, axis=1, keepdims=True)
    moved = reference.drift(y, *zip(*matrices, strict=True), 0.7, m, normalised=False)
    across = moved - np.sum(moved * y, axis=1, keepdims=True) * y
    found = sphere(*heads, beta=0.7, masses=m, normalised=False)(0.0, y)
    np.testing.assert_allclose(found, across, atol=1e-14)


def test_rescaled_tokens_are_tokens_of_pure_attention_seen_through_their_growth(rng, matrices):
    x0, head = rng.normal(size=(5, 3)), Head(*matrices[0])
    x, z = (solution(field(head), x0, TS) for field in (pure, rescaled))
    back = np.stack([one @ expm(-t * matrices[0][2]).T for t, one in zip(TS, x, strict=True)])
    np.testing.assert_allclose(z, back, atol=1e-8)


def test_a_run_that_is_right_is_followed_and_others_are_not(rng):
    x0 = rng.normal(size=(2, 6, 3))
    xs = np.moveaxis(solution(rescaled(beta=2.0), x0, TS), 0, -3)
    assert compare_with_scipy("", rescaled(beta=2.0), TS, xs).value < 1e-7
    assert compare_with_scipy("", rescaled(beta=1.0), TS, xs).value > 0.05
    still = np.repeat(x0[:, None], 3, axis=1)
    assert compare_with_scipy("", rescaled(beta=2.0), TS, still).value == pytest.approx(1.0)


def test_coordinates_are_compared_in_their_own_units(rng):
    """An error of 1e-3 in one coordinate beside another that is 10⁶ times as large."""
    V = np.diag([1.0, 2.0])
    xs = solution(pure(Head(V=V)), rng.normal(size=(6, 2)) * [1.0, 1e6], TS)
    xs[1:, :, 0] *= 1.001
    assert compare_with_scipy("", pure(Head(V=V)), TS, xs, most=1).holds
    assert not compare_with_scipy("", pure(Head(V=V)), TS, xs, most=1, along=np.eye(2)).holds


def test_two_clusters_meet_when_scipy_says():
    """Two tokens of masses 1 and 2 on the circle, as (SA) has them."""
    beta, angle, m = 3.0, 2.0, np.array([1.0, 2.0])
    life = life_of_two(beta, angle, m / m.sum())
    x0 = np.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)]])
    x = solution(sphere(beta=beta, masses=m), x0, [0.0, life - 5.0])[-1]
    apart = np.arccos(x[0] @ x[1])
    assert life_of_two(beta, apart, m / m.sum()) == pytest.approx(5.0, rel=1e-5)
