"""`attend`: the one place where scores become weighted means."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from attnflow.attention.backends import Backend, choose, scores_of
from attnflow.attention.kinds import Kind, Softmax
from attnflow.attention.masks import Mask


def attend(
    q: Float[Array, "n k"],
    k: Float[Array, "n k"],
    v: Float[Array, "n d"],
    *,
    beta: Float[Array, ""] | float | int = 1.0,
    kind: Kind | None = None,
    mask: Mask | None = None,
    masses: Float[Array, " n"] | None = None,
    backend: Backend | None = None,
) -> Float[Array, "n d"]:
    """The means `Σ_j A_ij v_j` of one head, with A from the scores `β <q_i, k_j>`.

    `kind` says how scores become weights (default `Softmax()`), `masses` are the m_j of tokens
    that stand for several, `backend` overrides the choice by size.

    >>> x = jnp.eye(2)
    >>> print(attend(x, x, x, beta=0.0))
    [[0.5 0.5]
     [0.5 0.5]]
    """
    backend = choose(len(q), None) if backend is None else backend
    kind = Softmax() if kind is None else kind
    return backend.means(beta * q, k, v, kind=kind, mask=mask, masses=masses)


def attention_weights(
    q: Float[Array, "n k"],
    k: Float[Array, "n k"],
    *,
    beta: Float[Array, ""] | float | int = 1.0,
    kind: Kind | None = None,
    mask: Mask | None = None,
    masses: Float[Array, " n"] | None = None,
) -> Float[Array, "n n"]:
    """The matrix A itself, for whoever wants to look at it: n² numbers.

    >>> x = jnp.eye(2)
    >>> print(attention_weights(x, x, beta=0.0))
    [[0.5 0.5]
     [0.5 0.5]]
    """
    scores = scores_of(beta * q, k, jnp.arange(len(q)), mask)
    numerator, denominator = (Softmax() if kind is None else kind).parts(scores, masses)
    return numerator / denominator[:, None]
