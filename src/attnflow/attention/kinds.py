"""How scores become weights: softmax (SA) or the unnormalised exponential (USA)."""

from __future__ import annotations

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class Kind(eqx.Module):
    """Weights `A_ij = numerator_ij / denominator_i` from complete rows of scores."""

    @abc.abstractmethod
    def parts(
        self, scores: Float[Array, "q n"], masses: Float[Array, " n"] | None
    ) -> tuple[Float[Array, "q n"], Float[Array, " q"]]:
        """Numerator and denominator of the weights; a masked score is −∞."""


class Softmax(Kind):
    """`A_ij = m_j e^{s_ij} / Σ_k m_k e^{s_ik}`: every row sums to 1.

    The row maximum is taken out first, so that no score is too large to exponentiate. A row with
    nothing to attend to has weights 0.
    """

    def parts(
        self, scores: Float[Array, "q n"], masses: Float[Array, " n"] | None
    ) -> tuple[Float[Array, "q n"], Float[Array, " q"]]:
        """e^{s − max s} times the masses, and its row sums."""
        if masses is not None:
            scores = jnp.where(masses > 0, scores, -jnp.inf)
        largest = jax.lax.stop_gradient(scores.max(axis=-1, keepdims=True))
        weights = jnp.exp(scores - jnp.where(jnp.isfinite(largest), largest, 0))
        if masses is not None:
            weights = weights * masses
        total = weights.sum(axis=-1)
        return weights, jnp.where(total > 0, total, 1)


class Unnormalised(Kind):
    """`A_ij = m_j e^{s_ij} / Σ_k m_k`: USA divides by n (by the total mass), under a mask too."""

    def parts(
        self, scores: Float[Array, "q n"], masses: Float[Array, " n"] | None
    ) -> tuple[Float[Array, "q n"], Float[Array, " q"]]:
        """e^s times the masses, and the total mass."""
        weights = jnp.exp(scores)
        if masses is None:
            return weights, jnp.full(scores.shape[0], float(scores.shape[1]), scores.dtype)
        return weights * masses, jnp.full(scores.shape[0], masses.sum())
