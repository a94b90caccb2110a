"""`attend`: the one place where scores become weighted means."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from attnflow.attention.backends import choose
from attnflow.attention.kinds import Kind, Softmax
from attnflow.attention.masks import Mask
from attnflow.attention.task import Backend, Task


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
    unit: bool = False,
    tangential: bool = False,
) -> Float[Array, "n d"]:
    """The means `Σ_j A_ij v_j` of one head, with A from the scores `β <q_i, k_j>`.

    `unit` and `tangential` make it faster or more accurate where they hold.

    Args:
        q: queries, shape (n, k).
        k: keys, shape (n, k).
        v: values, shape (n, d).
        beta: inverse temperature β.
        kind: how scores become weights; by default `Softmax()`.
        mask: who may attend to whom; by default everybody.
        masses: the m_j, shape (n,), of tokens that stand for several; by default 1 each.
        backend: how the sums are computed; by default what is fastest for n.
        unit: whether q and k are unit vectors.
        tangential: whether v are tokens and only the part of the mean i across v_i is wanted.

    >>> x = jnp.eye(2)
    >>> print(attend(x, x, x, beta=0.0))
    [[0.5 0.5]
     [0.5 0.5]]
    """
    kind = Softmax() if kind is None else kind
    beta = jnp.asarray(beta, q.dtype)
    masses = None if masses is None else masses.astype(q.dtype)
    unit = unit and kind.rowwise
    q, k, beta, rowwise = kind.as_rowwise(q, k, beta, masses, mask)
    task = Task(q, k, v, beta, masses, mask, rowwise, unit, tangential)
    if backend is None:
        backend = choose(len(q), sphere=q.shape[1] if task.unit and mask is None else None)
    return backend.means(task)


def attention_weights(
    q: Float[Array, "n k"],
    k: Float[Array, "n k"],
    *,
    beta: Float[Array, ""] | float | int = 1.0,
    kind: Kind | None = None,
    mask: Mask | None = None,
    masses: Float[Array, " n"] | None = None,
) -> Float[Array, "n n"]:
    """The matrix A itself, n² numbers.

    Args:
        q: queries, shape (n, k).
        k: keys, shape (n, k).
        beta: inverse temperature β.
        kind: how scores become weights; by default `Softmax()`.
        mask: who may attend to whom; by default everybody.
        masses: the m_j, shape (n,), of tokens that stand for several; by default 1 each.

    >>> x = jnp.eye(2)
    >>> print(attention_weights(x, x, beta=0.0))
    [[0.5 0.5]
     [0.5 0.5]]
    """
    kind = Softmax() if kind is None else kind
    masses = None if masses is None else masses.astype(q.dtype)
    q, k, beta, rowwise = kind.as_rowwise(q, k, jnp.asarray(beta, q.dtype), masses, mask)
    task = Task(q, k, q, beta, masses, mask, rowwise)
    numerator = task.numerator(task.q, jnp.arange(len(q)))
    return numerator / task.denominator(numerator.sum(axis=1))[:, None]
