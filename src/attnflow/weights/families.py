"""Named families of random matrices. Every draw takes a key; `heads=H` draws H of them.

Entries are O(1) as drawn: where a paper divides products by √d, `scale` does it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import block_diag
from jaxtyping import Array, Float, Num

from attnflow.checks import require_count, require_finite, require_memory, require_positive
from attnflow.errors import InputError
from attnflow.randomness import RandomKey, as_key
from attnflow.retired import renamed_arguments

Eigenvalues = Sequence[complex | float | int] | Num[np.ndarray, " d"]


def identity(d: int) -> Float[Array, "d d"]:
    """The identity. Leaving the matrix out is faster: then no product is done."""
    return jnp.eye(_shape(None, d, d)[0])


@renamed_arguments(seed="key")
def ginibre(
    d: int,
    *,
    rows: int | None = None,
    heads: int | None = None,
    scale: float | int = 1.0,
    key: RandomKey,
) -> Float[Array, "*heads k d"]:
    """Real Ginibre: independent N(0, scale²) entries, square or k × d.

    About 14% of those with d = 128 have a real positive simple leading eigenvalue ([E] §4).

    Args:
        d: the number of columns.
        rows: the number k of rows; by default d.
        heads: how many matrices to draw, as a leading axis; by default one, without the axis.
        scale: the standard deviation of an entry.
        key: an integer or a JAX key.

    >>> ginibre(3, rows=2, heads=4, key=0).shape
    (4, 2, 3)
    """
    shape = _shape(heads, d if rows is None else rows, d)
    return scale * jax.random.normal(as_key(key), shape, dtype=float)


@renamed_arguments(seed="key")
def wigner(
    d: int,
    *,
    heads: int | None = None,
    scale: float | int = 1.0,
    key: RandomKey,
) -> Float[Array, "*heads d d"]:
    """Wigner: symmetric, independent N(0, scale²) entries on and above the diagonal.

    Args:
        d: the dimension.
        heads: how many matrices to draw, as a leading axis; by default one, without the axis.
        scale: the standard deviation of an entry.
        key: an integer or a JAX key.
    """
    G = ginibre(d, heads=heads, scale=scale, key=key)
    upper = jnp.triu(G)
    return upper + jnp.swapaxes(jnp.triu(G, 1), -1, -2)


@renamed_arguments(seed="key")
def goe(
    d: int,
    *,
    heads: int | None = None,
    scale: float | int = 1.0,
    key: RandomKey,
) -> Float[Array, "*heads d d"]:
    """Gaussian orthogonal ensemble: `(G + Gᵀ)/√2`, whose law no rotation changes.

    Args:
        d: the dimension.
        heads: how many matrices to draw, as a leading axis; by default one, without the axis.
        scale: the standard deviation of an entry off the diagonal.
        key: an integer or a JAX key.

    >>> V = goe(4, key=1)
    >>> bool((V == V.T).all())
    True
    """
    G = ginibre(d, heads=heads, scale=scale, key=key)
    return (G + jnp.swapaxes(G, -1, -2)) / math.sqrt(2)


@renamed_arguments(seed="key")
def wishart(
    d: int,
    *,
    heads: int | None = None,
    scale: float | int | None = None,
    key: RandomKey,
) -> Float[Array, "*heads d d"]:
    """Wishart: `scale · G Gᵀ` with G Ginibre, which is positive definite.

    Args:
        d: the dimension.
        heads: how many matrices to draw, as a leading axis; by default one, without the axis.
        scale: the factor; by default 1/d, so that the spectrum is O(1).
        key: an integer or a JAX key.
    """
    G = ginibre(d, heads=heads, key=key)
    return (1 / d if scale is None else scale) * G @ jnp.swapaxes(G, -1, -2)


@renamed_arguments(seed="key")
def spectrum(
    eigenvalues: Eigenvalues,
    *,
    symmetric: bool = True,
    condition: float | int = 4.0,
    heads: int | None = None,
    key: RandomKey,
) -> Float[Array, "*heads d d"]:
    """A random real matrix with the given eigenvalues.

    Symmetric: `O diag(λ) Oᵀ` with O uniform among the orthogonal matrices. Otherwise `S Λ S⁻¹`
    with Λ block diagonal and S a random basis.

    Args:
        eigenvalues: the eigenvalues, complex ones in conjugate pairs.
        symmetric: whether the matrix is symmetric, for real eigenvalues.
        condition: the condition number of S, for a matrix that is not symmetric.
        heads: how many matrices to draw, as a leading axis; by default one, without the axis.
        key: an integer or a JAX key.

    >>> V = spectrum([1.0, 0.5 + 1j, 0.5 - 1j], symmetric=False, key=0)
    >>> print(np.sort_complex(np.round(np.linalg.eigvals(V), 10)))
    [0.5-1.j 0.5+1.j 1. +0.j]
    """
    blocks = _real_blocks(eigenvalues)
    if not symmetric:
        _check_condition(condition)
        *several, _, _ = _shape(heads, *blocks.shape)
        return _in_random_basis(blocks, float(condition), as_key(key), tuple(several))
    if np.any(blocks != np.diag(np.diag(blocks))):
        raise InputError("eigenvalues of a symmetric matrix must be real: use symmetric=False.")
    *several, _, _ = _shape(heads, *blocks.shape)
    return _in_orthogonal_basis(np.diag(blocks), as_key(key), tuple(several))


@renamed_arguments(seed="key")
def paranormal(
    d: int,
    multiplicity: int,
    *,
    leading: float | int = 1.0,
    radius: float | int = 0.5,
    condition: float | int = 4.0,
    heads: int | None = None,
    key: RandomKey,
) -> Float[Array, "*heads d d"]:
    """`λ I ⊕ G`: λ on a random subspace F, a smaller spectral radius on G ([E] D2).

    Args:
        d: the dimension.
        multiplicity: the dimension of F.
        leading: the eigenvalue λ on F.
        radius: the spectral radius on G, below λ.
        condition: the condition number of the random basis.
        heads: how many matrices to draw, as a leading axis; by default one, without the axis.
        key: an integer or a JAX key.

    >>> V = paranormal(4, 2, leading=1.0, radius=0.3, key=0)
    >>> print(np.sort(np.round(np.abs(np.linalg.eigvals(V)), 8))[-2:])
    [1. 1.]
    """
    d, multiplicity = require_count(d, "d"), require_count(multiplicity, "multiplicity")
    if multiplicity >= d:
        raise InputError(f"multiplicity must be below d = {d}: for V = λI pass the number λ as V.")
    require_finite(leading, "leading")
    if not 0 <= radius < leading:
        raise InputError(f"radius must lie between 0 and leading = {leading}, but it is {radius}.")
    _check_condition(condition)

    def one(key: RandomKey) -> Array:
        draw, basis = jax.random.split(key)
        blocks = _paranormal_blocks(d, multiplicity, float(leading), float(radius), draw)
        return _in_random_basis(blocks, float(condition), basis, ())

    key = as_key(key)
    if heads is None:
        return one(key)
    return jax.vmap(one)(jax.random.split(key, require_count(heads, "heads")))


@partial(jax.jit, static_argnums=(0, 1))
def _paranormal_blocks(
    d: int, multiplicity: int, leading: Any, radius: Any, key: RandomKey
) -> Float[Array, "d d"]:
    G = ginibre(d - multiplicity, key=key)
    G = G * radius / jnp.abs(jnp.linalg.eigvals(G)).max()
    return block_diag(leading * jnp.eye(multiplicity), G)


@renamed_arguments(seed="key")
def perron(
    d: int,
    *,
    heads: int | None = None,
    scale: float | int = 1.0,
    key: RandomKey,
) -> Float[Array, "*heads d d"]:
    """Entrywise positive (uniform in (0, scale)), so that Perron's eigenvalue leads.

    Args:
        d: the dimension.
        heads: how many matrices to draw, as a leading axis; by default one, without the axis.
        scale: the largest entry possible.
        key: an integer or a JAX key.

    >>> bool((perron(5, key=0) > 0).all())
    True
    """
    require_positive(scale, "scale")
    shape = _shape(heads, d, d)
    tiny = float(jnp.finfo(jnp.result_type(float)).tiny)
    return scale * jax.random.uniform(as_key(key), shape, dtype=float, minval=tiny)


@renamed_arguments(seed="key")
def bias(
    d: int,
    *,
    heads: int | None = None,
    scale: float | int = 1.0,
    key: RandomKey,
) -> Float[Array, "*heads d"]:
    """A vector of d independent N(0, scale²) entries, for biases.

    Args:
        d: the dimension.
        heads: how many matrices to draw, as a leading axis; by default one, without the axis.
        scale: the standard deviation of an entry.
        key: an integer or a JAX key.

    >>> bias(5, key=0).shape
    (5,)
    """
    *several, _, entries = _shape(heads, 1, d)
    shape = (*several, entries)
    return scale * jax.random.normal(as_key(key), shape, dtype=float)


FAMILIES: dict[str, Callable[..., Any]] = {
    family.__name__: family
    for family in (identity, ginibre, wigner, goe, wishart, spectrum, paranormal, perron, bias)
}
"""The families by name, as specs call them."""


def _shape(heads: int | None, rows: int, columns: int) -> tuple[int, ...]:
    columns = require_count(columns, "d")
    shape: tuple[int, ...] = (require_count(rows, "rows"), columns)
    if heads is not None:
        shape = (require_count(heads, "heads"), *shape)
    require_memory(24 * math.prod(shape), f"a weight of shape {shape}", "take a smaller one")
    return shape


def _check_condition(condition: float | int) -> None:
    if not 1 <= condition < math.inf:
        raise InputError(f"condition must be finite and at least 1, but it is {condition}.")


@partial(jax.jit, static_argnums=2)
def _in_orthogonal_basis(
    eigenvalues: Float[Array, " d"], key: RandomKey, heads: tuple[int, ...]
) -> Float[Array, "*heads d d"]:
    O = jax.random.orthogonal(key, len(eigenvalues), heads, dtype=float)
    V = (O * eigenvalues) @ jnp.swapaxes(O, -1, -2)
    return (V + jnp.swapaxes(V, -1, -2)) / 2


@partial(jax.jit, static_argnums=3)
def _in_random_basis(
    blocks: Float[Array, "d d"], condition: Any, key: RandomKey, heads: tuple[int, ...]
) -> Float[Array, "*heads d d"]:
    d = len(blocks)
    left, right = (jax.random.orthogonal(k, d, heads, dtype=float) for k in jax.random.split(key))
    stretch = jnp.linspace(1.0, condition, d)
    S = (left * stretch) @ right
    S_inverse = (jnp.swapaxes(right, -1, -2) / stretch) @ jnp.swapaxes(left, -1, -2)
    return S @ blocks @ S_inverse


def _real_blocks(eigenvalues: Eigenvalues) -> np.ndarray:
    """The block-diagonal real matrix of the eigenvalues: 1 × 1, and 2 × 2 for each pair."""
    values = np.asarray(eigenvalues, dtype=complex)
    if values.ndim != 1 or not values.size or not np.all(np.isfinite(values)):
        raise InputError("eigenvalues must be a non-empty list of finite numbers.")
    upper, lower = values[values.imag > 0], values[values.imag < 0]
    paired = len(upper) == len(lower)
    if not paired or not np.allclose(np.sort_complex(upper), np.sort_complex(lower.conj())):
        raise InputError("eigenvalues must be real or come in conjugate pairs a ± ib.")
    real = values[values.imag == 0].real
    blocks = np.zeros((len(values), len(values)))
    blocks[range(len(real)), range(len(real))] = real
    for i, value in enumerate(upper):
        at = len(real) + 2 * i
        a, b = value.real, value.imag
        blocks[at : at + 2, at : at + 2] = [[a, b], [-b, a]]
    return blocks
