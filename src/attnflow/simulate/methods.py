"""How to integrate: to a tolerance, with a fixed step, or layer by layer."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow.checks import is_traced, require_count, require_positive
from attnflow.errors import InputError, unknown
from attnflow.simulate.noise import Noise
from attnflow.simulate.stepping import (
    RK4,
    LayerStep,
    Resumable,
    Retracted,
    Tolerance,
    worst_token,
)
from attnflow.systems import Diffusive, Map, System

MAX_STEPS = 100_000
MOST_STEPS = 10**9
"""No run has more steps of one size: at ten microseconds each they take hours."""


class Pieces(NamedTuple):
    """What diffrax needs to know, and the coordinates in which it works."""

    term: diffrax.AbstractTerm
    solver: Any
    controller: Resumable
    dt0: Any
    encode: Callable[[Any, Any], Any]
    decode: Callable[[Any, Any], Any]


class Method(eqx.Module):
    """A way to go from one time to the next."""

    @abc.abstractmethod
    def pieces(self, system: System, masses: Any, ts: Float[Array, " T"], y: Any) -> Pieces:
        """The parts of the integration, for a state like y."""

    @abc.abstractmethod
    def steps_limit(self, ts: Any) -> int:
        """The number of steps after which the run gives up."""

    @property
    @abc.abstractmethod
    def stages(self) -> int:
        """How many velocities (or layers) a step evaluates."""

    def merges(self, solver_state: Any) -> Any:
        """The merge tree, for a method that merges tokens."""
        return None

    def check(self, system: System, ts: Float[np.ndarray, " T"]) -> None:
        """Raise an error if this method cannot run the system at these times."""
        if isinstance(system, Map):
            raise InputError(
                f"method must be Layers(dt) for {type(system).__name__}, which is a map in time "
                f"and has no velocity; it is {self!r}."
            )
        if isinstance(system, Diffusive):
            raise InputError(
                f"method must be Fixed(dt, 'euler') or Layers(dt) for {type(system).__name__}, "
                f"which has noise; it is {self!r}."
            )

    def _continuous(
        self, system: System, masses: Any, solver: Any, controller: Any, dt0: Any
    ) -> Pieces:
        def velocity(t: Any, y: Any, latest: Any) -> Any:
            return system.flow(t if latest is None else jnp.minimum(t, latest), y, masses)

        return Pieces(
            term=diffrax.ODETerm(velocity),
            solver=solver,
            controller=Resumable(controller, system.breaks if dt0 is None else ()),
            dt0=dt0,
            encode=system.encode,
            decode=lambda t, y: system.decode(t, system.retract(y)),
        )


class Adaptive(Method):
    """Error-controlled steps: the local error of every token x stays below `atol + rtol |x|`.

    It is kept a factor of ten below, so that errors which add up, and states between steps, keep to
    the tolerance too unless the dynamics itself amplifies them.

    `solver` is "dopri8" (order 8, the default: fewest evaluations at tight tolerances) or
    "tsit5" (order 5: cheaper when rtol is 1e-5 or looser). The run gives up, keeping what it has,
    after `max_steps` steps.

    >>> Adaptive(rtol=1e-6)
    Adaptive(rtol=1e-06, atol=1e-10, solver='dopri8', max_steps=100000)
    """

    rtol: Array
    atol: Array
    max_steps: int = eqx.field(static=True)
    solver: str = eqx.field(static=True)

    def __init__(
        self,
        rtol: Any = 1e-8,
        atol: Any = 1e-10,
        max_steps: int = MAX_STEPS,
        solver: str = "dopri8",
    ):
        require_positive(rtol, "rtol")
        require_positive(atol, "atol")
        self.rtol, self.atol = jnp.asarray(rtol, float), jnp.asarray(atol, float)
        self.max_steps = require_count(max_steps, "max_steps")
        if solver not in ADAPTIVE_SOLVERS:
            raise unknown("solver", solver, ADAPTIVE_SOLVERS)
        self.solver = solver

    def pieces(self, system: System, masses: Any, ts: Float[Array, " T"], y: Any) -> Pieces:
        """The solver under the controller, retracted."""
        solver = Retracted(ADAPTIVE_SOLVERS[self.solver](), system, self.tolerance(ts.dtype))
        return self._continuous(system, masses, solver, self.controller(ts), None)

    def tolerance(self, dtype: Any) -> Tolerance:
        """What a step may err; below rounding it is raised to rounding."""
        floor = 80 * float(jnp.finfo(dtype).eps)
        rtol, atol = (jnp.maximum(a.astype(dtype), floor) for a in (self.rtol, self.atol))
        return Tolerance(rtol, atol)

    def controller(self, ts: Float[Array, " T"]) -> diffrax.AbstractStepSizeController:
        """PID control of an error that is measured in units of the tolerance."""
        return diffrax.PIDController(
            rtol=0.0,
            atol=1.0,
            pcoeff=0.2,
            icoeff=0.4,
            dtmin=1e-14 * jnp.minimum(ts[-1] - ts[0], 1),
            force_dtmin=False,
            norm=worst_token,
        )

    def steps_limit(self, ts: Any) -> int:
        """`max_steps`."""
        return self.max_steps

    @property
    def stages(self) -> int:
        """14 or 7."""
        return ADAPTIVE_SOLVERS[self.solver].tableau.num_stages

    def __repr__(self) -> str:
        """As it would be typed."""
        return (
            f"Adaptive(rtol={as_typed(self.rtol)}, atol={as_typed(self.atol)}, "
            f"solver={self.solver!r}, max_steps={self.max_steps})"
        )


class Fixed(Method):
    """Steps of one size: "rk4" (order 4), "heun" (2) or "euler" (1), with retraction after each.

    `dt` is made smaller where no whole number of steps fits between the first and the last time.
    Systems with noise take "euler" (Euler–Maruyama) or "heun", and save times that are steps.

    >>> Fixed(0.1)
    Fixed(dt=0.1, solver='rk4')
    """

    dt: Array
    solver: str = eqx.field(static=True)

    def __init__(self, dt: Any, solver: str = "rk4"):
        require_positive(dt, "dt")
        self.dt = jnp.asarray(dt, float)
        if solver not in FIXED_SOLVERS:
            raise unknown("solver", solver, FIXED_SOLVERS)
        self.solver = solver

    def pieces(self, system: System, masses: Any, ts: Float[Array, " T"], y: Any) -> Pieces:
        """The solver under a constant step."""
        span = ts[-1] - ts[0]
        steps = jnp.ceil(span / self.dt.astype(ts.dtype) - _slack(ts.dtype))
        dt = span / jnp.maximum(steps, 1)
        solver = Retracted(FIXED_SOLVERS[self.solver](), system)
        parts = self._continuous(system, masses, solver, diffrax.ConstantStepSize(), dt)
        if not isinstance(system, Diffusive):
            return parts
        noise = Noise(system, masses, dt, y.shape)
        return parts._replace(term=diffrax.MultiTerm(parts.term, noise))

    def steps_limit(self, ts: Any) -> int:
        """As many steps as it takes."""
        return _count(ts, self.dt)

    @property
    def stages(self) -> int:
        """4, 2 or 1."""
        return {"rk4": 4, "heun": 2, "euler": 1}[self.solver]

    def check(self, system: System, ts: Float[np.ndarray, " T"]) -> None:
        """Noise needs a solver for it, and is not known between steps."""
        _require_possible(ts, self.dt)
        if not isinstance(system, Diffusive):
            super().check(system, ts)
            return
        if self.solver == "rk4" or (self.solver == "heun" and system.ito):
            raise InputError(
                f"method must be Fixed(dt, 'euler') for {type(system).__name__}, which has "
                f"noise{' in the sense of Itô' if system.ito else ''}; it is {self!r}."
            )
        if not is_traced(self.dt):
            span = ts[-1] - ts[0]
            steps = max(1, math.ceil(span / float(self.dt) - 1e-9))
            _require_steps(ts, span / steps, "steps")

    def __repr__(self) -> str:
        """As it would be typed."""
        return f"Fixed(dt={as_typed(self.dt)}, solver={self.solver!r})"


class Layers(Method):
    """The discrete Transformer with step dt: E3 on R^d, E4d rescaled, SAd on the sphere.

    Every save time is a whole number of layers after the start.

    >>> Layers()
    Layers(dt=1.0)
    """

    dt: Array

    def __init__(self, dt: Any = 1.0):
        require_positive(dt, "dt")
        self.dt = jnp.asarray(dt, float)

    def pieces(self, system: System, masses: Any, ts: Float[Array, " T"], y: Any) -> Pieces:
        """A layer as a step, in the coordinates of the system itself."""
        dt = self.dt.astype(ts.dtype)
        zero = jax.tree.map(jnp.zeros_like, y)
        return Pieces(
            term=diffrax.ODETerm(lambda t, y, args: zero),
            solver=LayerStep(system, dt, masses),
            controller=Resumable(diffrax.ConstantStepSize(), ()),
            dt0=dt,
            encode=lambda t, x: x,
            decode=lambda t, y: y,
        )

    def steps_limit(self, ts: Any) -> int:
        """The number of layers."""
        return _count(ts, self.dt)

    @property
    def stages(self) -> int:
        """1."""
        return 1

    def check(self, system: System, ts: Float[np.ndarray, " T"]) -> None:
        """Save times must be whole numbers of layers after the start."""
        if is_traced(self.dt):
            return
        dt = float(self.dt)
        _require_possible(ts, dt)
        _require_steps(ts, dt, "layers")
        system.check_layers(dt, ts[0])

    def __repr__(self) -> str:
        """As it would be typed."""
        return f"Layers(dt={as_typed(self.dt)})"


ADAPTIVE_SOLVERS: dict[str, Any] = {"dopri8": diffrax.Dopri8, "tsit5": diffrax.Tsit5}
FIXED_SOLVERS: dict[str, Any] = {"rk4": RK4, "heun": diffrax.Heun, "euler": diffrax.Euler}


def _require_steps(ts: Float[np.ndarray, " T"], dt: float, what: str) -> None:
    """Every save time is a whole number of steps after the start."""
    steps = (ts - ts[0]) / dt
    off = np.abs(steps - np.round(steps)) > 1e-6 * np.maximum(1, steps)
    if off.any():
        i = int(np.argmax(off))
        below, above = (ts[0] + dt * f(steps[i]) for f in (math.floor, math.ceil))
        raise InputError(
            f"ts[{i}] = {ts[i]:g} is not a whole number of {what} of dt = {dt:g} after the "
            f"start: the nearest times that are are {below:g} and {above:g}."
        )


def _require_possible(ts: Float[np.ndarray, " T"], dt: Any) -> None:
    """Refuse a step that is so small that no run comes to its end."""
    if is_traced(dt):
        return
    span = float(ts[-1]) - float(ts[0])
    if not span / MOST_STEPS <= float(dt):
        raise InputError(
            f"dt = {float(dt):g} is too small: from t = {ts[0]:g} to {ts[-1]:g} it would take more "
            f"than {MOST_STEPS:.0e} steps."
        )


def _slack(dtype: Any) -> float:
    return 1e-4 if dtype == jnp.float32 else 1e-9


def _count(ts: Any, dt: Any) -> int:
    """The number of steps of size dt; under tracing, where it is unknown, the usual limit."""
    if is_traced((ts, dt)):
        return MAX_STEPS
    ts = np.asarray(ts)
    return max(1, math.ceil(float(ts[-1] - ts[0]) / float(dt) - _slack(ts.dtype))) + 1


def as_typed(value: Any) -> str:
    """A number as it would be typed, which a traced one cannot be."""
    return "traced" if is_traced(value) else repr(float(value))
