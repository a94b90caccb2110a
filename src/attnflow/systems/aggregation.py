"""Aggregation, tokens that follow the gradient of an interaction potential."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Real

from attnflow.checks import as_floats, is_traced
from attnflow.errors import InputError
from attnflow.spaces import Euclidean
from attnflow.systems.kernels import Pairwise, as_shares, in_blocks
from attnflow.systems.potentials import POTENTIALS, Potential, as_potential
from attnflow.systems.presets import Preset


class Aggregation(Pairwise):
    """Aggregation on R^d, [P](3.10) as particles: the gradient flow of an interaction energy.

        x_i' = −(1/n) Σ_j ∇W(x_i − x_j),   with masses −Σ_j m_j ∇W(x_i − x_j) / Σ_j m_j

    W is a name ("log", "quadratic", "power", "morse"), a table with its numbers such as
    `{"name": "power", "a": 4.0, "b": 2.5}`, or a function of z ∈ R^d, whose gradient is taken; an
    even one keeps the centre of mass. ∇W(0) counts as 0, so that a token exerts no force on itself.

    W = log|z| is the comparison of the slides, Patlak–Keller–Segel without diffusion. Tokens
    collide in finite time: `d/dt Σ|x_i − x̄|² = −(n−1)` until the first collision, then
    `−(M² − Σ m_i²)/M` with the masses M = Σ m_i of those that have met. Run it
    with `Coarsening(tol)`, which lets tokens that have met go on as one.

    >>> print(Aggregation("log").velocity(0.0, jnp.array([[1.0], [-1.0]])))
    [[-0.25]
     [ 0.25]]
    >>> print(Aggregation(lambda z: z @ z / 2).velocity(0.0, jnp.array([[1.0], [-1.0]])))
    [[-1.]
     [ 1.]]
    """

    equation: ClassVar[str] = "x_i' = −(1/n) Σ_j ∇W(x_i − x_j)"
    source: ClassVar[str] = "[P](3.10), slides"
    space = Euclidean()
    preset = Preset(None, 0.0, "cube", 0.8, side=2.0, method="coarsening", n=40)
    autonomous = True
    noise_obstacle = None

    W: Any

    def __init__(self, W: Any = "log"):
        self.W = as_potential(W)

    def velocity(
        self, t: Any, x: Real[Array, "n d"], masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n d"]:
        """Minus the mean gradient."""
        x = as_floats(x)
        shares = as_shares(masses, x)

        def force(x_i: Float[Array, " d"]) -> Float[Array, " d"]:
            z = x_i - x
            acts = jnp.any(z != 0, axis=-1, keepdims=True) & (shares[:, None] > 0)
            pulls = jax.vmap(jax.grad(self.W))(jnp.where(acts, z, 1))
            return -shares @ jnp.where(acts, pulls, 0)

        return in_blocks(jax.vmap(force), x)

    def energy(
        self, x: Real[Array, "n d"], masses: Float[Array, " n"] | None = None
    ) -> Float[Array, ""]:
        """`(1/2) Σ_{i≠j} (m_i/M)(m_j/M) W(x_i − x_j)`, of which the flow is the steepest descent.

        >>> print(Aggregation("quadratic").energy(jnp.array([[1.0], [-1.0]])))
        0.5
        """
        x = as_floats(x)
        shares = as_shares(masses, x)

        def row(x_i: Float[Array, " d"]) -> Float[Array, ""]:
            z = x_i - x
            acts = jnp.any(z != 0, axis=-1)
            values = jax.vmap(self.W)(jnp.where(acts[:, None], z, 1))
            return shares @ jnp.where(acts, values, 0)

        return shares @ in_blocks(jax.vmap(row), x) / 2

    @property
    def merging_obstacle(self) -> str | None:
        """None where tokens that are close attract each other: what has met stays together."""
        if isinstance(self.W, Potential) and self.W.attracts_nearby:
            return None
        return "its W is not known to attract tokens that are close, so they may part again"

    def restricted(self, basis: Float[Array, "r d"]) -> Aggregation | None:
        """Itself where W is radial: forces lie in the span of the tokens."""
        return self if isinstance(self.W, Potential) else None

    def check_start(self, x: Float[Array, "*batch n d"]) -> None:
        """W must be a real function of a vector of R^d."""
        z = jax.ShapeDtypeStruct(x.shape[-1:], x.dtype)
        try:
            value = eqx.filter_eval_shape(self.W, z)
        except Exception as error:
            raise InputError(
                f"W must take a vector of shape {x.shape[-1:]}, but it fails on one: {error}"
            ) from None
        if getattr(value, "shape", None) != () or not jnp.issubdtype(value.dtype, jnp.floating):
            raise InputError(
                f"W must return a single real number for a vector of R^{x.shape[-1]}, but it "
                f"returns {value!r}."
            )

    def parameters(self) -> dict[str, Any]:
        """W, by its name if it is one of the library's."""
        names = (name for name, known in POTENTIALS.items() if known is type(self.W))
        name = next(names, None)
        if name is None:
            return {"W": self.W}
        numbers = self.W.parameters()
        if not numbers or is_traced(numbers):
            return {"W": name}
        return {"W": {"name": name} | {k: float(v) for k, v in numbers.items()}}
