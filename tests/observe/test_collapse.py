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


@pytest.mark.parametrize(("C", "d"), [(4, 6), (5, 3), (2, 4)])
def test_papyans_measures_literally(C, d, rng):
    """NC1 to NC4 as they are printed, with the d × d matrices; classes differ in size."""
    labels = np.repeat(np.arange(C), 2 + np.arange(C))
    x = rng.normal(size=(len(labels), d)) + 2 * rng.normal(size=(C, d))[labels]
    W, b = rng.normal(size=(C, d)), rng.normal(size=C)
    found = neural_collapse(x, labels, classifier=W, bias=b)
    classes = [x[labels == c] for c in range(C)]
    means = np.array([h.mean(axis=0) for h in classes])
    M = (means - means.mean(axis=0)).T
    S_W = np.mean([np.cov(h.T, bias=True) for h in classes], axis=0)
    S_B = M @ M.T / C
    assert found.nc1 == pytest.approx(np.trace(S_W @ np.linalg.pinv(S_B, rcond=1e-10)) / C)
    norms = np.linalg.norm(M, axis=0)
    assert found.nc2_norms == pytest.approx(norms.std() / norms.mean())
    cosines = ((M / norms).T @ (M / norms))[~np.eye(C, dtype=bool)]
    assert found.nc2_angles == pytest.approx(cosines.std(), abs=1e-12)
    assert found.nc2_simplex == pytest.approx(np.mean(np.abs(cosines + 1 / (C - 1))), abs=1e-12)
    duality = W.T / np.linalg.norm(W) - M / np.linalg.norm(M)
    assert found.nc3 == pytest.approx(np.linalg.norm(duality))
    nearest = [np.argmin([np.linalg.norm(h - mu) for mu in means]) for h in x]
    decided = [np.argmax([w @ h + c for w, c in zip(W, b, strict=True)]) for h in x]
    assert found.nc4 == pytest.approx(np.mean(np.array(nearest) != decided))
    assert found.nc1 != pytest.approx(found.ratio)


def test_a_collapsed_classifier_is_dual_to_its_class_means():
    labels = np.repeat([3, 1, 2], 4)
    x = simplex(3)[labels - 1]
    found = neural_collapse(x, labels, classifier=7 * simplex(3))
    measures = (found.nc1, found.nc2_norms, found.nc2_angles, found.nc2_simplex, found.nc3)
    assert measures == pytest.approx((0,) * 5, abs=1e-14)
    assert found.nc4 == 0
    assert neural_collapse(x, labels, classifier=-simplex(3)).nc4 == 1
    assert (neural_collapse(x, labels).nc3, neural_collapse(x, labels).nc4) == (None, None)


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
    assert np.isnan(found.nc1)
    assert neural_collapse(np.ones((4, 1)), np.array([0, 0, 1, 1])).between == 0


def test_bad_input(untyped):
    with pytest.raises(InputError, match=r"labels must have shape \(3,\)"):
        neural_collapse(np.eye(3), np.array([0, 1]))
    with pytest.raises(InputError, match="at least 2 classes, but all are 4"):
        neural_collapse(np.eye(2), np.array([4, 4]))
    with pytest.raises(InputError, match=r"classifier must have shape \(2, 3\).*is \(3, 3\)"):
        neural_collapse(np.eye(3), np.array([0, 1, 1]), classifier=np.eye(3))
    with pytest.raises(InputError, match="bias needs a classifier"):
        neural_collapse(np.eye(3), np.array([0, 1, 1]), bias=np.ones(2))
    with pytest.raises(InputError, match="x must be finite"):
        neural_collapse(np.array([[np.inf], [0.0]]), np.array([0, 1]))
