"""Attention on R^d seen through the rescaling `z = e^{−tV} x`."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import expm
from jaxtyping import Array, ArrayLike, Bool, Float, Inexact, Real

from attnflow.attention import Softmax, attend, attention_weights
from attnflow.attention.backends import choose
from attnflow.attention.close import close_weights
from attnflow.checks import as_floats, is_traced, on_host
from attnflow.errors import Fault, InputError
from attnflow.retired import keywords_only
from attnflow.spaces import Euclidean
from attnflow.systems.attention import AttentionSystem
from attnflow.systems.balance import (
    Split,
    balance,
    conjugate,
    exponential,
    frame,
    lengths_in_parts,
    power,
    real_parts,
    scalar_if_isotropic,
)
from attnflow.systems.base import row_lengths
from attnflow.systems.options import options_of
from attnflow.systems.presets import Preset
from attnflow.weights import AbstractHeads, Weight, apply

SMALL_PART = 1e-3
"""A coordinate that is smaller than this part of the largest was small from the start."""

SWITCH_STEP = 1e-4
"""The step, in units of the fastest decay, below which a switch of the attention is crossed."""

SCORE_ERROR, MAX_CLOSE_TOKENS = 1e-3, 256
"""Where rounding may change scores by this, up to so many tokens are told apart by their
differences: n² d products."""


class RescaledAttention(AttentionSystem):
    """Rescaled attention on R^d, [E](4): the state is `z_i = e^{−tV} x_i` of `PureAttention`.

        z_i' = Σ_j A_ij V (z_j − z_i),   A_ij = softmax_j(β <Q e^{tV} z_i, K e^{tV} z_j>)

    Where V grows, scores sharpen like e^{2λt} and tokens settle at vertices of a polytope (T3.1),
    on hyperplanes (T4.1) or on a polytope times a subspace (T5.1). With several heads V is
    `V̄ = Σ_h V_h` in the exponent. Q and K may be functions of t, V must be constant.

    It is integrated in balanced coordinates (`encode`): those of z along what grows, those of x
    along the rest, each in the basis of its own invariant subspace. A trajectory keeps them as
    `inner`, and `Trajectory.along`, `observe.dual_coordinates`, `observe.attention_along` and
    `theory.measured_geometry` read them. z itself grows along decaying directions, and floats
    cannot hold small coordinates beside large ones for long: entries of z in which a
    coordinate is lost are NaN.

    Its `Layers` are [E] Remark 4. Tokens that tie for the largest score have a nearly
    discontinuous field at late times: a run may then end with `IncompleteRun`.

    >>> system = RescaledAttention(V=2.0)
    >>> print(system.velocity(0.0, jnp.array([[1.0], [1.0]])))
    [[0.]
     [0.]]
    """

    equation: ClassVar[str] = "z_i' = Σ_j A_ij(e^{tV} z) V (z_j − z_i)"
    source: ClassVar[str] = "[E](4)"
    attention_only = False
    pure_attention = "rescaled"
    space = Euclidean()
    kind = Softmax()
    preset = Preset("beta", 1.0, "cube", 10.0, 3)
    encoded = True
    merging_obstacle = "its field changes in time, and tokens that have met may part again"
    noise_obstacle = "is integrated in other coordinates than its state"

    split: Split | None
    mu: Float[Array, ""]

    @keywords_only("weights are keywords, as in PureAttention(1.0, Q=Q, K=K, V=V)")
    @options_of(AttentionSystem)
    def __init__(self, beta: Float[ArrayLike, ""] | int = 1.0, *, V: Weight = None, **options: Any):
        if callable(V):
            raise InputError("V must be constant in rescaled attention: z = e^{−tV} x needs one V.")
        super().__init__(beta, V=scalar_if_isotropic(V), **options)
        total = self.total
        self.split = balance(total) if total.ndim else None
        if self.split is None:
            self.mu = on_host(lambda c: c.clip(0), jax.lax.stop_gradient(total))
        else:
            self.mu = self.split.mu

    @property
    def total(self) -> Float[Array, ...]:
        """`V̄ = Σ_h V_h`: a matrix, or the number c when it is c times the identity."""
        V, count = self.heads.V, self.heads.count or 1
        if V is None:
            return jnp.asarray(float(count))
        if V.ndim == 3:
            return V.sum(axis=0)
        return V if count == 1 else count * V

    def to_x(self, t: Any, z: Real[Array, "n d"]) -> Float[Array, "n d"]:
        """`x = e^{tV} z`, the tokens of pure attention, which overflow where V grows for long."""
        return exponential(t, self.total, z)

    def to_x_inside(self, t: Any, y: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """x of the balanced coordinates y."""
        if self.split is None:
            return y * jnp.exp(self.mu.astype(y.dtype) * t)
        split = self.split.astype(y.dtype)
        return apply(split.basis @ expm(t * split.C), y)

    def to_z(self, t: Any, x: Real[Array, "n d"]) -> Float[Array, "n d"]:
        """`z = e^{−tV} x`."""
        return exponential(-t, self.total, x)

    def velocity(
        self, t: Any, x: Real[Array, "n d"], masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n d"]:
        """The field (4) itself, at z = x."""
        x = as_floats(x)
        y = self.encode(t, x)
        if self.heads.count is None:
            means = self._means(t, y, x, masses)
            return apply(self._now(x.dtype).V, means - x)
        along = self._rescaled(t, self.flow(t, y, masses) + self._growth(y))
        if self.split is not None:
            along = apply(self.split.basis.astype(x.dtype), along)
        return along - apply(self.total.astype(x.dtype), x)

    def encode(self, t: Any, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """The balanced coordinates y of the state z = x, subspace after subspace."""
        if self.split is None:
            return x * jnp.exp(t * (self.total - self.mu).astype(x.dtype))
        dual = self.split.dual.astype(x.dtype)
        return jnp.linalg.solve(self._frame(t, x.dtype), apply(dual, x).T).T

    def decode(self, t: Any, y: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """The state z of the balanced coordinates y; NaN where it has lost one of them.

        An entry of z is a sum over subspaces. It has lost a coordinate where its rounding error
        is more than `ε^0.4` (six digits of sixteen, three of seven) of that coordinate's size.
        """
        z = self._rescaled(t, y)
        if self.split is None:
            return z
        basis = self.split.basis.astype(y.dtype)
        return jnp.where(self._drowned(y, z).any(axis=-1), jnp.nan, apply(basis, z))

    def _drowned(self, y: Float[Array, "n d"], z: Float[Array, "n d"]) -> Bool[Array, "n d d"]:
        """Which coordinates (last axis) each entry of each token has lost, z subspace-wise."""
        split, eps = self.split.astype(y.dtype), jnp.finfo(y.dtype).eps  # type: ignore[union-attr]
        sizes = lengths_in_parts(z, split).max(axis=0)
        needed = eps**0.4 * jnp.maximum(sizes, SMALL_PART * jnp.abs(y).max())
        error = eps * (jnp.abs(z) @ jnp.abs(split.basis).T)
        there = jnp.abs(split.basis) > eps**0.75
        return there & ~(error[..., None] <= needed)

    def lost(self, t: Any, y: Float[Array, "n d"]) -> str:
        """The coordinates φ_k*(z) that are lost, by their eigenvalues."""
        split = self.split
        if split is None:
            return "z"
        gone = np.asarray(self._drowned(y, self._rescaled(t, y)).any(axis=(0, 1)))
        words = ", ".join(f"{rate:.3g}" for rate in real_parts(split, self.total, gone))
        return f"the coordinates φ_k*(z) along eigenvalues of V with real part {words}"

    def sizes(self, t0: Any, t1: Any, y: Float[Array, "n d"]) -> tuple[Array, Any]:
        """The length of each token's part in each subspace, and 1 in the coordinates of z.

        So small coordinates of z are right beside large ones. A step that is much shorter than
        any of them needs crosses a switch of the attention, and counts by the token's length.
        """
        if self.split is None:
            return super().sizes(t0, t1, y)
        decay = self.split.decay.astype(y.dtype)
        crossing = (t1 - t0) * jnp.max(decay) < SWITCH_STEP
        each = jnp.where(crossing, row_lengths(y), lengths_in_parts(y, self.split))
        unit = jnp.where(crossing, 1, jnp.exp(-jnp.maximum(t1, 0) * decay))
        return jax.lax.stop_gradient(each), unit

    def functionals(
        self, t: Any, y: Float[Array, "n d"], W: Inexact[Array, "k d"]
    ) -> Inexact[Array, "n k"]:
        """`<w_k, z_i>` of the balanced coordinates y, exact also where z has no digits left.

        Parts of w_k below `ε^0.6 |w_k|` along a subspace are the rounding of a w_k that vanishes
        there, and are left out.
        """
        z = self._rescaled(t, y)
        if self.split is None:
            return z.astype(W.dtype) @ W.T
        split = self.split.astype(y.dtype)
        inside = W @ split.basis.astype(W.dtype)
        rounding = jnp.finfo(y.dtype).eps ** 0.6 * jnp.linalg.norm(W, axis=-1, keepdims=True)
        counted = jnp.where(lengths_in_parts(jnp.abs(inside), split) > rounding, inside, 0)
        return z.astype(W.dtype) @ counted.T

    def flow(
        self, t: Any, y: Float[Array, "n d"], masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n d"]:
        """`y_i' = Σ_h Σ_j A^h_ij e^{−tC} V_h e^{tC} y_j − C y_i`, in the basis of `encode`."""
        V = self._now(y.dtype).V
        means = self._means(t, y, y, masses)
        if self.split is None:
            if self.heads.count is None:
                return apply(V, means) - self._growth(y)
            each = jax.vmap(apply, in_axes=(0 if V is not None and V.ndim == 3 else None, 0))
            return each(V, means).sum(axis=0) - self._growth(y)
        split = self.split.astype(y.dtype)
        if self.heads.count is None:
            W = conjugate(t, split.matrix(V), split.C, split.resting)
            return apply(W - split.C, means) + apply(split.C, means - y)
        inward, outward = (expm(s * t * split.C) for s in (-1, 1))
        pushed = means @ jnp.swapaxes(inward @ split.matrix(V) @ outward, -1, -2)
        return pushed.sum(axis=0) - self._growth(y)

    def layer(
        self, k: Any, x: Real[Array, "n d"], dt: Any, masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n d"]:
        """`z ← z + Δt Σ_j A_ij(R^k z) R⁻¹ V (z_j − z_i)`, `R = I + ΔtV`, [E] Remark 4."""
        x = as_floats(x)
        total, V = self.total.astype(x.dtype), self._now(x.dtype).V
        layers = jnp.round(jnp.asarray(k)).astype(jnp.int32)
        k, dt = layers.astype(x.dtype), jnp.asarray(dt, x.dtype)
        if total.ndim == 0:
            R = 1 + dt * total
            means = self._weighted(k * dt, x, x, 2 * k * jnp.log(jnp.abs(R)), masses)
            if self.heads.count is None:
                return x + dt / R * apply(V, means - x)
            return (x + dt * jax.vmap(apply, in_axes=(None, 0))(V, means).sum(axis=0)) / R
        R = jnp.eye(len(total), dtype=x.dtype) + dt * total
        radius = jnp.abs(jnp.linalg.eigvals(jax.lax.stop_gradient(R))).max().astype(x.dtype)
        seen = apply(power(R / radius, layers), x)
        means = self._weighted(k * dt, seen, x, 2 * k * jnp.log(radius), masses)
        if self.heads.count is None:
            return self._held(layers, x + dt * jnp.linalg.solve(R, apply(V, means - x).T).T, dt)
        moved = power(jnp.linalg.inv(R), layers) @ V @ power(R, layers)
        pushed = (means @ jnp.swapaxes(moved, -1, -2)).sum(axis=0)
        return self._held(layers, jnp.linalg.solve(R, (x + dt * pushed).T).T, dt)

    def _held(self, layers: Any, z: Float[Array, "n d"], dt: Any) -> Float[Array, "n d"]:
        """The z of the next layer, NaN where floats have lost a coordinate: as in `decode`."""
        split = self.split.astype(z.dtype)  # type: ignore[union-attr]
        along, one = apply(split.dual, z), jnp.eye(len(split.C), dtype=z.dtype)
        R = one + dt * jnp.where(split.resting, split.matrix(self.total.astype(z.dtype)), 0)
        y = apply(power(R, layers + 1), along)
        return jnp.where(self._drowned(y, along).any(axis=-1), jnp.nan, z)

    @property
    def not_finite(self) -> Fault:
        """Layers hold z itself."""
        return Fault(
            "layers hold z itself, which grows where V decays until floats cannot hold its other "
            "coordinates beside that (or tokens ran away)",
            "stop earlier, or run the flow with Adaptive, whose trajectory keeps all of them",
        )

    def restricted(self, basis: Float[Array, "r d"]) -> AttentionSystem | None:
        """Only for V = cI, whose growth is the same in all directions."""
        return self._with_restricted_heads(basis) if self.split is None else None

    def check_layers(self, dt: Any, start: Any) -> None:
        """`I + ΔtV` must be invertible, and the start a whole number of layers after 0."""
        if is_traced((dt, start, self.heads.V)):
            return
        total = np.atleast_2d(np.asarray(self.total))
        R = np.eye(len(total)) + float(dt) * total
        if np.linalg.cond(R) > 1e12:
            raise InputError(
                f"I + Δt·V is singular for dt = {float(dt):g}: V has the eigenvalue −1/dt = "
                f"{-1 / float(dt):g}, and rescaled layers divide by it. Take another dt."
            )
        if abs(start / dt - round(start / dt)) > 1e-6:
            raise InputError(
                f"ts[0] = {start:g} must be a multiple of dt = {float(dt):g}: "
                "rescaled layers are counted from time 0."
            )

    def attention(
        self, t: Any, x: Real[Array, "n d"], masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "*heads n n"]:
        """The weights A(e^{tV} z) at z = x."""
        x = as_floats(x)
        return self.attention_inside(t, self.encode(t, x), masses)

    def attention_inside(
        self, t: Any, y: Float[Array, "n d"], masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "*heads n n"]:
        """The weights at the balanced coordinates y."""
        if self._few(y):
            bounded = self._bounded(t, y.dtype)
            return self._each_scored(
                t, y, bounded, lambda q, k: close_weights(q, k, masses, self.mask)
            )
        beta = self._sharpened(2 * self.mu.astype(y.dtype) * t, y.dtype)
        seen = self._seen(t, y)
        return self.heads.at(t, y.dtype).each(
            lambda head: attention_weights(
                apply(head.Q, seen), apply(head.K, seen), beta=beta, mask=self.mask, masses=masses
            )
        )

    def _now(self, dtype: Any) -> AbstractHeads:
        return self.heads.at(0.0, dtype)

    def _growth(self, y: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """C y."""
        return apply((self.mu if self.split is None else self.split.C).astype(y.dtype), y)

    def _frame(self, t: Any, dtype: Any) -> Float[Array, "d d"]:
        split = self.split.astype(dtype)  # type: ignore[union-attr]
        return frame(t, split.matrix(self.total.astype(dtype)), split.C, split.resting)

    def _rescaled(self, t: Any, y: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """The coordinates of z, subspace after subspace."""
        if self.split is None:
            return y * jnp.exp(-t * (self.total - self.mu).astype(y.dtype))
        return apply(self._frame(t, y.dtype), y)

    def _bounded(self, t: Any, dtype: Any) -> Float[Array, "d d"]:
        """The matrix of y ↦ `u = e^{−μt} x`."""
        split = self.split.astype(dtype)  # type: ignore[union-attr]
        one = jnp.eye(len(split.C), dtype=dtype)
        return split.basis @ expm(t * (split.C - self.mu.astype(dtype) * one))

    def _seen(self, t: Any, y: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """`u = e^{−μt} x`, which stays bounded."""
        return y if self.split is None else apply(self._bounded(t, y.dtype), y)

    def _sharpened(self, log_scale: Any, dtype: Any) -> Float[Array, ""]:
        """β e^{log_scale}, held where it is a hard maximum already and would overflow."""
        limit = 0.5 * float(np.log(np.finfo(dtype).max))
        return self.beta.astype(dtype) * jnp.exp(jnp.minimum(log_scale, limit)).astype(dtype)

    def _means(
        self, t: Any, y: Float[Array, "n d"], values: Float[Array, "n d"], masses: Any
    ) -> Float[Array, "*heads n d"]:
        log_scale = 2 * self.mu.astype(y.dtype) * t
        if not self._few(y):
            return self._weighted(t, self._seen(t, y), values, log_scale, masses)
        bounded = self._bounded(t, y.dtype)

        def usual() -> Array:
            return self._weighted(t, apply(bounded, y), values, log_scale, masses)

        def close() -> Array:
            return self._each_scored(
                t, y, bounded, lambda q, k: close_weights(q, k, masses, self.mask) @ values
            )

        sharp = log_scale > np.log(SCORE_ERROR / np.finfo(y.dtype).eps)
        return jax.lax.cond(sharp, close, usual)

    def _few(self, y: Float[Array, "n d"]) -> bool:
        return self.split is not None and len(y) <= MAX_CLOSE_TOKENS

    def _each_scored(
        self, t: Any, y: Float[Array, "n d"], bounded: Float[Array, "d d"], fn: Any
    ) -> Array:
        """`fn` of the queries and keys of each head, where keys are the coordinates themselves."""
        beta = self._sharpened(2 * self.mu.astype(y.dtype) * t, y.dtype)

        def one(head: AbstractHeads) -> Array:
            Q, K = (apply(W, bounded.T).T for W in (head.Q, head.K))
            return fn(beta * (y @ (Q.T @ K)), y)

        return self.heads.at(t, y.dtype).each(one)

    def _weighted(
        self, t: Any, seen: Array, values: Array, log_scale: Any, masses: Any
    ) -> Float[Array, "*heads n d"]:
        """`Σ_j A^h_ij values_j` with scores of the tokens `seen`, times e^{log_scale}."""
        backend = choose(len(seen), self.heads.count) if self.backend is None else self.backend
        beta = self._sharpened(log_scale, seen.dtype)
        return self.heads.at(t, seen.dtype).each(
            lambda head: attend(
                apply(head.Q, seen),
                apply(head.K, seen),
                values,
                beta=beta,
                mask=self.mask,
                masses=masses,
                backend=backend,
            )
        )
