"""Invariant subspaces: exact on matrices with known ones, defective ones too."""

import numpy as np

from attnflow.weights import invariant_subspace, spectrum


def test_it_is_the_spectral_projector_of_a_known_matrix() -> None:
    rng = np.random.default_rng(0)
    S = rng.normal(size=(5, 5))
    V = S @ np.diag([2.0, 1.5, 0.3, -1.0, -2.0]) @ np.linalg.inv(S)
    basis, coordinates = invariant_subspace(V, lambda value: value.real > 1)
    expected = S @ np.diag([1.0, 1, 0, 0, 0]) @ np.linalg.inv(S)
    np.testing.assert_allclose(basis @ coordinates, expected, atol=1e-10)
    np.testing.assert_allclose(basis.T @ basis, np.eye(2), atol=1e-12)


def test_a_jordan_block_is_kept_whole() -> None:
    V = np.array([[1.0, 1.0, 3.0], [0.0, 1.0, 2.0], [0.0, 0.0, -1.0]])
    basis, coordinates = invariant_subspace(V, lambda value: value.real > 0)
    P = basis @ coordinates
    np.testing.assert_allclose(P @ P, P, atol=1e-12)
    np.testing.assert_allclose(V @ P, P @ V, atol=1e-12)
    assert np.isclose(np.trace(P), 2)


def test_pairs_stay_together() -> None:
    V = np.asarray(spectrum([0.5 + 2j, 0.5 - 2j, -1.0], symmetric=False, key=0))
    basis, coordinates = invariant_subspace(V, lambda value: value.real > 0)
    assert basis.shape == (3, 2)
    inside = coordinates @ V @ basis
    np.testing.assert_allclose(np.sort(np.linalg.eigvals(inside).imag), [-2, 2], atol=1e-10)


def test_all_or_nothing() -> None:
    V = np.diag([1.0, 2.0])
    assert invariant_subspace(V, lambda value: False)[0].shape == (2, 0)
    basis, coordinates = invariant_subspace(V, lambda value: True)
    np.testing.assert_allclose(basis @ coordinates, np.eye(2), atol=1e-12)
