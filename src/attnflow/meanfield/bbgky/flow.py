"""BBGKY: the equation (8.1) for the two-point function of USA on the circle, with a closure."""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Num, Real

from attnflow.checks import as_floats, require_count
from attnflow.meanfield.bbgky.closures import Closure
from attnflow.meanfield.bbgky.ensemble import TwoPoint
from attnflow.meanfield.volumes import continuity_rate
from attnflow.simulation import Fixed, simulate
from attnflow.spaces import Euclidean, Space
from attnflow.systems import System
from attnflow.systems.attention import as_beta
from attnflow.theory.inputs import Numbers


class PairFlow(System):
    """The law ψ of θ₂ − θ₁ for n tokens of USA on the circle, [P](8.1), under a closure.

        ∂_t ψ + ∂_x(v ψ) = 0,     v = (2/(βn)) h'(x) + (2(n−2)/(βn)) E[h'(θ₃) | θ₁ = 0, θ₂ = x]

    with h = e^{β cos}. The state is ψ as averages over M cells, `(M, 1)`, cell i around 2πi/M.
    Finite volumes keep mass and, for `Fixed(dt, "heun")` with
    dt ≤ `step(M)`, sign. `solve_pairs` does all that.

    Args:
        beta: inverse temperature β.
        n: the number of tokens.
        closure: where the third token is, given two.

    >>> from attnflow.meanfield.bbgky.closures import MolecularChaos
    >>> flow = PairFlow(1.0, 8, MolecularChaos())
    >>> print(flow.velocity(0.0, jnp.full((4, 1), 0.25))[:, 0].round(3))
    [ 0.114 -0.043 -0.028 -0.043]
    """

    equation: ClassVar[str] = "∂_t ψ + ∂_x(v ψ) = 0"
    source: ClassVar[str] = "[P](8.1)"

    beta: Float[Array, ""]
    n: Float[Array, ""]
    closure: Closure
    space: Space

    def __init__(self, beta: Float[ArrayLike, ""] | int, n: int, closure: Closure):
        self.beta = as_beta(beta)
        self.n = jnp.asarray(require_count(n, "n", least=2), float)
        self.closure = closure
        self.space = Euclidean()

    def velocity(
        self, t: Any, x: Num[Array, "n d"], masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n d"]:
        """`∂_t ψ` of every cell."""
        psi = as_floats(x)[:, 0]
        return continuity_rate(psi, self.speeds(psi, t), 2 * np.pi / len(psi))[:, None]

    def speeds(self, psi: Float[Array, " M"], t: Any = 0.0) -> Float[Array, " M"]:
        """The speed v at the left edge of every cell."""
        width, n = 2 * np.pi / len(psi), self.n.astype(psi.dtype)
        cell = jnp.arange(len(psi), dtype=psi.dtype)
        own = self._pull((cell - 0.5) * width)
        third = self.closure.pull(t, psi, self._pull(cell * width))
        return -2 / n * (own + (n - 2) * third)

    def step(self, M: int) -> float:
        """The longest step of `Fixed(dt, "heun")` that keeps ψ ≥ 0, whatever the closure."""
        fastest = float(jnp.abs(self._pull(jnp.linspace(0.0, np.pi, 1001))).max())
        return np.pi / M / (2 * fastest)

    def parameters(self) -> dict[str, Any]:
        return {"beta": self.beta, "n": self.n, "closure": type(self.closure).__name__}

    def _pull(self, x: Float[Array, " M"]) -> Float[Array, " M"]:
        return jnp.exp(self.beta.astype(x.dtype) * jnp.cos(x)) * jnp.sin(x)


class Measured(Closure):
    """The pull of third tokens as it was sampled, linear in time: no closure but the truth.

    >>> from attnflow.meanfield.bbgky.ensemble import two_point
    >>> sampled = two_point(1.0, 4, [0.0, 3.0], replicates=32, cells=8)
    >>> half = Measured(sampled).pull(1.5, jnp.ones(8), jnp.ones(8))
    >>> bool(jnp.allclose(half, sampled.pull.mean(axis=0)))
    True
    """

    idea: ClassVar[str] = "as sampled"

    ts: Float[Array, " T"]
    values: Float[Array, "T M"]

    def __init__(self, sampled: TwoPoint):
        self.ts, self.values = jnp.asarray(sampled.ts), jnp.asarray(sampled.pull)

    def pull(
        self, t: Any, psi: Float[Array, " M"], kernel: Float[Array, " M"]
    ) -> Float[Array, " M"]:
        """Between the two samples around t."""
        last = jnp.clip(jnp.searchsorted(self.ts, t, side="right"), 1, len(self.ts) - 1)
        begin, end = self.ts[last - 1], self.ts[last]
        part = (jnp.asarray(t, begin.dtype) - begin) / (end - begin)
        return (1 - part) * self.values[last - 1] + part * self.values[last]


def solve_pairs(
    beta: float | int,
    n: int,
    closure: Closure,
    ts: Real[ArrayLike, " T"] | Numbers,
    *,
    cells: int = 128,
) -> Float[np.ndarray, "T M"]:
    """ψ at the times ts from the uniform law at ts[0], by (8.1) with a closure.

    The state is ψ in cells as in `TwoPoint`; mass is kept to rounding and ψ ≥ 0.

    Args:
        beta: inverse temperature β.
        n: the number of tokens.
        closure: where the third token is, given two.
        ts: increasing times, shape (T,).
        cells: the number M of cells, at least 4.

    >>> from attnflow.meanfield.bbgky.closures import Companions
    >>> psi = solve_pairs(1.0, 8, Companions(), [0.0, 1.0], cells=16)
    >>> print(psi.sum(axis=1) * 2 * np.pi / 16)
    [1. 1.]
    """
    flow = PairFlow(beta, n, closure)
    start = jnp.full((require_count(cells, "cells", least=4), 1), 1 / (2 * np.pi))
    steps = Fixed(flow.step(cells), "heun")
    return np.asarray(simulate(flow, start, ts, method=steps).xs[..., 0])
