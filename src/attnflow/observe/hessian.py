"""First and second derivatives of E_β on the sphere: where it is critical, and of which kind."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int, Real

from attnflow.attention import Blocked, Dense, Unnormalised, attend
from attnflow.checks import as_floats, require_state
from attnflow.observe.tangent import require_unit, tangent_bases
from attnflow.spaces import Sphere

MAX_TOKENS_DENSE = 1024
"""Up to this many tokens all scores of a gradient are held at once."""


def gradient(
    x: Real[ArrayLike, "n d"],
    beta: Float[ArrayLike, ""] | int,
    masses: Real[ArrayLike, " n"] | None = None,
) -> Float[Array, "n d"]:
    """The Riemannian gradient of E_β on (S^{d−1})^n, one tangent vector for each token.

        ∇_i E_β = (m_i / M²) P⊥_{x_i} Σ_j m_j e^{β <x_i,x_j>} x_j,   M = Σ m

    USA is `x' = n ∇E_β` ([P] R3.8); with masses `x_i' = (M / m_i) ∇_i E_β`. Memory is O(n · block);
    works under jit and vmap.

    Args:
        x: unit tokens, shape (n, d).
        beta: inverse temperature β.
        masses: masses of the tokens, shape (n,); by default 1 each.

    >>> print(gradient(jnp.eye(2), 0.0))
    [[0.   0.25]
     [0.25 0.  ]]
    """
    return _gradient(*_on_sphere(x, beta, masses))


@jax.jit
def _gradient(
    x: Float[Array, "n d"], beta: Float[Array, ""], m: Float[Array, " n"]
) -> Float[Array, "n d"]:
    backend = Dense() if len(x) <= MAX_TOKENS_DENSE else Blocked()
    means = attend(
        x,
        x,
        x,
        beta=beta,
        kind=Unnormalised(),
        masses=m,
        backend=backend,
        unit=True,
        tangential=True,
    )
    return m[:, None] * Sphere().project(x, means)


def hessian(
    x: Real[ArrayLike, "n d"],
    beta: Float[ArrayLike, ""] | int,
    masses: Real[ArrayLike, " n"] | None = None,
) -> Float[Array, "N N"]:
    """The Riemannian Hessian of E_β at x, N = n(d − 1) square.

    Coordinates go token by token, each in an orthonormal basis B_i of its tangent plane. With
    `w_ij = m_i m_j e^{β <x_i,x_j>} / M²`, the second derivatives in R^d and the correction
    −<∇_i E, x_i> for the curvature of the sphere add up to

        w_ij B_iᵀ (I + β x_j x_iᵀ) B_j  +  δ_ij B_iᵀ Σ_k w_ik (β x_k x_kᵀ − <x_i,x_k>) B_i

    For d = 2 it is the Hessian in the angles. Works under jit and vmap.

    Args:
        x: unit tokens, shape (n, d).
        beta: inverse temperature β.
        masses: masses of the tokens, shape (n,); by default 1 each.

    >>> print(hessian(jnp.array([[1.0, 0.0], [1.0, 0.0]]), 0.0))
    [[-0.25  0.25]
     [ 0.25 -0.25]]
    """
    return _hessian(*_on_sphere(x, beta, masses))


@jax.jit
def _hessian(
    x: Float[Array, "n d"], beta: Float[Array, ""], m: Float[Array, " n"]
) -> Float[Array, "N N"]:
    n, d = x.shape
    B = tangent_bases(Sphere(), x)
    s = x @ x.T
    w = m[:, None] * m * jnp.exp(beta * s)
    # along[i, k, a]: the coordinate a of x_k in the tangent plane of x_i
    along = jnp.einsum("ida,kd->ika", B, x)
    blocks = jnp.einsum("ij,ida,jdb->iajb", w, B, B)
    blocks += beta * jnp.einsum("ij,ija,jib->iajb", w, along, along)
    own = beta * jnp.einsum("ik,ika,ikb->iab", w, along, along)
    own -= jnp.sum(w * s, axis=1)[:, None, None] * jnp.eye(d - 1, dtype=x.dtype)
    index = jnp.arange(n)
    blocks = blocks.at[index, :, index].add(own)
    return blocks.reshape(n * (d - 1), n * (d - 1))


def saddle_index(
    x: Real[ArrayLike, "n d"],
    beta: Float[ArrayLike, ""] | int,
    masses: Real[ArrayLike, " n"] | None = None,
    *,
    tol: Float[ArrayLike, ""] | int = 1e-8,
) -> Int[Array, ""]:
    """In how many directions E_β increases: the number of positive eigenvalues of `hessian`.

    The flow climbs E_β, so an equilibrium with an index of at least 1 is a strict saddle (or a
    minimum) that almost no start ends in. Rotations of all tokens together give eigenvalues 0.
    This holds only where `gradient` vanishes. Works under jit and vmap.

    Args:
        x: unit tokens, shape (n, d).
        beta: inverse temperature β.
        masses: masses of the tokens, shape (n,); by default 1 each.
        tol: eigenvalues below `tol` times the largest in modulus count as 0.

    >>> print(saddle_index(jnp.array([[1.0, 0.0], [-1.0, 0.0]]), 1.0))
    1
    """
    values = jnp.linalg.eigvalsh(hessian(x, beta, masses))
    return jnp.sum(values > jnp.asarray(tol, values.dtype) * jnp.abs(values).max())


def _on_sphere(
    x: ArrayLike, beta: ArrayLike, masses: ArrayLike | None
) -> tuple[Array, Array, Array]:
    """Tokens on the sphere, β, and masses as parts of the whole."""
    require_state(x, masses)
    x = as_floats(x)
    require_unit(x)
    m = jnp.ones(len(x), x.dtype) if masses is None else jnp.asarray(masses, x.dtype)
    return x, jnp.asarray(beta, x.dtype), m / m.sum()
