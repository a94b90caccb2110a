"""Random weights (Q, K, V) that meet the hypotheses of the rows of [E] Table 1.

Spectral gaps are wide enough for tokens to settle within a horizon of about 15/λ₁.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow import weights
from attnflow.randomness import RandomKey, as_key

Matrix = Float[Array, "d d"] | float | None

MAX_OTHER_MODULUS = 0.6
"""Eigenvalues other than the leading one have at most this part of its modulus."""


class Triple(NamedTuple):
    """Weights of one head, as `RescaledAttention(**triple._asdict())` takes them.

    Attributes:
        Q: query matrix.
        K: key matrix.
        V: value matrix.
    """

    Q: Matrix
    K: Matrix
    V: Matrix


def positive_scores(d: int, key: RandomKey) -> tuple[Array, Array]:
    """Q and K with `QᵀK` symmetric positive definite and eigenvalues between ½ and 2."""
    spectrum, basis, invertible = jax.random.split(as_key(key), 3)
    eigenvalues = np.asarray(jax.random.uniform(spectrum, (d,), minval=0.5, maxval=2.0))
    S = weights.spectrum(eigenvalues, key=basis)
    K = weights.spectrum(np.linspace(1.0, 2.0, d), symmetric=False, key=invertible)
    return jnp.asarray(np.linalg.solve(np.asarray(K).T, np.asarray(S))), K


def polytope(d: int, key: RandomKey) -> Triple:
    """V = I and QᵀK ≻ 0 (T3.1)."""
    Q, K = positive_scores(d, key)
    return Triple(Q, K, None)


def hyperplanes(
    d: int, key: RandomKey, growing: int | None = None, *, rotating: bool = False
) -> Triple:
    """A good triple (T4.1): λ₁ = 1 is simple and leads, and <Qφ₁, Kφ₁> > 0.

    The other eigenvalues are real and uniform in [−0.6, 0.6]. With `growing`, all but
    one of that many lie in [0.3, 0.6] and the rest in [−0.5, −0.1].

    Args:
        d: the dimension.
        key: an integer or a JAX key.
        growing: the number of eigenvalues with positive real part; by default it is left to chance.
        rotating: whether the second and third eigenvalue are a conjugate pair of modulus 0.6 at a
            random angle, which needs d ≥ 3.
    """
    values, basis, queries, keys = jax.random.split(as_key(key), 4)
    u = np.asarray(jax.random.uniform(values, (d - 1,)))
    if growing is None:
        others = MAX_OTHER_MODULUS * (2 * u - 1) + 0j
        if rotating:
            pair = MAX_OTHER_MODULUS * np.exp(1j * np.pi * (0.1 + 0.8 * u[0]))
            others[:2] = pair, pair.conj()
    else:
        others = np.where(np.arange(d - 1) < growing - 1, 0.3 + 0.3 * u, -0.1 - 0.4 * u)
    V = weights.spectrum([1.0, *others.tolist()], symmetric=False, condition=3.0, key=basis)
    phi = np.linalg.eig(np.asarray(V))
    phi_1 = np.real(phi.eigenvectors[:, np.argmax(phi.eigenvalues.real)])
    Q, K = (np.asarray(weights.ginibre(d, key=k)) / np.sqrt(d) for k in (queries, keys))
    Q, K = (M + np.eye(d) for M in (Q, K))
    score = (Q @ phi_1) @ (K @ phi_1)
    towards = np.outer(Q @ phi_1, phi_1) * (max(0.0, 0.5 - score) / np.sum((Q @ phi_1) ** 2))
    return Triple(jnp.asarray(Q), jnp.asarray(K + towards), V)


def subspace(d: int, multiplicity: int, key: RandomKey) -> Triple:
    """QᵀK ≻ 0 and V = I on F, of spectral radius ½ on G (T5.1).

    Args:
        d: the dimension.
        multiplicity: the dimension of F.
        key: an integer or a JAX key.
    """
    scores, values = jax.random.split(as_key(key))
    Q, K = positive_scores(d, scores)
    return Triple(Q, K, weights.paranormal(d, multiplicity, condition=2.0, key=values))


def origin() -> Triple:
    """V = −I, QᵀK = I (TC.5)."""
    return Triple(None, None, -1.0)
