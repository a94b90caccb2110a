"""The interaction energy: its extremes, its growth, and the flows that climb it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow import initial, weights
from attnflow.observe import energy, energy_rate
from attnflow.systems import SA, USA
from attnflow.theory.checks.base import SAVES, STARTS, TOKENS, Check, Draw, Trial, run
from attnflow.theory.checks.equations import plain_velocity
from attnflow.theory.gegenbauer import dirac_energy, gegenbauer_coefficients, uniform_energy
from attnflow.verdicts import Quantity


class EnergyExtremes(Check):
    """P3.4: the uniform measure has the least energy, a Dirac mass the most."""

    id = "P3.4"
    source = "[P] Proposition 3.4"
    hypothesis = "any measure on the sphere, β > 0"
    conclusion = "E_β(uniform) ≤ E_β ≤ E_β(Dirac); Gegenbauer coefficients of e^{βt} are > 0"
    settings = "configurations at random, clustered, and spread by the repulsive flow; degrees ≤ 20"

    def trials(self, key: int) -> Iterator[Trial]:
        """Uniform starts that the repulsive flow spreads, and tokens near two points."""
        x = initial.sphere(TOKENS, 3, key=key, batch=(STARTS,))
        near = [initial.clustered(TOKENS, d, clusters=2, spread=0.05, key=key) for d in (2, 3)]
        ts = np.linspace(0.0, 50.0, SAVES)
        yield Trial({"key": key}, SA(2.0, V=-1.0), x, ts, data=near)

    def judge(self, trial: Trial) -> Sequence[Draw]:
        """The energies of configurations from nearly uniform to nearly one point."""
        found = run(trial)
        clustered = [("clustered", tokens) for tokens in trial.data]
        starts = [("random", found.xs[0, 0]), ("spread", found.final[0]), *clustered]
        draws = []
        for kind, tokens in starts:
            for beta in (0.5, 4.0):
                about = trial.about | {"d": tokens.shape[-1], "β": beta, "start": kind}
                draws.append(Draw(about, (*self._between(np.asarray(tokens), beta),)))
        lower = plain_energy(found.final[0], 2.0) / plain_energy(found.xs[0, 0], 2.0)
        falls = Quantity("E(spread) / E(random)", lower, "≤", 1.0)
        return [Draw(trial.about | {"start": "all"}, (falls, *found.equation)), *draws]

    def _between(self, x: np.ndarray, beta: float) -> Iterator[Quantity]:
        value, d = plain_energy(x, beta), x.shape[-1]
        yield Quantity("E / E(uniform)", value / float(uniform_energy(beta, d)), "≥", 1.0)
        yield Quantity("E / E(Dirac)", value / float(dirac_energy(beta)), "≤", 1.0)
        masses = gegenbauer_coefficients(beta, d, 20)
        tiny = np.finfo(float).tiny
        yield Quantity("smallest coefficient", float(np.min(masses)), "≥", tiny)
        off = abs(float(energy(x, beta)) / value - 1)
        yield Quantity("error of observe.energy", off, "≤", 1e-12, "equation")


class EnergyGrowth(Check):
    """(3.6) and L3.7: the energy increases, at exactly the rate of the identity."""

    id = "3.6"
    aliases = ("L3.7",)
    source = "[P] (3.6), Lemma 3.7"
    hypothesis = "SA or USA with V = ±I, also with masses"
    conclusion = "dE_β/dt = ± mean |x_i'|² (USA), ± mean |x_i'|² Z_i/n (SA)"
    settings = "25 times up to t = 5; errors in units of the largest rate"

    def trials(self, key: int) -> Iterator[Trial]:
        """Uniform starts, attracting and repelling, of equal tokens and of tokens with masses.

        Those with masses are on the circle, so as to run the program of R3.3.
        """
        masses = np.linspace(0.2, 3.0, TOKENS)
        for kind, d, V, beta, m in (
            (SA, 3, None, 4.0, None),
            (SA, 3, -1.0, 4.0, None),
            (USA, 2, None, 2.0, masses),
        ):
            x0 = initial.sphere(TOKENS, d, key=key, batch=(STARTS,))
            about = {"system": kind.__name__, "V": V or 1.0, "n": TOKENS, "d": d, "β": beta}
            ts = np.linspace(0.0, 5.0, SAVES)
            yield Trial(about | {"key": key}, kind(beta, V=V), x0, ts, masses=m)

    def judge(self, trial: Trial) -> Sequence[Draw]:
        """The identity against the derivative along the equation, and the growth between saves."""
        found = run(trial)
        beta = float(trial.system.beta)
        m = np.ones(TOKENS) if trial.masses is None else trial.masses
        rate = jax.vmap(lambda x: energy_rate(trial.system, x, masses=m))
        states = found.xs.reshape(-1, *found.xs.shape[-2:])
        identity = np.asarray(rate(jnp.asarray(states))).reshape(found.xs.shape[:2])
        along = np.array([[plain_rate(trial.system, x, m) for x in each] for each in found.xs])
        values = np.array([[plain_energy(x, beta, m) for x in each] for each in found.xs])
        error = np.abs(identity - along).max(axis=1) / np.abs(along).max(axis=1)
        quantities = [Quantity("error of the identity", error.max(), "≤", 1e-8)]
        back = -(trial.about["V"] * np.diff(values, axis=1)).min(axis=1) / values.max(axis=1)
        quantities.append(Quantity("largest step back of E", back.max(), "≤", 1e-10))
        return [Draw(trial.about, (*quantities, *found.equation))]


def plain_energy(x: np.ndarray, beta: float, masses: np.ndarray | None = None) -> float:
    """`E_β = (1/2β) Σ_ij m_i m_j e^{β<x_i,x_j>}` with masses that add up to 1."""
    m = np.ones(len(x)) if masses is None else masses
    m = m / m.sum()
    return float(m @ np.exp(beta * (x @ x.T)) @ m / (2 * beta))


def plain_rate(system: Any, x: np.ndarray, masses: np.ndarray) -> float:
    """dE_β/dt along the equation as it is written: `Σ_i m_i <Σ_j m_j e^{β<x_i,x_j>} x_j, x_i'>`."""
    m = masses / masses.sum()
    n, d = x.shape
    slope = m[:, None] * ((np.exp(float(system.beta) * (x @ x.T)) * m) @ x)
    return float(np.sum(slope * plain_velocity(system, n, d, masses)(x)))


class GradientFlow(Check):
    """R3.8: USA climbs E_β, and SA with V = QᵀK symmetric climbs its own energy."""

    id = "R3.8"
    source = "[P] Remark 3.8, §3.4"
    hypothesis = "USA; or SA with QᵀK symmetric and V = QᵀK, for the metric Σ_i Z_i <a_i, b_i>"
    conclusion = "x' = n ∇E_β; x' = ∇ Σ_ij e^{β<Vx_i,x_j>}/(2β)"
    settings = "at uniform tokens; error in units of the largest velocity"

    def trials(self, key: int) -> Iterator[Trial]:
        """Uniform tokens, and a symmetric matrix."""
        for n, d, beta in ((8, 2, 1.0), (16, 3, 4.0), (16, 8, 2.0)):
            x = initial.sphere(n, d, key=key)
            W = weights.goe(d, scale=d**-0.5, key=key)
            about = {"n": n, "d": d, "β": beta, "key": key}
            yield Trial(about | {"system": "USA"}, USA(beta), x)
            yield Trial(about | {"system": "SA"}, SA(beta, Q=W, V=W), x)

    def judge(self, trial: Trial) -> Sequence[Draw]:
        """The velocity against the gradient."""
        system, x = trial.system, np.asarray(trial.x0)
        climbs = climb_usa if trial.about["system"] == "USA" else climb_sa
        velocity = np.asarray(velocity_of(system, trial.x0))
        size = np.abs(velocity).max()
        error = np.abs(velocity - climbs(system, x)).max() / size
        n, d = x.shape
        off = np.abs(velocity - plain_velocity(system, n, d)(x)).max() / size
        quantities = (
            Quantity("|x' − gradient|", error, "≤", 1e-10),
            Quantity("off the equation", off, "≤", 1e-10, "equation"),
        )
        return [Draw(trial.about, quantities)]


@eqx.filter_jit
def velocity_of(system: Any, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
    """The velocity of the library, compiled as one."""
    return system.velocity(0.0, x)


def climb_usa(system: Any, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
    """`n ∇E_β`."""
    beta = float(system.beta)
    return len(x) * slope(lambda y: np.exp(beta * (y @ y.T)).mean() / (2 * beta), x)


def climb_sa(system: Any, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
    """The gradient of `Σ_ij e^{β<Vx_i,x_j>}/(2β)` for the metric `Σ_i Z_i <a_i, b_i>`."""
    beta, V = float(system.beta), np.eye(x.shape[1])
    V = V if system.heads.V is None else np.asarray(system.heads.V)
    Z = np.exp(beta * (x @ V @ x.T)).sum(axis=1)
    return slope(lambda y: np.exp(beta * (y @ V @ y.T)).sum() / (2 * beta), x) / Z[:, None]


def slope(f: Callable[[np.ndarray], Any], x: Float[np.ndarray, "n d"]) -> np.ndarray:
    """The tangential gradient of f on the sphere, by complex steps, which lose no digits.

    >>> slope(lambda y: y[0, 0] ** 2, np.array([[0.6, 0.8]])).round(4).tolist()
    [[0.768, -0.576]]
    """
    free = np.empty_like(x)
    for at in np.ndindex(*x.shape):
        step = np.zeros(x.shape, complex)
        step[at] = 1e-30j
        free[at] = np.imag(f(x + step)) / 1e-30
    return free - np.sum(free * x, axis=1, keepdims=True) * x
