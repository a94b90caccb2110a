"""Consensus-based optimisation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Key, Real

from attnflow.checks import as_floats, as_number, require_nonnegative, require_positive
from attnflow.errors import InputError, unknown
from attnflow.spaces import Euclidean
from attnflow.systems.base import Cost, Diffusive
from attnflow.systems.presets import Preset

Objective = Callable[[Array], Array]


def ackley(x: Float[Array, " d"]) -> Float[Array, ""]:
    """Ackley's function: many small holes in a large one; its minimum is 0, at 0.

    >>> print(ackley(jnp.zeros(2)).round(12))
    0.0
    """
    bowl = -20 * jnp.exp(-0.2 * jnp.sqrt(jnp.mean(x**2)))
    return bowl - jnp.exp(jnp.mean(jnp.cos(2 * jnp.pi * x))) + 20 + math.e


def rastrigin(x: Float[Array, " d"]) -> Float[Array, ""]:
    """Rastrigin's function: a bowl with a hole at every whole point; its minimum is 0, at 0.

    >>> print(rastrigin(jnp.array([0.0, 1.0])))
    1.0
    """
    return jnp.sum(x**2 + 10 * (1 - jnp.cos(2 * jnp.pi * x)))


OBJECTIVES: dict[str, Objective] = {"ackley": ackley, "rastrigin": rastrigin}


class CBO(Diffusive):
    """Consensus-based optimisation, [P] §9.4: particles drift to their best, and explore.

        dx_i = −λ (x_i − v) dt + √2 σ |x_i − v| dW_i,   v = Σ_j x_j e^{−αf(x_j)} / Σ_j e^{−αf(x_j)}

    v is attention of β = α with the scores −f(x_j): for large α it is the best particle. They meet
    at a minimiser of f if λ > dσ². The noise is meant in the sense of Itô; this σ is not that of
    `Noisy`. `simulate` needs a key.

    Args:
        objective: what to minimise: a function of one point, "ackley" or "rastrigin".
        alpha: inverse temperature α of the weights.
        lam: rate λ of the drift to the consensus point.
        sigma: strength σ of the noise.

    >>> CBO("ackley").best(jnp.array([[0.0, 0.0], [2.0, 1.0]])).round(6).tolist()
    [0.0, 0.0]
    """

    equation: ClassVar[str] = "dx_i = −λ (x_i−v) dt + √2 σ |x_i−v| dW_i, v = softmax(−αf)·x"
    source: ClassVar[str] = "[P] §9.4"
    space = Euclidean()
    preset = Preset("alpha", 50.0, "cube", 10.0, side=6.0, extra={"objective": "rastrigin"})
    ito = True
    additive = False
    autonomous = True
    merging_obstacle = "its noise moves equal tokens apart"

    alpha: Float[Array, ""]
    lam: Float[Array, ""]
    sigma: Float[Array, ""]
    key: Key[Array, ""] | None
    objective: Objective = eqx.field(static=True)

    def __init__(
        self,
        objective: Objective | str,
        alpha: Real[ArrayLike, ""] = 50.0,
        lam: Real[ArrayLike, ""] = 1.0,
        sigma: Real[ArrayLike, ""] = 0.5,
    ):
        if isinstance(objective, str):
            if objective not in OBJECTIVES:
                raise unknown("objective", objective, OBJECTIVES)
            objective = OBJECTIVES[objective]
        if not callable(objective):
            raise InputError(f"objective must be a function of a point, not {objective!r}.")
        self.alpha, self.lam = as_number(alpha, "alpha"), as_number(lam, "lam")
        require_positive(self.alpha, "alpha")
        require_positive(self.lam, "lam")
        self.sigma, self.objective = as_number(sigma, "sigma"), objective
        require_nonnegative(self.sigma, "sigma")
        self.key = None

    def best(
        self, x: Real[Array, "n d"], masses: Float[Array, " n"] | None = None
    ) -> Float[Array, " d"]:
        """The consensus point v."""
        x = as_floats(x)
        scores = -self.alpha.astype(x.dtype) * jax.vmap(self.objective)(x)
        if masses is not None:
            scores = scores + jnp.log(masses).astype(x.dtype)
        return jax.nn.softmax(scores) @ x

    def velocity(
        self, t: Any, x: Real[Array, "n d"], masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n d"]:
        """`−λ (x − v)`."""
        return -self.lam.astype(as_floats(x).dtype) * (as_floats(x) - self.best(x, masses))

    def apply_noise(
        self,
        t: Any,
        x: Float[Array, "n d"],
        w: Float[Array, "n d"],
        masses: Float[Array, " n"] | None = None,
    ) -> Float[Array, "n d"]:
        """`√2 σ |x − v| w`."""
        far = jnp.linalg.norm(x - self.best(x, masses), axis=-1, keepdims=True)
        return math.sqrt(2) * self.sigma.astype(x.dtype) * far * w

    def noise_rate(self, x: Float[Array, "*n d"]) -> Float[Array, ""]:
        """`dσ²`, at which the noise spreads the squares of distances."""
        return x.shape[-1] * self.sigma**2

    def cost(self, n: int) -> Cost:
        """Each particle with the one point v."""
        return Cost(n, n)

    def parameters(self) -> dict[str, Any]:
        """The objective, by its name if it is one of the library's; α, λ and σ."""
        names = (name for name, known in OBJECTIVES.items() if known is self.objective)
        objective = next(names, self.objective)
        return {"objective": objective, "alpha": self.alpha, "lam": self.lam, "sigma": self.sigma}
