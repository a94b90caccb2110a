"""Tokens in the eigenbasis of V: the coordinates φ_k*(z_i) of [E]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Inexact, Real

from attnflow.checks import as_floats, is_traced, require_finite
from attnflow.errors import InputError
from attnflow.simulation import Trajectory

MAX_CONDITION = 1e7
"""Eigenvectors whose matrix is worse conditioned are no basis: rounding splits a Jordan block into
eigenvalues √ε apart, whose eigenvectors have a condition of about 1/√ε."""

TIE_TOL = 1e-10
"""Eigenvalues that differ by less, in parts of the spectral radius, are equal up to rounding."""


@dataclass(frozen=True)
class Eigenbasis:
    """Eigenvalues and eigenvectors of V; `dual @ vectors` is the identity.

    All are real where all eigenvalues are.

    Attributes:
        values: the eigenvalues λ_k by decreasing modulus, shape (d,).
        vectors: the unit eigenvectors φ_k, the columns of a (d, d) matrix.
        dual: the dual basis φ_k*, the rows of a (d, d) matrix.
    """

    values: Inexact[np.ndarray, " d"]
    vectors: Inexact[np.ndarray, "d d"]
    dual: Inexact[np.ndarray, "d d"]


def eigenbasis(V: Real[ArrayLike, "d d"]) -> Eigenbasis:
    """The eigenvalues of V by decreasing modulus, as [E] orders them, and their eigenvectors.

    Among equal moduli the larger real part comes first, then the larger imaginary part. An
    eigenvector's largest entry is positive, so that it does not depend on the machine. Runs on the
    host: a matrix that is not diagonalisable is refused.

    >>> basis = eigenbasis(np.array([[1.0, 1.0], [0.0, -2.0]]))
    >>> print(basis.values)
    [-2.  1.]
    >>> print((basis.dual @ basis.vectors).round(12) + 0.0)
    [[1. 0.]
     [0. 1.]]
    """
    if is_traced(V):
        raise InputError("V must be known, but it is traced: eigenvectors are found on the host.")
    V = np.asarray(V, dtype=float)
    if V.ndim != 2 or V.shape[0] != V.shape[1]:
        raise InputError(f"V must be square (d × d), but its shape is {V.shape}.")
    require_finite(V, "V")
    symmetric = np.array_equal(V, V.T)
    values, vectors = np.linalg.eigh(V) if symmetric else _as_real(*np.linalg.eig(V))
    order = _ordered(values)
    values, vectors = values[order], _signed(vectors[:, order])
    condition = np.linalg.cond(vectors)
    if not condition <= MAX_CONDITION:
        raise InputError(
            f"V must be diagonalisable, but its eigenvectors have condition {condition:.1g} "
            f"(above {MAX_CONDITION:.0e}): it has a Jordan block, or is too close to a matrix that "
            "has."
        )
    return Eigenbasis(values, vectors, np.linalg.inv(vectors))


def dual_coordinates(
    z: Real[ArrayLike, "*batch n d"] | Trajectory, V: Real[ArrayLike, ...] | None = None
) -> Inexact[Array, "*batch n d"]:
    """The coordinates `φ_k*(z_i)` of tokens in the eigenbasis of V, k by decreasing modulus.

    T4.1 says that φ_1* takes at most three limits, and L-dual that minima rise and maxima fall for
    each λ_k ≥ 0. V may be missing (the identity), a number or a matrix; the result is complex where
    V has complex eigenvalues. Works under jit and vmap in z; V must be known.

    Of a trajectory of rescaled attention, with V its own (`Σ_h V_h` of several heads), they are
    exact at all save times, also where z has no digits left.

    >>> V = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> print(dual_coordinates(jnp.array([[2.0, 0.0]]), V).round(3))
    [[1.414 1.414]]
    """
    if isinstance(z, Trajectory):
        return _along(z, V)
    z = as_floats(z)
    if V is None or np.ndim(V) == 0:
        require_finite(V, "V")
        return z
    dual = eigenbasis(V).dual
    _require_dimension(dual, z.shape[-1])
    if np.iscomplexobj(dual):
        kind = np.result_type(z.dtype, np.complex64)
        return z.astype(kind) @ jnp.asarray(dual.T, kind)
    return z @ jnp.asarray(dual.T, z.dtype)


def _along(run: Trajectory, V: Any) -> Inexact[Array, "*batch T n d"]:
    """φ_k*(z) of a run, from the coordinates in which it was integrated."""
    total = getattr(run.running, "total", None) if V is None else V
    if total is None:
        raise InputError(f"V must be given: {type(run.system).__name__} is not rescaled.")
    d = run.final.shape[-1]
    dual = eigenbasis(total).dual if np.ndim(total) else np.eye(d)
    _require_dimension(dual, d)
    return run.along(dual)


def _require_dimension(dual: Inexact[np.ndarray, "d d"], d: int) -> None:
    if len(dual) != d:
        raise InputError(f"z has tokens of dimension {d}, but V expects {len(dual)}.")


def _as_real(values: np.ndarray, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """With real vectors for the pairs of eigenvalues that only rounding made complex.

    The two vectors of such a pair, v and its conjugate, span the same plane as the real and the
    imaginary part of v, which are orthogonal after a turn by half the angle of Σ v².
    """
    if not np.iscomplexobj(values):
        return values, vectors
    values, vectors = values.copy(), vectors.copy()
    for k in np.flatnonzero((values.imag > 0) & (values.imag <= TIE_TOL * np.abs(values).max())):
        pair = [k, k + 1]
        v = vectors[:, k] * np.exp(-0.5j * np.angle(np.sum(vectors[:, k] ** 2)))
        parts = np.stack([v.real, v.imag], axis=1)
        vectors[:, pair] = parts / np.maximum(np.linalg.norm(parts, axis=0), TIE_TOL)
        values[pair] = values[k].real
    if np.all(values.imag == 0):
        return values.real, vectors.real
    return values, vectors


def _ordered(values: np.ndarray) -> np.ndarray:
    """The order by modulus, real part, imaginary part, each decreasing and equal up to TIE_TOL."""
    tie = TIE_TOL * np.abs(values).max()
    keys = (_levels(part, tie) for part in (values.imag, values.real, np.abs(values)))
    return np.lexsort(tuple(keys))


def _levels(numbers: Float[np.ndarray, " d"], tie: float | int) -> np.ndarray:
    """0 for the largest numbers, 1 for the next ones, and so on."""
    order = np.argsort(-numbers, kind="stable")
    steps = np.concatenate([[False], np.diff(-numbers[order]) > tie])
    levels = np.empty(len(numbers), int)
    levels[order] = np.cumsum(steps)
    return levels


def _signed(vectors: np.ndarray) -> np.ndarray:
    """Columns of unit length, each with a real positive entry where it is largest."""
    vectors = vectors / np.linalg.norm(vectors, axis=0)
    # of entries that are equal up to rounding the first
    largest = np.argmax(np.abs(vectors) > 0.999 * np.abs(vectors).max(axis=0), axis=0)
    entry = vectors[largest, np.arange(vectors.shape[1])]
    return vectors * (np.abs(entry) / entry)
