"""Balanced coordinates: rescale only what grows.

For `x' = Σ_j A_ij V x_j` neither x (which overflows along growing directions) nor `z = e^{−tV} x`
(which overflows along decaying ones) can be integrated for long. `y = e^{−tC} x` can, where
C = V on the invariant subspace of the eigenvalues with positive real part and 0 on the other.

C only chooses coordinates, so derivatives do not pass through it. It commutes with V, which the
functions here use for their values; their derivatives are those of the general formula, because
a perturbed V no longer commutes with C.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import expm
from jaxtyping import Array, ArrayLike, Float

from attnflow.checks import is_traced
from attnflow.weights import invariant_subspace

SLOW = 1e-3
"""Eigenvalues with a real part below this part of the spectral radius are left as they are: over
any horizon that can be run they grow little, and cutting the spectrum at 0 exactly could split
eigenvalues that belong together."""


def growing_part(V: Float[ArrayLike, "d d"]) -> tuple[np.ndarray, np.ndarray]:
    """C and the growth rate μ = max Re λ(C) of a real matrix, diagonalisable or not.

    >>> C, mu = growing_part(np.diag([2.0, -1.0]))
    >>> print(C, mu)
    [[2. 0.]
     [0. 0.]] 2.0
    """
    V = np.asarray(V)
    eigenvalues = np.linalg.eigvals(V)
    cut = SLOW * np.abs(eigenvalues).max()
    if not np.any(eigenvalues.real > cut):
        return np.zeros_like(V), np.zeros((), V.dtype)
    mu = np.asarray(eigenvalues.real.max(), V.dtype)
    if np.all(eigenvalues.real > cut):
        return V, mu
    basis, coordinates = invariant_subspace(V, lambda value: value.real > cut)
    C = basis @ (basis.T @ V @ basis) @ coordinates
    return C.astype(V.dtype), mu


def balance(V: Float[Array, "d d"]) -> tuple[Float[Array, "d d"], Float[Array, ""]]:
    """`growing_part` of a matrix that may be traced, as constants for differentiation."""
    V = jax.lax.stop_gradient(V)
    if not is_traced(V):
        C, mu = growing_part(np.asarray(V))
        return jnp.asarray(C), jnp.asarray(mu)
    shapes = (jax.ShapeDtypeStruct(V.shape, V.dtype), jax.ShapeDtypeStruct((), V.dtype))
    return jax.pure_callback(growing_part, shapes, V, vmap_method="sequential")


@jax.custom_jvp
def frame(t: Any, V: Float[Array, "d d"], C: Float[Array, "d d"]) -> Float[Array, "d d"]:
    """`e^{−tV} e^{tC}`, the matrix of y ↦ z. All its eigenvalues are 1 or larger."""
    return expm(-t * (V - C))


@frame.defjvp
def _frame_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    t, V, C = primals
    dt, dV, _ = tangents
    value = frame(t, V, C)
    _, d_exp = jax.jvp(lambda M: expm(-t * M), (V,), (dV,))
    return value, d_exp @ expm(t * C) - dt * (V - C) @ value


@jax.custom_jvp
def conjugate(t: Any, V: Float[Array, "d d"], C: Float[Array, "d d"]) -> Float[Array, "d d"]:
    """`e^{−tC} V e^{tC}`, which is V itself."""
    return V + 0 * t  # vmap over t wants the value to have the batch axis of its derivative


@conjugate.defjvp
def _conjugate_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    t, _, C = primals
    return conjugate(*primals), expm(-t * C) @ tangents[1] @ expm(t * C)


def power(R: Float[Array, "d d"], k: Any) -> Float[Array, "d d"]:
    """`R^k` for a whole number k that may be traced, by repeated squaring.

    >>> print(power(jnp.array([[2.0]]), 10))
    [[1024.]]
    """

    def square(bit: Any, state: tuple[Array, Array]) -> tuple[Array, Array]:
        result, base = state
        result = jnp.where((k >> bit) & 1, result @ base, result)
        return result, base @ base

    k = jnp.asarray(k, dtype=jnp.int32)
    return jax.lax.fori_loop(0, 24, square, (jnp.eye(len(R), dtype=R.dtype), R))[0]
