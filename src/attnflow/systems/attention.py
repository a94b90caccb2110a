"""What all attention systems share: `Σ_h Σ_j A^h_ij V_h x_j`, projected to a space."""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import equinox as eqx
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Real

from attnflow.attention import (
    Backend,
    Kind,
    Mask,
    Task,
    as_mask,
    attend,
    attention_weights,
)
from attnflow.attention.backends import as_backend, choose
from attnflow.checks import as_floats, as_number, is_traced
from attnflow.errors import InputError
from attnflow.retired import keywords_only
from attnflow.systems.base import Cost, System
from attnflow.systems.fields import AttentionField
from attnflow.systems.presets import MATRIX
from attnflow.weights import AbstractHeads, Breaks, Heads, Weight

RUN_APART = "tokens that are close on R^d may run apart"


class AttentionSystem(System):
    """Attention heads on a space: `x_i' = project(Σ_h Σ_j A^h_ij V_h x_j)`.

    The layer is the residual step with the full, unprojected update, then retraction: [E](3) on
    R^d, division by the length on the sphere. Tokens that are integers become floats.

    A subclass gives `space` and `kind`, says with `attention_only` whether that equation is all of
    it, and with `negative_beta` whether β may be negative.

    Args:
        beta: inverse temperature β. 0 is uniform attention; with a negative β (`SA` and `USA`)
            tokens attend to those that are unlike them. Below −350 (float32: −40) β must be known
            when the system is made, or its exponentials overflow and the velocity is NaN.
        Q: query matrix, k × d; a number c is c times the identity, which is the default. A leading
            axis is one of heads, whose sums add up; a function of t, `PerLayer`, `Redrawn` or
            `Scheduled` changes in time.
        K: key matrix, like Q.
        V: value matrix, d × d, like Q; `V=-1.0` repels.
        mask: who sees whom: "causal", a boolean matrix (n, n), or a `Mask`; by default everybody.
        backend: how sums are computed: "dense", "blocked", "spectral" or a `Backend`; by default
            what is fastest for the number of tokens.
    """

    noise_obstacle: ClassVar[str | None] = None

    kind: eqx.AbstractVar[Kind]
    heads: AbstractHeads
    beta: Float[Array, ""]
    mask: Mask | None
    backend: Backend | None
    negative: bool = eqx.field(static=True)
    negative_beta: ClassVar[bool] = False
    drawn: ClassVar = {"Q": MATRIX, "K": MATRIX, "V": MATRIX}

    @keywords_only("weights are keywords, as in SA(1.0, Q=Q, K=K, V=V)")
    def __init__(
        self,
        beta: Float[ArrayLike, ""] | int,
        *,
        Q: Weight = None,
        K: Weight = None,
        V: Weight = None,
        mask: Any = None,
        backend: Any = None,
    ):
        self.beta = as_beta(beta)
        self.negative = not is_traced(self.beta) and float(self.beta) < 0
        if self.negative and not self.negative_beta:
            raise InputError(
                f"beta must not be negative for {type(self).__name__}, but it is "
                f"{float(self.beta):g}: Q=-1.0 turns scores round."
            )
        self.heads = Heads(Q, K, V)
        if mask is not None and self.kind.mask_obstacle is not None:
            raise InputError(self.kind.mask_obstacle)
        self.mask = as_mask(mask)
        self.backend = as_backend(backend)

    @property
    @abc.abstractmethod
    def attention_only(self) -> bool:
        """Whether the velocity is the projected sum over heads of the tokens, and nothing else."""

    def attention_field(self, t: Any) -> AttentionField | None:
        """That of SA or USA: attention alone on the sphere, Q = K = I, V = cI, no mask."""
        over = self.kind.exponentials_over
        plain = self.attention_only and self.space.unit and self.mask is None
        if not plain or over is None or not self.heads.isotropic:
            return None
        c = self.heads.at(t, self.beta.dtype).V
        return AttentionField(self.beta, c, normalised=over == "row")

    @property
    def inverse_temperature(self) -> Float[Array, ""]:
        return self.beta

    @property
    def attention_system(self) -> AttentionSystem:
        return self

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

        def one(head: AbstractHeads) -> Array:
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
        """Whether scores are those of unit vectors, a token's largest being that with itself."""
        plain = self.heads.plain_scores and self.kind.rowwise and not self.negative
        return self.space.unit and plain

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
        if self.space.unit and self.heads.scalar_values and self.mask is None:
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

        def one(head: AbstractHeads) -> Array:
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
        >>> x = af.initial.sphere(n=3000, d=2, key=0)
        >>> bool(af.SA(beta=4.0).error_bound(x) < 1e-11)
        True
        """
        if not self._unit or self.mask is not None:
            return None
        x = as_floats(x)
        beta = self.beta.astype(x.dtype)
        masses = None if masses is None else masses.astype(x.dtype)
        q, k, beta, kind = self.kind.as_rowwise(x, x, beta, masses, None)
        task = Task(q, k, x, beta, masses, None, kind, unit=True)
        return self._backend(x).error_bound(task)

    def with_exact_sums(self, n: int) -> AttentionSystem:
        """With sums whose error is relative to each term, and no expansion in harmonics."""
        if self.backend is not None:
            return self
        return eqx.tree_at(
            lambda system: system.backend,
            self,
            choose(n, self.heads.count, exact=True),
            is_leaf=lambda leaf: leaf is None,
        )

    @property
    def autonomous(self) -> bool:
        """Whether no weight depends on t, where attention is all there is."""
        return self.attention_only and self.heads.autonomous

    @property
    def merging_obstacle(self) -> str | None:
        """None without a mask, with constant weights, in a bounded space."""
        if not self.attention_only:
            return super().merging_obstacle
        return RUN_APART if self.space.flat else self._what_parts_equals

    @property
    def _what_parts_equals(self) -> str | None:
        """What in attention treats equal tokens differently, or parts them again; None: nothing.

        Not yet an answer for a system: that says for itself what else moves its tokens.
        """
        if self.mask is not None:
            return "its mask lets equal tokens see different ones"
        if self.heads.placed:
            return "its rotary positions move equal tokens apart"
        if not self.heads.autonomous:
            return "its weights change in time, and tokens that have met may part again"
        return None

    def restricted(self, basis: Float[Array, "r d"]) -> AttentionSystem | None:
        """With QBᵀ and KBᵀ for Q and K, where the space is round and V keeps the subspace."""
        if not (self.attention_only and self.space.rotations):
            return None
        return self._with_restricted_heads(basis)

    def _with_restricted_heads(self, basis: Float[Array, "r d"]) -> AttentionSystem | None:
        heads = self.heads.restricted(basis)
        if heads is None or heads is self.heads:
            return None if heads is None else self
        return eqx.tree_at(lambda system: system.heads, self, heads)

    @property
    def breaks(self) -> Breaks:
        """The times at which a weight jumps."""
        return self.heads.breaks

    def check_start(self, x: Float[Array, "*batch n d"]) -> None:
        """Tokens must have the dimension of the weights, and be as many as the mask has."""
        n, d = x.shape[-2:]
        if self.heads.dim not in (None, d):
            raise InputError(
                f"x0 has tokens of dimension d = {d}, but the weights of "
                f"{type(self).__name__} expect d = {self.heads.dim}."
            )
        if self.mask is not None and self.mask.tokens not in (None, n):
            raise InputError(f"x0 has {n} tokens, but the mask is for {self.mask.tokens}.")

    def cost(self, n: int) -> Cost:
        """All pairs; in memory are as many as the backend holds for each head."""
        backend = choose(n, self.heads.count) if self.backend is None else self.backend
        held = backend.scores_held(n) if self.kind.rowwise else n * n
        count = self.heads.count or 1
        return Cost(count * n * n, count * held)

    def parameters(self) -> dict[str, Any]:
        """β, and whatever is not its default."""
        named = {"Q": self.heads.Q, "K": self.heads.K, "V": self.heads.V}
        named |= {"mask": self.mask, "backend": self.backend}
        return {"beta": self.beta} | {k: v for k, v in named.items() if v is not None}


def as_beta(beta: Any) -> Float[Array, ""]:
    """The inverse temperature as an array leaf, so that a new value recompiles nothing."""
    if np.ndim(beta) > 0:
        raise InputError(
            f"beta must be a number, but its shape is {np.shape(beta)}: weights are keywords, as "
            "in PureAttention(1.0, Q=Q, K=K, V=V)."
        )
    return as_number(beta, "beta")
