"""How scores become weights: softmax (SA) or the unnormalised exponential (USA)."""

from __future__ import annotations

import abc
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attnflow.attention.masks import Mask


class Kind(eqx.Module):
    """How the weights A_ij follow from the scores `s_ij = β <q_i, k_j>`."""

    @property
    @abc.abstractmethod
    def rowwise(self) -> bool:
        """Whether a row of weights depends on its own scores alone: then blocks of rows will do."""

    @property
    @abc.abstractmethod
    def exponentials_over(self) -> Literal["row", "mass"] | None:
        """What `m_j e^{s_ij}` is divided by to be a weight: the sum of its row, or the total mass.

        None where weights are anything else.
        """

    @property
    @abc.abstractmethod
    def mask_obstacle(self) -> str | None:
        """Why there cannot be a mask, in a sentence; None where there can."""

    @abc.abstractmethod
    def as_rowwise(
        self,
        q: Float[Array, "n k"],
        k: Float[Array, "n k"],
        beta: Float[Array, ""],
        masses: Float[Array, " n"] | None,
        mask: Mask | None,
    ) -> tuple[Float[Array, "n l"], Float[Array, "n l"], Float[Array, ""], Rowwise]:
        """Queries, keys, β and a row-wise kind that have these weights: what backends work on.

        Args:
            q: queries, shape (n, k).
            k: keys, shape (n, k).
            beta: inverse temperature β.
            masses: masses of the tokens, shape (n,), or None for 1 each.
            mask: who may attend to whom, or None for everybody.
        """


class Rowwise(Kind):
    """Weights `A_ij = numerator_ij / denominator_i` from the row i of scores."""

    rowwise = True
    mask_obstacle = None

    @property
    @abc.abstractmethod
    def bounded(self) -> bool:
        """Whether numerators are at most the masses, and so never infinite."""

    def as_rowwise(
        self,
        q: Float[Array, "n k"],
        k: Float[Array, "n k"],
        beta: Float[Array, ""],
        masses: Float[Array, " n"] | None,
        mask: Mask | None,
    ) -> tuple[Float[Array, "n k"], Float[Array, "n k"], Float[Array, ""], Rowwise]:
        return q, k, beta, self

    @abc.abstractmethod
    def numerator(
        self,
        scores: Float[Array, "q n"],
        masses: Float[Array, " n"] | None,
        largest: Float[Array, "*n"] | None = None,
    ) -> Float[Array, "q n"]:
        """The weights before division.

        Args:
            scores: rows of scores, shape (q, n); a masked one is −∞.
            masses: masses of the tokens, shape (n,), or None for 1 each.
            largest: an upper bound of the scores, where one is known; it saves looking for the
                largest.
        """

    @abc.abstractmethod
    def scale(self, largest: Float[Array, ""]) -> Float[Array, ""]:
        """How many times e^{s − largest} a numerator is, where `largest` is known."""

    @abc.abstractmethod
    def denominator(
        self, row_sums: Float[Array, "*q"], total: Float[Array, "*r"]
    ) -> Float[Array, "*q"]:
        """What numerators are divided by, from their row sums and the total mass."""


class Softmax(Rowwise):
    """`A_ij = m_j e^{s_ij} / Σ_k m_k e^{s_ik}`: every row sums to 1.

    The row maximum is taken out first, so that no score is too large to exponentiate. A row with
    nothing to attend to has weights 0.
    """

    bounded = True
    exponentials_over = "row"

    def numerator(
        self,
        scores: Float[Array, "q n"],
        masses: Float[Array, " n"] | None,
        largest: Float[Array, "*n"] | None = None,
    ) -> Float[Array, "q n"]:
        if largest is None:
            if masses is not None:
                scores = jnp.where(masses > 0, scores, -jnp.inf)
            largest = jax.lax.stop_gradient(scores.max(axis=-1, keepdims=True))
            largest = jnp.where(jnp.isfinite(largest), largest, 0)
        weights = jnp.exp(scores - largest)
        return weights if masses is None else weights * masses

    def scale(self, largest: Float[Array, ""]) -> Float[Array, ""]:
        return jnp.ones_like(largest)

    def denominator(
        self, row_sums: Float[Array, "*q"], total: Float[Array, "*r"]
    ) -> Float[Array, "*q"]:
        return jnp.where(row_sums > 0, row_sums, 1)


class Unnormalised(Rowwise):
    """`A_ij = m_j e^{s_ij} / Σ_k m_k`: USA divides by n (by the total mass), under a mask too."""

    bounded = False
    exponentials_over = "mass"

    def numerator(
        self,
        scores: Float[Array, "q n"],
        masses: Float[Array, " n"] | None,
        largest: Float[Array, "*n"] | None = None,
    ) -> Float[Array, "q n"]:
        weights = jnp.exp(scores)
        return weights if masses is None else weights * masses

    def scale(self, largest: Float[Array, ""]) -> Float[Array, ""]:
        return jnp.exp(largest)

    def denominator(
        self, row_sums: Float[Array, "*q"], total: Float[Array, "*r"]
    ) -> Float[Array, "*q"]:
        return jnp.broadcast_to(total, row_sums.shape)
