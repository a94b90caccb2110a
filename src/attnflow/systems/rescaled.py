"""E4: attention on R^d seen through the rescaling `z = e^{−tV} x`."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import expm
from jaxtyping import Array, ArrayLike, Float, Real

from attnflow.attention import Softmax, attend, attention_weights
from attnflow.attention.backends import choose
from attnflow.checks import as_floats, is_traced
from attnflow.errors import InputError
from attnflow.spaces import Euclidean
from attnflow.systems.attention import AttentionSystem
from attnflow.systems.balance import balance, conjugate, frame, power
from attnflow.weights import Heads, Weight, apply


class RescaledAttention(AttentionSystem):
    """Rescaled attention on R^d, [E](4): the state is `z_i = e^{−tV} x_i` of `PureAttention`.

        z_i' = Σ_j A_ij V (z_j − z_i),   A_ij = softmax_j(β <Q e^{tV} z_i, K e^{tV} z_j>)

    Where V grows, scores sharpen like e^{2λt} and tokens settle at vertices of a polytope (T3.1),
    on hyperplanes (T4.1) or on a polytope times a subspace (T5.1). With several heads V is
    `V̄ = Σ_h V_h` in the exponent. Q and K may be functions of t, V must be constant.

    It is integrated in balanced coordinates `y = e^{−tC} x`, C the growing part of V, so that
    nothing overflows. Its `Layers` are [E] Remark 4. Tokens that tie for the largest score have a
    nearly discontinuous field at late times: a run may then end with `IncompleteRun`.

    >>> system = RescaledAttention(V=2.0)
    >>> print(system.velocity(0.0, jnp.array([[1.0], [1.0]])))
    [[0.]
     [0.]]
    """

    equation: ClassVar[str] = "z_i' = Σ_j A_ij(e^{tV} z) V (z_j − z_i)"
    source: ClassVar[str] = "[E](4)"

    C: Float[Array, "d d"] | None
    mu: Float[Array, ""]

    def __init__(
        self,
        Q: Weight = None,
        K: Weight = None,
        V: Weight = None,
        *,
        beta: Float[ArrayLike, ""] | int = 1.0,
        backend: Any = None,
    ):
        if callable(V):
            raise InputError("V must be constant in rescaled attention: z = e^{−tV} x needs one V.")
        super().__init__(
            Euclidean(), Softmax(), beta, Q=Q, K=K, V=_scalar_if_isotropic(V), backend=backend
        )
        total = self.total
        if total.ndim:
            self.C, self.mu = balance(total)
        else:
            self.C, self.mu = None, jnp.maximum(jax.lax.stop_gradient(total), 0)

    @property
    def total(self) -> Float[Array, ...]:
        """`V̄ = Σ_h V_h`: a matrix, or the number c when it is c times the identity."""
        V, count = self.heads.V, self.heads.count or 1
        if V is None:
            return jnp.asarray(float(count))
        return V.sum(axis=0) if V.ndim == 3 else count * V

    def to_x(self, t: Any, z: Real[Array, "n d"]) -> Float[Array, "n d"]:
        """`x = e^{tV} z`, the tokens of pure attention, which overflow where V grows for long."""
        return _exponential(t, self.total, z)

    def to_z(self, t: Any, x: Real[Array, "n d"]) -> Float[Array, "n d"]:
        """`z = e^{−tV} x`."""
        return _exponential(-t, self.total, x)

    def velocity(
        self, t: Any, x: Real[Array, "n d"], masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n d"]:
        """The field (4) itself, at z = x."""
        x = as_floats(x)
        y = self.encode(t, x)
        if self.heads.count is None:
            means = self._means(t, y, x, masses)
            return apply(self._now(x.dtype).V, means - x)
        along = self.flow(t, y, masses) + self._growth(y)
        return self._frame(t, along) - apply(self.total.astype(x.dtype), x)

    def encode(self, t: Any, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """The balanced coordinates y of the state z = x."""
        if self.C is None:
            return x * jnp.exp(t * (self.total - self.mu).astype(x.dtype))
        F = frame(t, self.total.astype(x.dtype), self.C.astype(x.dtype))
        return jnp.linalg.solve(F, x.T).T

    def decode(self, t: Any, y: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """The state z of the balanced coordinates y."""
        return self._frame(t, y)

    def flow(
        self, t: Any, y: Float[Array, "n d"], masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n d"]:
        """`y_i' = Σ_h Σ_j A^h_ij e^{−tC} V_h e^{tC} y_j − C y_i`."""
        V = self._now(y.dtype).V
        means = self._means(t, y, y, masses)
        if self.heads.count is None:
            if self.C is None:
                return apply(V, means) - self._growth(y)
            C = self.C.astype(y.dtype)
            return apply(conjugate(t, V, C) - C, means) + apply(C, means - y)
        if self.C is None or V is None or V.ndim == 0:
            pushed = jax.vmap(apply, in_axes=(0 if V is not None and V.ndim == 3 else None, 0))(
                V, means
            )
        else:
            inward, outward = (expm(s * t * self.C.astype(y.dtype)) for s in (-1, 1))
            pushed = means @ jnp.swapaxes(inward @ V @ outward, -1, -2)
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
            return x + dt * jnp.linalg.solve(R, apply(V, means - x).T).T
        moved = power(jnp.linalg.inv(R), layers) @ V @ power(R, layers)
        pushed = (means @ jnp.swapaxes(moved, -1, -2)).sum(axis=0)
        return jnp.linalg.solve(R, (x + dt * pushed).T).T

    def restricted(self, basis: Float[Array, "r d"]) -> AttentionSystem | None:
        """Only for V = cI, whose growth is the same in all directions."""
        return super().restricted(basis) if self.C is None else None

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
        seen, beta = self._seen(t, self.encode(t, x))
        return self.heads.at(t, x.dtype).each(
            lambda head: attention_weights(
                apply(head.Q, seen), apply(head.K, seen), beta=beta, masses=masses
            )
        )

    def _now(self, dtype: Any) -> Heads:
        return self.heads.at(0.0, dtype)

    def _growth(self, y: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """C y."""
        return apply((self.mu if self.C is None else self.C).astype(y.dtype), y)

    def _frame(self, t: Any, y: Float[Array, "n d"]) -> Float[Array, "n d"]:
        if self.C is None:
            return y * jnp.exp(-t * (self.total - self.mu).astype(y.dtype))
        return apply(frame(t, self.total.astype(y.dtype), self.C.astype(y.dtype)), y)

    def _seen(self, t: Any, y: Float[Array, "n d"]) -> tuple[Array, Array]:
        """`u = e^{−μt} x`, which stays bounded, and the β e^{2μt} that makes up for it."""
        mu = self.mu.astype(y.dtype)
        if self.C is not None:
            y = apply(
                expm(t * (self.C.astype(y.dtype) - mu * jnp.eye(y.shape[-1], dtype=y.dtype))), y
            )
        return y, self._sharpened(2 * mu * t, y.dtype)

    def _sharpened(self, log_scale: Any, dtype: Any) -> Float[Array, ""]:
        """β e^{log_scale}, held where it is a hard maximum already and would overflow."""
        limit = 0.5 * float(np.log(np.finfo(dtype).max))
        return self.beta.astype(dtype) * jnp.exp(jnp.minimum(log_scale, limit)).astype(dtype)

    def _means(
        self, t: Any, y: Float[Array, "n d"], values: Float[Array, "n d"], masses: Any
    ) -> Float[Array, "*heads n d"]:
        seen, _ = self._seen(t, y)
        return self._weighted(t, seen, values, 2 * self.mu.astype(y.dtype) * t, masses)

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
                masses=masses,
                backend=backend,
            )
        )


def _scalar_if_isotropic(V: Weight) -> Weight:
    """The number c for a known matrix c·I, so that no product and no exponential is done."""
    if V is None or is_traced(V) or np.ndim(V) != 2:  # type: ignore[arg-type]
        return V
    M = np.asarray(V)
    if (
        M.shape[0] == M.shape[1]
        and M.dtype.kind in "fiu"
        and np.array_equal(M, M[0, 0] * np.eye(len(M)))
    ):
        return float(M[0, 0])
    return V


def _exponential(t: Any, V: Float[Array, ...], x: Real[Array, "n d"]) -> Float[Array, "n d"]:
    """`e^{tV} x`, row by row."""
    x = as_floats(x)
    V = V.astype(x.dtype)
    return x * jnp.exp(t * V) if V.ndim == 0 else apply(expm(t * V), x)
