"""What `attend` is asked for, and what carries it out: `Task` and `Backend`."""

from __future__ import annotations

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attnflow.attention.kinds import Rowwise
from attnflow.attention.masks import Mask

MIN_VALUES_ROW_SUMS = 16
"""From this many columns of v on, row sums are cheaper than one more column."""


class Task(eqx.Module):
    """What `attend` was asked for: weighted means of v under the weights of β <q_i, k_j>.

    Args:
        q: queries, shape (n, k).
        k: keys, shape (n, k).
        v: values, shape (n, d).
        beta: inverse temperature β.
        masses: masses of the tokens, shape (n,), or None for 1 each.
        mask: who may attend to whom, or None for everybody.
        kind: how scores become weights.
        unit: whether q and k are unit vectors, so that β bounds the scores.
        tangential: whether v are tokens and only the part of the means across each of them matters
            (the velocity on a sphere), so that any multiple of v_i may be added to the mean of
            token i. With `unit` too, q = k = v.
    """

    q: Float[Array, "n k"]
    k: Float[Array, "n k"]
    v: Float[Array, "n d"]
    beta: Float[Array, ""]
    masses: Float[Array, " n"] | None
    mask: Mask | None
    kind: Rowwise
    unit: bool = eqx.field(static=True, default=False)
    tangential: bool = eqx.field(static=True, default=False)

    def numerator(self, q: Float[Array, "q k"], rows: Int[Array, " q"]) -> Float[Array, "q n"]:
        """The numerators of the weights of the tokens `rows`, whose queries are q."""
        scores = (self.beta * q) @ self.k.T
        if self.mask is not None:
            scores = jnp.where(self.mask.rows(rows, len(self.k)), scores, -jnp.inf)
        known = self.unit and self.mask is None
        return self.kind.numerator(scores, self.masses, self.beta if known else None)

    def denominator(self, row_sums: Float[Array, " q"]) -> Float[Array, " q"]:
        """What they are divided by."""
        return self.kind.denominator(row_sums, self.total)

    @property
    def total(self) -> Float[Array, "*batch"]:
        """The total mass: n where each token has mass 1."""
        if self.masses is None:
            return jnp.asarray(self.k.shape[-2], self.k.dtype)
        return self.masses.sum(axis=-1)

    def values(self) -> Float[Array, "n e"]:
        """v with a column of ones, whose weighted sum is the row sum."""
        return jnp.concatenate([self.v, jnp.ones((len(self.v), 1), self.v.dtype)], axis=1)

    def sums(
        self, numerator: Float[Array, "q n"]
    ) -> tuple[Float[Array, "q d"], Float[Array, " q"]]:
        """The weighted sums of v and the row sums: in one product, where v has few columns."""
        if self.v.shape[1] >= MIN_VALUES_ROW_SUMS:
            return numerator @ self.v, numerator.sum(axis=1)
        both = numerator @ self.values()
        return both[:, :-1], both[:, -1]


class Backend(eqx.Module):
    """A way to compute `Σ_j A_ij v_j` for all i."""

    @abc.abstractmethod
    def means(self, task: Task) -> Float[Array, "n d"]:
        """The weighted means."""

    @abc.abstractmethod
    def scores_held(self, n: int) -> int:
        """How many scores of a head are in memory at once."""

    @abc.abstractmethod
    def error_bound(self, task: Task) -> Float[Array, ""] | None:
        """A bound on the error of every mean; None where it is rounding alone."""
