"""Noise for diffrax: Brownian increments for each step, and steps that add them to a drift."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from attnflow.errors import InputError
from attnflow.simulation.stepping import EqualSteps, Retracted, WrappedSolver, stop_unless_finite
from attnflow.systems import Diffusive

GOLDEN = 0.381966
"""Numbers of steps are rounded down after this is added. Starts are multiples of a step, or simple
fractions away from one: none is on the edge, as 2.5 would be if 0.5 were added."""


MAX_NUMBERED_STEPS = 2**31 - 1
"""Steps have numbers of 32 bits."""


class Increments(eqx.Module):
    """The increments of a Brownian motion, drawn from the number and the length of a step.

    The number of the step from t is t over its length. So a run in pieces sees the motion of the
    whole, a run that is continued sees new noise, and no two steps share their draw.
    """

    key: Key[Array, ""]
    steps: EqualSteps
    shape: tuple[int, ...] = eqx.field(static=True)

    def __init__(self, system: Diffusive, steps: EqualSteps, shape: tuple[int, ...]):
        if system.key is None:
            raise missing_key(system)
        self.key, self.steps, self.shape = system.key, steps, shape

    def draw(self, t0: Any, t1: Any, parts: int = 1) -> Float[Array, "parts n d"]:
        """The increments over equal parts of the step from t0 to t1."""
        t0 = jnp.asarray(t0)
        length = self.steps.length(t0)
        number = jnp.floor(t0 / length + GOLDEN).astype(jnp.int32)
        which = jax.lax.bitcast_convert_type(length.astype(jnp.float32), jnp.uint32)
        key = jax.random.fold_in(jax.random.fold_in(self.key, number), which)
        size = jnp.sqrt((t1 - t0) / parts)
        drawn = jax.random.normal(key, (parts, *self.shape), size.dtype)
        # A loop, or the draw is compiled into, and repeated for, every use of a coordinate.
        return jax.lax.map(lambda w: size * w, drawn)


def require_numbered(ts: Float[np.ndarray, " T"], dt: float) -> None:
    """Refuse times so late that the numbers of their steps, from which noise is drawn, run out."""
    shortest = min(dt / 2, float(np.diff(ts).min()))
    if not np.abs(ts).max() < MAX_NUMBERED_STEPS * shortest:
        raise InputError(
            f"ts: noise is drawn from the number t/dt of each step, which must be below 2³¹, but "
            f"ts[-1] = {ts[-1]:g} and dt = {dt:g}: count time from 0, or take a longer dt."
        )


class Noise(diffrax.AbstractTerm):
    """The noise of a system as a term: `apply_noise` applied to the increment of a step."""

    system: Diffusive
    masses: Float[Array, " n"] | None
    increments: Increments

    def vf(self, t: Any, y: Any, args: Any) -> Any:
        """Where the noise is felt: the time and the state."""
        return t, y

    def contr(self, t0: Any, t1: Any, **kwargs: Any) -> Float[Array, "n d"]:
        """The increment from t0 to t1, which is one step: N(0, t1 − t0) for each coordinate."""
        return self.increments.draw(t0, t1)[0]

    def prod(self, vf: Any, control: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """What the increment moves."""
        t, x = vf
        return self.system.apply_noise(t, x, control.astype(x.dtype), self.masses)


class Kicked(WrappedSolver):
    """Steps of the drift with kicks by the noise: one after each step, or a half on either side.

    Half kicks around a step of order 2 are of order 2 in law if kicks are (Strang's splitting).
    """

    drift: Retracted
    system: Diffusive
    masses: Float[Array, " n"] | None
    increments: Increments
    kicks: int = eqx.field(static=True)

    interpolation_cls: ClassVar[Callable[..., Any]] = diffrax.LocalLinearInterpolation

    @property
    def solver(self) -> diffrax.AbstractSolver:  # type: ignore[override]
        """The solver of the drift."""
        return self.drift.solver

    def step(
        self, terms: Any, t0: Any, t1: Any, y0: Any, args: Any, solver_state: Any, made_jump: Any
    ) -> Any:
        """Kick, drift, kick; or drift, kick."""
        w = self.increments.draw(t0, t1, self.kicks)
        dt = (t1 - t0) / self.kicks
        y = y0 if self.kicks == 1 else self.system.kick(t0, y0, w[0], dt, self.masses)
        y, error, _, solver_state, result = self.drift.step(
            terms, t0, t1, y, args, solver_state, True
        )
        y1 = self.system.kick(t1, y, w[-1], dt, self.masses)
        return y1, error, {"y0": y0, "y1": y1}, solver_state, stop_unless_finite(y1, result)


def missing_key(system: Any) -> InputError:
    """The error of a run that has to draw and was given no key."""
    return InputError(
        f"key: {type(system).__name__} draws random numbers as it runs: pass a key, as in "
        "key=0, or a jax.random key."
    )


def require_noise_solver(method: Any, system: Any) -> None:
    """Refuse a method whose solver cannot have the noise of a system."""
    ito = system.ito
    if method.solver == "rk4" or (method.solver == "heun" and ito):
        allowed, sense = ("'euler'", " in the sense of Itô") if ito else ("'heun' or 'euler'", "")
        raise InputError(
            f"method must be Fixed(dt, {allowed}) for {type(system).__name__}, which has "
            f"noise{sense}; it is {method!r}."
        )


def with_noise(parts: Any, system: Any, masses: Any, y: Any, steps: EqualSteps, solver: str) -> Any:
    """The parts of a flow with the noise of the system added."""
    increments = Increments(system, steps, system.noise_shape(y))
    if solver == "heun" and system.additive:
        noise = Noise(system, masses, increments)
        return parts._replace(term=diffrax.MultiTerm(parts.term, noise))
    kicks = 2 if solver == "heun" else 1
    return parts._replace(solver=Kicked(parts.solver, system, masses, increments, kicks))
