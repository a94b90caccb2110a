"""Invariant subspaces of a real matrix, diagonalisable or not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy
from jaxtyping import ArrayLike, Float


def invariant_subspace(
    V: Float[ArrayLike, "d d"], select: Callable[[complex], bool]
) -> tuple[Float[np.ndarray, "d r"], Float[np.ndarray, "r d"]]:
    """The invariant subspace F of the selected eigenvalues, and coordinates in it along the others.

    The first array has an orthonormal basis of F as columns; the second, applied to x, gives the
    coordinates in this basis of the part of x in F, where x is split along the invariant subspace
    of the eigenvalues that were not selected. Their product is the spectral projector. `select`
    treats the two of a conjugate pair alike. By an ordered real Schur form and a Sylvester
    equation, so that V need not be diagonalisable.

    >>> V = np.array([[2.0, 1.0], [0.0, 1.0]])
    >>> basis, coordinates = invariant_subspace(V, lambda value: value.real > 1.5)
    >>> print(basis @ coordinates)
    [[1. 1.]
     [0. 0.]]
    """
    V = np.asarray(V)
    T, Z, r = scipy.linalg.schur(V, output="real", sort=lambda re, im: select(complex(re, im)))
    basis, rest = Z[:, :r], Z[:, r:]
    if r in (0, len(V)):
        return basis, basis.T
    X = scipy.linalg.solve_sylvester(T[:r, :r], -T[r:, r:], -T[:r, r:])
    return basis, basis.T - X @ rest.T
