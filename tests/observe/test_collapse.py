import numpy as np
import pytest

from attnflow.errors import InputError
from attnflow.observe import neural_collapse


def simplex(C):
    """C unit vectors of R^C with pairwise cosines −1/(C−1)."""
    return (np.eye(C) - 1 / C) * np.sqrt(C / (C - 1))


@pytest.mark.parametrize("C", [2, 3, 6])
def test_collapsed_tokens(C):
    labels = np.repeat(np.arange(C), 4)
    found = neural_collapse(5 + 2 * simplex(C)[labels], labels)
    assert found.within == pytest.approx(0, abs=1e-28)
    assert found.between == pytest.approx(4)
    assert found.ratio == pytest.approx(0, abs=1e-28)
    assert found.angle_error == pytest.approx(0, abs=1e-14)
    np.testing.assert_allclose(found.cosines[0, 1:], -1 / (C - 1))
    np.testing.assert_allclose(np.diag(found.cosines), 1)


def test_variances_by_hand():
    x = np.array([[0.0, 0], [2, 0], [10, 0], [10, 4], [10, 2], [10, 2]])
    found = neural_collapse(x, np.array([7, 7, -1, -1, -1, -1]))
    assert found.within == pytest.approx((1 + 2) / 2)
    assert found.between == pytest.approx((9**2 + 2**2) / 4)
    assert found.ratio == pytest.approx(1.5 / 21.25)
    assert found.cosines[0, 1] == pytest.approx(-1)


def test_the_variances_add_up(rng):
    """For classes of equal size, to the variance of all tokens."""
    x, labels = rng.normal(size=(30, 4)), np.repeat(np.arange(5), 6)
    found = neural_collapse(x, labels)
    total = np.mean(np.sum((x - x.mean(axis=0)) ** 2, axis=1))
    assert found.within + found.between == pytest.approx(total)


def test_angles_against_all_pairs(rng):
    x, labels = rng.normal(size=(12, 4)), np.arange(12) % 4
    means = np.stack([x[labels == c].mean(axis=0) for c in range(4)])
    means -= means.mean(axis=0)
    worst = 0.0
    found = neural_collapse(x, labels)
    for a in range(4):
        for b in range(a):
            cosine = means[a] @ means[b] / np.linalg.norm(means[a]) / np.linalg.norm(means[b])
            assert found.cosines[a, b] == pytest.approx(cosine)
            worst = max(worst, abs(cosine + 1 / 3))
    assert found.angle_error == pytest.approx(worst)


def test_order_rotation_and_scale(rng):
    x, labels, p = rng.normal(size=(12, 3)), np.arange(12) % 3, rng.permutation(12)
    O = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    found, moved = neural_collapse(x, labels), neural_collapse(3 * x[p] @ O - 1, labels[p] + 5)
    assert moved.within == pytest.approx(9 * found.within)
    assert moved.ratio == pytest.approx(found.ratio)
    np.testing.assert_allclose(moved.cosines, found.cosines, atol=1e-12)


def test_classes_in_one_place():
    """Up to rounding, which has no direction."""
    x = 0.1 + np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1]])
    found = neural_collapse(x, np.array([0, 0, 1, 1]))
    assert found.ratio == np.inf
    assert np.isnan(found.angle_error)
    assert neural_collapse(np.ones((4, 1)), np.array([0, 0, 1, 1])).between == 0


def test_bad_input(untyped):
    with pytest.raises(InputError, match=r"labels must have shape \(3,\)"):
        neural_collapse(np.eye(3), np.array([0, 1]))
    with pytest.raises(InputError, match="at least 2 classes, but all are 4"):
        neural_collapse(np.eye(2), np.array([4, 4]))
    with pytest.raises(InputError, match="x must be finite"):
        neural_collapse(np.array([[np.inf], [0.0]]), np.array([0, 1]))
