import itertools

import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InputError
from attnflow.theory import in_hemisphere, wendel


def within(fraction, probability, draws, sigmas=4):
    return abs(fraction - probability) <= sigmas * np.sqrt(probability * (1 - probability) / draws)


def by_facets(x):
    """d = 3, general position: if any w works, one perpendicular to two tokens almost does."""
    for i, j in itertools.combinations(range(len(x)), 2):
        others = np.delete(x, [i, j], axis=0) @ np.cross(x[i], x[j])
        if np.all(others > 0) or np.all(others < 0):
            return True
    return False


def test_small_cases_by_hand():
    assert wendel(1, 1) == 1
    assert wendel(3, 1) == 2 / 8
    assert [wendel(n, 2) for n in range(1, 9)] == [n / 2 ** (n - 1) for n in range(1, 9)]
    assert wendel(6, 3) == (1 + 5 + 10) / 32
    assert all(wendel(n, 7) == 1 for n in range(1, 8))
    assert wendel(14, 7) == 0.5


def test_thousands_of_tokens():
    assert wendel(4000, 2000) == 0.5
    assert wendel(4001, 2000) == pytest.approx(0.5 - 0.5 / np.sqrt(2000 * np.pi), abs=1e-6)
    assert wendel(5000, 3) == 0
    assert wendel(900, 2) == pytest.approx(900 * 2.0**-899, rel=1e-15)


@pytest.mark.parametrize("n", [4, 7])
def test_the_frequency_on_the_circle(n):
    x = np.random.default_rng(n).normal(size=(100_000, n, 2))
    assert within(in_hemisphere(x).mean(), wendel(n, 2), len(x))


def test_the_frequency_on_the_sphere():
    x = np.random.default_rng(1).normal(size=(1000, 7, 3))
    found = in_hemisphere(x)
    assert within(found.mean(), wendel(7, 3), len(x))
    assert found.tolist() == [by_facets(one) for one in x]


@pytest.mark.slow
def test_the_frequency_in_five_dimensions():
    x = np.random.default_rng(2).normal(size=(20_000, 12, 5))
    assert within(in_hemisphere(x).mean(), wendel(12, 5), len(x))


def test_circle_and_linear_program_agree():
    """Tokens of the circle laid on a great circle of S³, where the linear program decides."""
    x = np.random.default_rng(3).normal(size=(200, 5, 2))
    plane = np.linalg.qr(np.random.default_rng(4).normal(size=(4, 4)))[0][:2]
    flat = in_hemisphere(x)
    assert 0.2 < flat.mean() < 0.5
    assert flat.tolist() == in_hemisphere(x @ plane).tolist()


def test_order_rotation_and_length_do_not_matter(rng):
    x = rng.normal(size=(50, 6, 3))
    O = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    moved = rng.uniform(0.01, 9, size=(50, 6, 1)) * x[:, rng.permutation(6)] @ O
    assert in_hemisphere(moved).tolist() == in_hemisphere(x).tolist()


@pytest.mark.parametrize("d", [1, 2, 3, 8])
def test_boundaries_are_not_in_an_open_hemisphere(d):
    assert in_hemisphere(np.eye(d))
    assert in_hemisphere(af.initial.hemisphere(n=30, d=d, key=0))
    assert not in_hemisphere(np.concatenate([np.eye(d), -np.eye(d)[:1]]))
    simplex = np.concatenate([np.eye(d), -np.ones((1, d))])
    assert not in_hemisphere(simplex)
    assert in_hemisphere(simplex[:-1])


@pytest.mark.parametrize("d", [2, 3])
def test_a_hair_inside_and_a_hair_outside(d):
    """Two tokens almost opposite, the third on the side where they leave more or less than π."""
    for hair, inside in ((1e-6, True), (-1e-6, False)):
        x = np.zeros((3, d))
        x[:, :2] = [[1, 0], [-1, hair], [0, 1]]
        assert bool(in_hemisphere(x)) == inside


def test_batches_have_their_shape():
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 3))
    assert in_hemisphere(x).shape == (2, 3)
    assert in_hemisphere(x[..., :2]).shape == (2, 3)


def test_bad_input_is_refused(untyped):
    with pytest.raises(InputError, match="token at the origin"):
        in_hemisphere(np.zeros((2, 2)))
    with pytest.raises(InputError, match="x must be finite"):
        in_hemisphere(np.full((2, 3), np.nan))
    with pytest.raises(InputError, match=r"x must have shape \(\*batch, n, d\)"):
        in_hemisphere(np.ones(3))
    with pytest.raises(InputError, match="n must be a whole number"):
        wendel(0, 2)
    with pytest.raises(InputError, match="d must be a whole number"):
        wendel(3, 0)
