"""The interaction energy: its extremes, its growth, and the flows that climb it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow import initial, weights
from attnflow.observe import energy, energy_rate, gradient
from attnflow.simulate import simulate
from attnflow.spaces import Sphere
from attnflow.systems import SA, USA, System
from attnflow.theory.checks.base import (
    SAVES,
    STARTS,
    TOKENS,
    Check,
    Draw,
    FlowCheck,
    Quantity,
    Trial,
)
from attnflow.theory.gegenbauer import dirac_energy, gegenbauer_coefficients, uniform_energy


class EnergyExtremes(Check):
    """P3.4: the uniform measure has the least energy, a Dirac mass the most."""

    id = "P3.4"
    source = "[P] Proposition 3.4"
    hypothesis = "any measure on the sphere, β > 0"
    conclusion = "E_β(uniform) ≤ E_β ≤ E_β(Dirac); Gegenbauer coefficients of e^{βt} are > 0"
    settings = "configurations at random, clustered, and spread by the repulsive flow; degrees ≤ 20"

    def trials(self, seed: int) -> Iterator[Trial]:
        """Configurations from nearly uniform to nearly one point."""
        for d in (2, 3):
            x = initial.sphere(TOKENS, d, seed=seed, batch=(STARTS,))
            spread = simulate(SA(2.0, V=-1.0), x, np.linspace(0.0, 50.0, SAVES)).final
            near = initial.clustered(TOKENS, d, clusters=2, spread=0.05, seed=seed)
            for kind, tokens in (("random", x[0]), ("spread", spread[0]), ("clustered", near)):
                for beta in (0.5, 4.0):
                    yield Trial({"d": d, "β": beta, "start": kind, "seed": seed}, x0=tokens)

    def judge(self, trial: Trial) -> Sequence[Draw]:
        """The energy between its extremes."""
        beta, d = trial.about["β"], trial.about["d"]
        value = float(energy(trial.x0, beta))
        masses = gegenbauer_coefficients(beta, d, 20)
        quantities = (
            Quantity("E / E(uniform)", value / float(uniform_energy(beta, d)), "≥", 1.0),
            Quantity("E / E(Dirac)", value / float(dirac_energy(beta)), "≤", 1.0),
            Quantity("smallest coefficient", float(np.min(masses)), "≥", np.finfo(float).tiny),
        )
        return [Draw(trial.about, quantities)]


class EnergyGrowth(FlowCheck):
    """(3.6) and L3.7: the energy increases, at exactly the rate of the identity."""

    id = "3.6"
    aliases = ("L3.7",)
    source = "[P] (3.6), Lemma 3.7"
    hypothesis = "SA or USA with V = ±I"
    conclusion = "dE_β/dt = ± mean |x_i'|² (USA), ± mean |x_i'|² Z_i/n (SA)"
    settings = "25 times up to t = 5; errors in units of the largest rate"

    def trials(self, seed: int) -> Iterator[Trial]:
        """Uniform starts, attracting and repelling."""
        for kind, V, beta in ((SA, None, 4.0), (SA, -1.0, 4.0), (USA, None, 2.0)):
            x0 = initial.sphere(TOKENS, 3, seed=seed, batch=(STARTS,))
            about = {"system": kind.__name__, "V": V or 1.0, "n": TOKENS, "d": 3, "β": beta}
            ts = np.linspace(0.0, 5.0, SAVES)
            yield Trial(about | {"seed": seed}, kind(beta, V=V), x0, ts)

    def measure(self, system: Any, ts: np.ndarray, xs: np.ndarray) -> Sequence[Quantity]:
        """The identity against the derivative along the flow, and the growth between saves."""
        identity = np.asarray(jax.vmap(lambda x: energy_rate(system, x))(jnp.asarray(xs)))
        along = np.asarray(jax.vmap(lambda x: _along_the_flow(system, x))(jnp.asarray(xs)))
        values = np.asarray(jax.vmap(lambda x: energy(x, system.beta))(jnp.asarray(xs)))
        sign = 1.0 if system.heads.V is None else np.sign(float(system.heads.V))
        size = np.abs(along).max()
        back = -(sign * np.diff(values)).min() / values.max()
        error = np.abs(identity - along).max() / size
        return [
            Quantity("error of the identity", error, "≤", 1e-8),
            Quantity("largest step back of E", back, "≤", 1e-10),
        ]


def _along_the_flow(system: Any, x: Float[Array, "n d"]) -> Float[Array, ""]:
    """dE_β/dt by the chain rule."""
    push = (system.velocity(0.0, x),)
    return jax.jvp(lambda x: energy(x, system.beta), (x,), push)[1]


class GradientFlow(Check):
    """R3.8: USA climbs E_β, and SA with V = QᵀK symmetric climbs its own energy."""

    id = "R3.8"
    source = "[P] Remark 3.8, §3.4"
    hypothesis = "USA; or SA with QᵀK symmetric and V = QᵀK, for the metric Σ_i Z_i <a_i, b_i>"
    conclusion = "x' = n ∇E_β; x' = ∇ Σ_ij e^{β<Vx_i,x_j>}/(2β)"
    settings = "at uniform tokens; error in units of the largest velocity"

    def trials(self, seed: int) -> Iterator[Trial]:
        """Uniform tokens, and a symmetric matrix."""
        for n, d, beta in ((8, 2, 1.0), (16, 3, 4.0), (16, 8, 2.0)):
            x = initial.sphere(n, d, seed=seed)
            W = weights.goe(d, scale=d**-0.5, seed=seed)
            about = {"n": n, "d": d, "β": beta, "seed": seed}
            yield Trial(about | {"system": "USA"}, USA(beta), x)
            yield Trial(about | {"system": "SA"}, SA(beta, Q=W, V=W), x)

    def judge(self, trial: Trial) -> Sequence[Draw]:
        """The velocity against the gradient."""
        system, x = trial.system, trial.x0
        climbs = climb_usa if trial.about["system"] == "USA" else climb_sa
        velocity = system.velocity(0.0, x)
        error = jnp.abs(velocity - climbs(system, x)).max() / jnp.abs(velocity).max()
        return [Draw(trial.about, (Quantity("|x' − gradient|", float(error), "≤", 1e-10),))]


def climb_usa(system: System, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
    """`n ∇E_β`."""
    return len(x) * gradient(x, system.beta)  # type: ignore[attr-defined]


def climb_sa(system: Any, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
    """The gradient of `Σ_ij e^{β<Vx_i,x_j>}/(2β)` for the metric `Σ_i Z_i <a_i, b_i>`."""
    V, beta = system.heads.V, system.beta
    slope = jax.grad(lambda x: jnp.exp(beta * x @ V @ x.T).sum() / (2 * beta))(x)
    Z = jnp.exp(beta * x @ V @ x.T).sum(axis=1)
    return Sphere().project(x, slope) / Z[:, None]
