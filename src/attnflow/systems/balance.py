"""Balanced coordinates: rescale only what grows.

For `x' = Σ_j A_ij V x_j` neither x (which overflows along growing directions) nor `z = e^{−tV} x`
(which overflows along decaying ones) can be integrated for long. `e^{−tC} x` can, where C = V on
the invariant subspace F of the eigenvalues with positive real part and 0 on the others. It is
written in a basis of invariant subspaces, so that each part keeps its own digits: the coordinates
in F are those of z, the others are those of x.

C and the basis only choose coordinates, so derivatives do not pass through them. C commutes with
V, which the functions here use for their values; their derivatives are those of the general
formula, because a perturbed V no longer commutes with C.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import expm
from jaxtyping import Array, Bool, Float, Int, Real

from attnflow.checks import as_array, as_floats, is_traced
from attnflow.weights import apply, invariant_subspace

SLOW = 1e-3
"""Eigenvalues with a real part below this part of the spectral radius are left as they are: over
any horizon that can be run they grow little, and cutting the spectrum at 0 exactly could split
eigenvalues that belong together."""

GAP, SKEW, CUTS = 0.05, 100.0, 7
"""Parts that do not grow are told apart where their rates differ by this part of the spectral
radius, the projector between them is not longer than this, and at most so often."""


class Split(eqx.Module):
    """R^d as a sum of invariant subspaces of V: the growing one, and others by rate of decay.

    The columns of `basis` are orthonormal bases of the subspaces, one after the other, and `dual`
    is its inverse. `part` numbers the subspace of each column; the growing one is 0. `decay` is
    the fastest rate of decay in it, or 0. `C` is the growing part of V in this basis, and `mu` its
    growth rate.
    """

    basis: Float[Array, "d d"]
    dual: Float[Array, "d d"]
    part: Int[Array, " d"]
    decay: Float[Array, " d"]
    C: Float[Array, "d d"]
    mu: Float[Array, ""]

    def astype(self, dtype: Any) -> Split:
        """In the dtype of the tokens."""
        return jax.tree.map(
            lambda a: a.astype(dtype) if jnp.issubdtype(a.dtype, jnp.inexact) else a, self
        )

    @property
    def together(self) -> Bool[Array, "d d"]:
        """Which pairs of columns belong to one subspace."""
        return self.part[:, None] == self.part

    @property
    def resting(self) -> Bool[Array, "d d"]:
        """Which pairs of columns belong to one subspace that does not grow."""
        return self.together & (self.part != 0)

    def matrix(self, V: Float[Array, "*heads d d"]) -> Float[Array, "*heads d d"]:
        """V in the basis of the subspaces."""
        return self.dual @ V @ self.basis


def split(V: Any) -> tuple[np.ndarray, ...]:
    """The fields of the `Split` of a real matrix, diagonalisable or not.

    >>> *_, part, decay, C, mu = split(np.diag([-1.0, 2.0]))
    >>> part.tolist(), decay.tolist(), C.tolist(), float(mu)
    ([0, 1], [0.0, 1.0], [[2.0, 0.0], [0.0, 0.0]], 2.0)
    """
    given, V = np.asarray(V).dtype, np.asarray(V, float)
    d, rates = len(V), np.linalg.eigvals(V)
    radius = np.abs(rates).max()
    edges = _edges(V, rates.real, SLOW * radius, GAP * radius)
    bases, duals, part, decay = [], [], [], []
    for number, (high, low) in enumerate(zip([np.inf, *edges], [*edges, -np.inf], strict=True)):
        basis, dual = invariant_subspace(V, lambda value: low < value.real <= high)  # noqa: B023
        bases.append(basis)
        duals.append(dual)
        part += [number] * basis.shape[1]
        fastest = rates.real[(low < rates.real) & (rates.real <= high)].min(initial=0.0)
        decay += [abs(fastest)] * basis.shape[1]
    basis, dual, parts = np.hstack(bases), np.vstack(duals), np.array(part)
    if len(set(part)) == 1:
        basis = dual = np.eye(d)
    grows = parts == 0
    C = np.where(grows[:, None] & grows, dual @ V @ basis, 0.0)
    mu = rates.real.max() if grows.any() else 0.0
    return (
        basis.astype(given),
        dual.astype(given),
        parts.astype(np.int32),
        np.array(decay, given),
        C.astype(given),
        np.asarray(mu, given),
    )


def _edges(V: np.ndarray, rates: np.ndarray, cut: float, gap: float) -> list[float]:
    """Where the spectrum is cut: between what grows and what does not, then at wide gaps."""
    resting = np.sort(rates[rates <= cut])[::-1]
    steps = resting[:-1] - resting[1:]
    edges = [cut]
    for i in np.argsort(-steps)[:CUTS]:
        edge = 0.5 * float(resting[i] + resting[i + 1])
        if steps[i] > gap:
            basis, dual = invariant_subspace(V, lambda value: value.real > edge)  # noqa: B023
            if np.linalg.norm(basis @ dual, 2) <= SKEW:
                edges.append(edge)
    return sorted(edges, reverse=True)


def balance(V: Float[Array, "d d"]) -> Split:
    """The `split` of a matrix that may be traced, as constants for differentiation."""
    V = jax.lax.stop_gradient(V)
    if not is_traced(V):
        return Split(*map(as_array, split(np.asarray(V))))
    square, d = jax.ShapeDtypeStruct(V.shape, V.dtype), len(V)
    part, decay = (jax.ShapeDtypeStruct((d,), kind) for kind in (jnp.int32, V.dtype))
    shapes = (square, square, part, decay, square, jax.ShapeDtypeStruct((), V.dtype))
    return Split(*jax.pure_callback(split, shapes, V, vmap_method="sequential"))


@jax.custom_jvp
def frame(
    t: Any, W: Float[Array, "d d"], C: Float[Array, "d d"], resting: Bool[Array, "d d"]
) -> Float[Array, "d d"]:
    """`e^{−tW} e^{tC}`, which leads to z: 1 on what grows, and block by block on the others."""
    blocks = expm(-t * jnp.where(resting, W, 0))
    return jnp.where(resting, blocks, jnp.eye(len(W), dtype=W.dtype))


@frame.defjvp
def _frame_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    t, W, C, resting = primals
    dt, dW = tangents[:2]
    value = frame(*primals)
    _, d_exp = jax.jvp(lambda M: expm(-t * M), (W,), (dW,))
    return value, d_exp @ expm(t * C) - dt * jnp.where(resting, W, 0) @ value


@jax.custom_jvp
def conjugate(
    t: Any, W: Float[Array, "d d"], C: Float[Array, "d d"], resting: Bool[Array, "d d"]
) -> Float[Array, "d d"]:
    """`e^{−tC} W e^{tC}`, which is W itself, without the rounding between its blocks."""
    return jnp.where(resting, W, C) + 0 * t  # a batch axis of t is one of the value, under vmap


@conjugate.defjvp
def _conjugate_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    t, _, C, _ = primals
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
    return jax.lax.fori_loop(0, 31, square, (jnp.eye(len(R), dtype=R.dtype), R))[0]


def lengths_in_parts(c: Float[Array, "n d"], split: Split) -> Float[Array, "n d"]:
    """The length of each row's part in the subspace of each column."""
    return jnp.sqrt(jnp.square(c) @ split.together.astype(c.dtype))


