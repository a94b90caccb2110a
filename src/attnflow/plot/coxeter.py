"""The plane that shows a highly symmetric set of points best: that of a Coxeter element."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

SAME = 1e-6
"""Cosines and coordinates that differ by less count as equal."""


def coxeter_plane(x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "2 d"] | None:
    """An orthonormal basis of the plane that shows the points with a rotational symmetry.

    Reflections that swap two nearest neighbours are symmetries of every sharp configuration that a
    reflection group acts on (simplex, cross-polytope, icosahedron, 600-cell, E8, …). The product
    of the reflections in simple roots is a Coxeter element. It rotates one plane by 2π/h, where h
    is the Coxeter number; this is the plane. None if the points have no such symmetry.

    >>> seen = np.eye(3) @ coxeter_plane(np.eye(3)).T
    >>> np.linalg.norm(seen - np.roll(seen, 1, axis=0), axis=1).round(6).tolist()
    [1.414214, 1.414214, 1.414214]
    """
    turn = _coxeter_element(_simple(_roots(x)))
    if not all(np.abs(x - point).max(axis=1).min() < np.sqrt(SAME) for point in x @ turn.T):
        return None
    values, vectors = np.linalg.eig(turn)
    angles = np.abs(np.angle(values))
    turned = np.where(angles > SAME, angles, np.inf)
    if not turned.min() < np.pi - SAME:
        return None
    found = vectors[:, int(np.argmin(turned))]
    basis = np.stack([found.real, found.imag])
    return np.asarray(basis / np.linalg.norm(basis, axis=1, keepdims=True))


def _roots(x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "r d"]:
    """Unit vectors along the edges between nearest neighbours, on one side of a hyperplane.

    They are ordered by their distance from it.
    """
    cosines = x @ x.T
    np.fill_diagonal(cosines, -np.inf)
    i, j = np.argwhere(np.triu(cosines > cosines.max() - SAME)).T
    edges = x[i] - x[j]
    edges = edges / np.linalg.norm(edges, axis=1, keepdims=True)
    side = edges @ np.random.default_rng(0).normal(size=x.shape[1])
    return np.asarray((edges * np.sign(side)[:, None])[np.argsort(np.abs(side))])


def _simple(roots: Float[np.ndarray, "r d"]) -> list[np.ndarray]:
    """The simple roots: no two form an acute angle, and the nearest ones come first."""
    found: list[np.ndarray] = []
    for root in roots:
        if all(root @ other < SAME for other in found):
            found.append(root)
    return found


def _coxeter_element(roots: list[np.ndarray]) -> Float[np.ndarray, "d d"]:
    """The product of the reflections in the roots."""
    turn = np.eye(len(roots[0]))
    for root in roots:
        turn = turn - 2 * np.outer(turn @ root, root)
    return turn
