"""What the tokens of one text do in a model: one function for each number of a survey."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from attnflow import observe
from attnflow.spaces import unit_rows
from attnflow.systems import PostNormTransformer, PreNormTransformer

BINS = 40
"""Number of bins on [−1, 1] for histograms of overlaps."""

RANK_TOL = 1e-3
"""Singular values of attention above this fraction of the largest count towards its rank."""

LEADER_SHARE = 0.5
"""A leader receives at least this share of some token's attention."""


class Directions(NamedTuple):
    """Measures of unit tokens at each of T states.

    Attributes:
        histogram: density of the overlaps on equal bins of [−1, 1], shape (T, bins).
        mean_overlap: mean overlap over pairs, shape (T,).
        energy: the energy E_β, shape (T,).
        effective_rank: the effective rank, shape (T,).
    """

    histogram: Float[Array, "T bins"]
    mean_overlap: Float[Array, " T"]
    energy: Float[Array, " T"]
    effective_rank: Float[Array, " T"]


@jax.jit
def directions(u: Float[Array, "T n d"], beta: Float[Array, ""]) -> Directions:
    """Overlaps, energy E_β and effective rank of unit tokens at each state."""

    def one(x: Array) -> Directions:
        n = len(x)
        mean = (jnp.sum(observe.overlaps(x)) - jnp.sum(x * x)) / (n * (n - 1))
        histogram, _ = observe.overlap_histogram(x, BINS)
        return Directions(histogram, mean, observe.energy(x, beta), observe.effective_rank(x))

    return jax.lax.map(one, u)


class Attended(NamedTuple):
    """The attention of one layer on a text, and how its scores compare with those of SA.

    Variances are taken over the tokens j that i may see, then summed over i, because adding a
    constant to a row of scores changes nothing.

    Attributes:
        A: attention matrices, shape (H, n, n).
        effective_beta: the β at which the scores `β <u_i, u_j>` of the directions u vary as much as
            the head's own: the square root of the ratio of the variances. Shape (H,).
        alignment: the correlation of these two sets of scores, shape (H,). It is 1 if the head is
            SA, and negative if tokens attend to what is unlike them.
    """

    A: Float[Array, "H n n"]
    effective_beta: Float[Array, " H"]
    alignment: Float[Array, " H"]


@eqx.filter_jit
def attended(
    system: PostNormTransformer | PreNormTransformer,
    t: Any,
    x: Float[Array, "n d"],
    masses: Float[Array, " n"],
) -> Attended:
    """The attention of a layer at the state x.

    Args:
        system: the layers of a model.
        t: the layer.
        x: tokens, shape (n, d).
        masses: 1 for tokens and 0 for padding, shape (n,).
    """
    y = x if isinstance(system, PostNormTransformer) else system.norm(t, x, 0)
    n, heads = len(x), system.heads.at(t, x.dtype)
    may_see = jnp.broadcast_to(masses > 0, (n, n))
    if system.mask is not None:
        may_see = may_see & system.mask.rows(jnp.arange(n), n)
    counts = jnp.maximum(may_see.sum(axis=1, keepdims=True), 1).astype(x.dtype)
    weights = jnp.where(may_see, masses[:, None] / counts, 0)

    def centred(s: Array) -> Array:
        mean = jnp.sum(jnp.where(may_see, s, 0), axis=1, keepdims=True) / counts
        return jnp.where(may_see, s - mean, 0)

    u = unit_rows(y)
    plain = centred(observe.overlaps(u))

    def compared(head: Any) -> Array:
        own = centred(system.beta.astype(x.dtype) * head.queries(y) @ head.keys(y).T)
        return jnp.stack([jnp.sum(weights * a * b) for a, b in ((own, own), (own, plain))])

    both = heads.each(compared).reshape(-1, 2)
    spread = jnp.sum(weights * plain**2)
    A = system.attention(t, x, masses).reshape(-1, n, n)
    return Attended(A, jnp.sqrt(both[:, 0] / spread), both[:, 1] / jnp.sqrt(both[:, 0] * spread))


class Join(NamedTuple):
    """Clusters of the state before `layer` that are one cluster after it."""

    layer: int
    groups: tuple[tuple[int, ...], ...]


def joins(labels: Int[np.ndarray, "T n"]) -> list[Join]:
    """All joins along the layers, from the cluster of each token at each state.

    Clusters may separate again. If the same tokens join later, that is another join.

    >>> joins(np.array([[0, 1, 2], [0, 0, 2], [1, 1, 1]]))
    [Join(layer=1, groups=((0,), (1,))), Join(layer=2, groups=((0, 1), (2,)))]
    """
    found = []
    for layer in range(1, len(labels)):
        before, after = labels[layer - 1], labels[layer]
        for cluster in np.unique(after):
            tokens = np.flatnonzero(after == cluster)
            groups = [tokens[before[tokens] == old] for old in np.unique(before[tokens])]
            if len(groups) > 1:
                ordered = sorted(tuple(int(i) for i in group) for group in groups)
                found.append(Join(layer, tuple(ordered)))
    return found


class Collapse(NamedTuple):
    """Neural collapse of the unit tokens at each state; a class is a word of the vocabulary.

    Attributes:
        classes: number of words that occur at least twice.
        ratio: `observe.neural_collapse(...).ratio` at each state.
        angle_error: `observe.neural_collapse(...).angle_error` at each state.
    """

    classes: int
    ratio: list[float]
    angle_error: list[float]


def collapse(u: Float[np.ndarray, "T n d"], ids: Int[np.ndarray, " n"]) -> Collapse | None:
    """Neural collapse over the words that occur at least twice; None if fewer than two do."""
    words, counts = np.unique(ids, return_counts=True)
    again = np.isin(ids, words[counts > 1])
    classes = int(np.sum(counts > 1))
    if classes < 2:
        return None
    found = [observe.neural_collapse(x[again], ids[again]) for x in u]
    return Collapse(classes, [f.ratio for f in found], [f.angle_error for f in found])


def foremost(received: Sequence[float] | np.ndarray, count: int = 5) -> list[int]:
    """The tokens that receive the most attention; ties go to the first ones.

    >>> foremost([0.1, 0.6, 0.3], 2)
    [1, 2]
    """
    return [int(i) for i in np.argsort(-np.asarray(received), kind="stable")[:count]]