def real_parts(split: Split, V: Float[Array, "d d"], chosen: np.ndarray) -> list[float]:
    """The real parts of V's eigenvalues, to three digits, where coordinates are chosen."""
    W, part = np.asarray(split.matrix(V)), np.asarray(split.part)
    rates = [
        float(f"{value.real:.3g}")
        for number in np.unique(part[chosen])
        for value in np.linalg.eigvals(W[np.ix_(part == number, part == number)])
    ]
    return sorted(set(rates), reverse=True)


def scalar_if_isotropic(V: Any) -> Any:
    """The number c for a known matrix c·I, so that no product and no exponential is done."""
    if V is None or is_traced(V) or np.ndim(V) != 2:
        return V
    M = np.asarray(V)
    if (
        M.shape[0] == M.shape[1]
        and M.dtype.kind in "fiu"
        and np.array_equal(M, M[0, 0] * np.eye(len(M)))
    ):
        return float(M[0, 0])
    return V


def exponential(t: Any, V: Float[Array, ...], x: Real[Array, "n d"]) -> Float[Array, "n d"]:
    """`e^{tV} x`, row by row."""
    x = as_floats(x)
    V = V.astype(x.dtype)
    return x * jnp.exp(t * V) if V.ndim == 0 else apply(expm(t * V), x)
