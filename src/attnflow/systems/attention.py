"""What all attention systems share: `Σ_h Σ_j A^h_ij V_h x_j`, projected to a space."""

from __future__ import annotations

from typing import Any

import equinox as eqx
from jaxtyping import Array, ArrayLike, Float, Real

from attnflow.attention import (
    Backend,
    Kind,
    Mask,
    Spectral,
    Task,
    as_mask,
    attend,
    attention_weights,
)
from attnflow.attention.backends import as_backend, choose
from attnflow.attention.masks import Given
from attnflow.checks import as_floats, as_number, is_traced
from attnflow.errors import InputError
from attnflow.spaces import Ellipsoid, Euclidean, Space, Sphere
from attnflow.systems.base import System
from attnflow.weights import Heads, Weight


class AttentionSystem(System):
    """Attention heads on a space: `x_i' = project(Σ_h Σ_j A^h_ij V_h x_j)`.

    The layer is the residual step with the full, unprojected update, then retraction: E3 on R^d,
    SAd on the sphere. Tokens that are integers become floats.
    """

    space: Space
    heads: Heads
    beta: Float[Array, ""]
    kind: Kind
    mask: Mask | None
    backend: Backend | None

    def __init__(
        self,
        space: Space,
        kind: Kind,
        beta: Float[ArrayLike, ""] | int,
        *,
        Q: Weight = None,
        K: Weight = None,
        V: Weight = None,
        mask: Any = None,
        backend: Any = None,
    ):
        self.space = space
        self.kind = kind
        self.beta = as_beta(beta)
        self.heads = Heads(Q, K, V)
        self.mask = as_mask(mask)
        self.backend = as_backend(backend)

    def drift(
        self, t: Any, x: Real[Array, "n d"], masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n d"]:
        """`Σ_h Σ_j A^h_ij V_h x_j`, before any projection."""
        return self._summed(t, x, masses, tangential=False)

    def _summed(
        self, t: Any, x: Real[Array, "n d"], masses: Any, tangential: bool
    ) -> Float[Array, "n d"]:
        x = as_floats(x)
        backend = self._backend(x)

        def one(head: Heads) -> Array:
            means = attend(
                head.queries(x),
                head.keys(x),
                head.values(x),
                beta=self.beta.astype(x.dtype),
                kind=self.kind,
                mask=self.mask,
                masses=masses,
                backend=backend,
                unit=self._unit,
                tangential=tangential,
            )
            return head.out(means)

        return self.heads.at(t, x.dtype).sum(one)

    @property
    def _unit(self) -> bool:
        """Whether scores are those of unit vectors, and nothing else enters the weights."""
        return isinstance(self.space, Sphere) and self.heads.plain_scores and self.kind.rowwise

    def _backend(self, x: Float[Array, "n d"]) -> Backend:
        if self.backend is not None:
            return self.backend
        return choose(
            len(x), self.heads.count, x.shape[-1] if self._unit and self.mask is None else None
        )

    def velocity(
        self, t: Any, x: Real[Array, "n d"], masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n d"]:
        """The tangential part of the drift."""
        x = as_floats(x)
        if isinstance(self.space, Sphere) and self.heads.isotropic and self.mask is None:
            return self.space.project(x, self._summed(t, x, masses, tangential=True))
        return self.space.project(x, self.drift(t, x, masses))

    def layer(
        self, k: Any, x: Real[Array, "n d"], dt: Any, masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n d"]:
        """The residual step with the full update, then retraction."""
        x = as_floats(x)
        return self.space.retract(x + dt * self.drift(k * dt, x, masses))

    def attention(
        self, t: Any, x: Real[Array, "n d"], masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "*heads n n"]:
        """The weights A_ij that multiply V x_j; with several heads one matrix for each."""
        x = as_floats(x)

        def one(head: Heads) -> Array:
            return attention_weights(
                head.queries(x),
                head.keys(x),
                beta=self.beta.astype(x.dtype),
                kind=self.kind,
                mask=self.mask,
                masses=masses,
            )

        return self.heads.at(t, x.dtype).each(one)

    def error_bound(
        self, x: Real[Array, "n d"], masses: Float[Array, " n"] | None = None
    ) -> Float[Array, ""] | None:
        """A bound on the error of each mean, where sums are expanded in harmonics.

        None where they are not, and exact up to rounding: see `Spectral`.

        >>> import attnflow as af
        >>> x = af.initial.sphere(n=3000, d=2, seed=0)
        >>> bool(af.SA(beta=4.0).error_bound(x) < 1e-11)
        True
        """
        x = as_floats(x)
        backend = self._backend(x)
        if not isinstance(backend, Spectral):
            return None
        beta = self.beta.astype(x.dtype)
        masses = None if masses is None else masses.astype(x.dtype)
        return backend.error_bound(Task(x, x, x, beta, masses, None, self.kind, unit=True))

    def precise(self, n: int) -> AttentionSystem:
        """With sums whose error is relative to each term, and no expansion in harmonics."""
        if self.backend is not None:
            return self
        return eqx.tree_at(
            lambda system: system.backend,
            self,
            choose(n, self.heads.count),
            is_leaf=lambda leaf: leaf is None,
        )

    @property
    def mergeable(self) -> bool:
        """On a bounded space and without a mask, equal tokens stay equal and close ones close."""
        return isinstance(self.space, (Sphere, Ellipsoid)) and self.mask is None

    def restricted(self, basis: Float[Array, "r d"]) -> AttentionSystem | None:
        """With QBᵀ and KBᵀ for Q and K, where the space is round and V keeps the subspace."""
        if not isinstance(self.space, (Sphere, Euclidean)):
            return None
        heads = self.heads.restricted(basis)
        if heads is None or heads is self.heads:
            return None if heads is None else self
        return eqx.tree_at(lambda system: system.heads, self, heads)

    @property
    def breaks(self) -> tuple[float, ...]:
        """The periods at whose multiples a weight is drawn anew."""
        return self.heads.breaks

    def check_start(self, x: Float[Array, "*batch n d"]) -> None:
        """Tokens must have the dimension of the weights, and be as many as the mask has."""
        n, d = x.shape[-2:]
        if self.heads.dim not in (None, d):
            raise InputError(
                f"x0 has tokens of dimension d = {d}, but the weights of "
                f"{type(self).__name__} expect d = {self.heads.dim}."
            )
        if isinstance(self.mask, Given) and len(self.mask.allowed) != n:
            raise InputError(f"x0 has {n} tokens, but the mask is for {len(self.mask.allowed)}.")

    def scores_held(self, n: int) -> int:
        """As many as the backend holds for each head."""
        backend = choose(n, self.heads.count) if self.backend is None else self.backend
        held = backend.scores_held(n) if self.kind.rowwise else n * n
        return (self.heads.count or 1) * held

    def parameters(self) -> dict[str, Any]:
        """β, and whatever is not its default."""
        named = {"Q": self.heads.Q, "K": self.heads.K, "V": self.heads.V}
        named |= {"mask": self.mask, "backend": self.backend}
        return {"beta": self.beta} | {k: v for k, v in named.items() if v is not None}


def as_beta(beta: Any) -> Float[Array, ""]:
    """The inverse temperature as an array leaf, so that a new value recompiles nothing."""
    array = as_number(beta, "beta")
    if not is_traced(array) and array < 0:
        raise InputError(
            f"beta must not be negative, but it is {beta!r}: Q=-1.0 turns scores round."
        )
    return array
