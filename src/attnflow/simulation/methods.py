"""How to integrate: to a tolerance, with a fixed step, or layer by layer."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow.checks import as_positive, is_traced, require_count
from attnflow.errors import InputError, unknown
from attnflow.retired import RenamedAttribute
from attnflow.simulation.loop import Value, take_steps
from attnflow.simulation.noise import require_noise_solver, require_numbered, with_noise
from attnflow.simulation.step_counts import (
    MAX_STEPS,
    require_possible,
    require_resolved,
    require_whole_layers,
    steps_between,
)
from attnflow.simulation.stepping import (
    RK4,
    EqualSteps,
    LayerStep,
    Resumable,
    Retracted,
    Tolerance,
    worst_token,
)
from attnflow.systems import System
from attnflow.weights import Breaks


class SolverParts(NamedTuple):
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
    def solver_parts(
        self, system: System, masses: Any, ts: Float[Array, " T"], y: Any
    ) -> SolverParts:
        """The parts of the integration, for a state like y."""

    @abc.abstractmethod
    def steps_limit(self, system: System, ts: Any) -> int:
        """The number of steps after which the run gives up."""

    @property
    @abc.abstractmethod
    def stages(self) -> int:
        """How many velocities (or layers) a step evaluates."""

    local_time: ClassVar[bool] = False
    """Whether its steps count time from their own beginning, which only its own `advance` can."""

    def advance(
        self,
        parts: SolverParts,
        at: Any,
        ts: Float[Array, " T"],
        value: Value,
        steps: Any,
        progress: diffrax.AbstractProgressMeter,
    ) -> Any:
        """The state after at most `steps` more steps.

        Args:
            parts: what `solver_parts` returned.
            at: the state of the integration.
            ts: the times at which something is saved, shape (T,).
            value: what is saved of a state.
            steps: how many steps may be tried.
            progress: a progress meter of diffrax.
        """
        return take_steps(parts, at, ts, value, steps, progress)

    def initial_state(
        self, inner: Any, t: Any, x: Any, masses: Any, merges: Any, watched: bool
    ) -> Any:
        """What the run carries besides its state: that of the solver, and what has merged.

        A run that is `watched` may stop before its end to be looked at.
        """
        return inner

    def at_rest(self, system: System, at: Any) -> tuple[Any, np.ndarray | None]:
        """The states of a batch, and which of them have come to rest (None: nobody looked)."""
        return at, None

    @property
    def uses_encoding(self) -> bool:
        """Whether it integrates in the coordinates of the system's `encode`."""
        return False

    @property
    def limits_steps(self) -> bool:
        """Whether no more steps than `steps_limit` may be tried: fixed ones end by themselves."""
        return False

    def memory(self, system: System, n: int) -> int:
        """How many scores are in memory at once for n tokens: as many as the system holds."""
        return system.cost(n).held

    scores_held = RenamedAttribute("memory")
    pieces = RenamedAttribute("solver_parts")
    entered = RenamedAttribute("initial_state")
    watched = RenamedAttribute("at_rest")
    encodes = RenamedAttribute("uses_encoding")
    limited = RenamedAttribute("limits_steps")
    on_host: ClassVar[bool] = False
    """Whether its loop runs on the host and is not compiled."""
    exact_sums: ClassVar[bool] = False
    """Whether it runs `System.with_exact_sums`."""

    @property
    def layer_step(self) -> Array | None:
        """The step of a layer, for a method that runs layers; None for flows."""
        return None

    def merges(self, solver_state: Any) -> Any:
        """The merge tree, for a method that merges tokens."""
        return None

    def check(self, system: System, ts: Float[np.ndarray, " T"] | None) -> None:
        """Raise an error if this method cannot run the system at these times, None if traced."""
        if system.dynamics == "map":
            raise InputError(
                f"method must be Layers(dt) for {type(system).__name__}, which is a map in time "
                f"and has no velocity; it is {self!r}."
            )
        if system.dynamics == "diffusion":
            raise InputError(
                f"method must be Fixed(dt, 'euler') or Layers(dt) for {type(system).__name__}, "
                f"which has noise; it is {self!r}."
            )

    def check_resolution(self, ts: Float[np.ndarray, " T"]) -> None:
        """Raise an error if times in the dtype of ts do not resolve the steps of this method."""

    def _continuous(
        self, system: System, masses: Any, solver: Any, controller: Any, dt0: Any
    ) -> SolverParts:
        def velocity(t: Any, y: Any, latest: Any) -> Any:
            return system.flow(t if latest is None else jnp.minimum(t, latest), y, masses)

        return SolverParts(
            term=diffrax.ODETerm(velocity),
            solver=solver,
            controller=Resumable(controller, system.breaks),
            dt0=dt0,
            encode=system.encode,
            decode=lambda t, y: system.decode(t, system.retract(y)),
        )


class ErrorControlled(Method):
    """Steps whose size an estimate of their error decides; a subclass says what is integrated."""

    limits_steps = True

    rtol: Array
    atol: Array
    max_steps: int = eqx.field(static=True)
    solver: str = eqx.field(static=True)

    def __init__(self, rtol: Any, atol: Any, max_steps: int, solver: str):
        self.rtol, self.atol = as_positive(rtol, "rtol"), as_positive(atol, "atol")
        self.max_steps = require_count(max_steps, "max_steps")
        if solver not in ADAPTIVE_SOLVERS:
            raise unknown("solver", solver, ADAPTIVE_SOLVERS)
        self.solver = solver

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

    def steps_limit(self, system: System, ts: Any) -> int:
        return self.max_steps

    @property
    def stages(self) -> int:
        return ADAPTIVE_SOLVERS[self.solver].tableau.num_stages

    def _typed(self) -> str:
        return (
            f"rtol={as_typed(self.rtol)}, atol={as_typed(self.atol)}, "
            f"solver={self.solver!r}, max_steps={self.max_steps}"
        )


class Adaptive(ErrorControlled):
    """Error-controlled steps: the local error of every token x stays below `atol + rtol |x|`.

    It is kept a factor of ten below, so that errors which add up, and states between steps, keep to
    the tolerance too unless the dynamics itself amplifies them.

    Args:
        rtol: relative tolerance.
        atol: absolute tolerance.
        max_steps: the number of steps, accepted or rejected, after which the run gives up and
            keeps what it has.
        solver: "dopri8" (order 8: fewest evaluations at tight tolerances) or "tsit5" (order 5:
            cheaper when rtol is 1e-5 or looser).

    >>> Adaptive(rtol=1e-6)
    Adaptive(rtol=1e-06, atol=1e-10, solver='dopri8', max_steps=100000)
    """

    uses_encoding = True

    def __init__(
        self,
        rtol: Any = 1e-8,
        atol: Any = 1e-10,
        max_steps: int = MAX_STEPS,
        solver: str = "dopri8",
    ):
        super().__init__(rtol, atol, max_steps, solver)

    def solver_parts(
        self, system: System, masses: Any, ts: Float[Array, " T"], y: Any
    ) -> SolverParts:
        """The solver under the controller, retracted."""
        solver = Retracted(ADAPTIVE_SOLVERS[self.solver](), system, self.tolerance(ts.dtype))
        return self._continuous(system, masses, solver, self.controller(ts), None)

    def __repr__(self) -> str:
        return f"Adaptive({self._typed()})"


class Fixed(Method):
    """Steps of one size: "rk4" (order 4), "heun" (2) or "euler" (1), with retraction after each.

    `dt` is made smaller where no whole number of steps fits between the first and the last time,
    or between two breaks of the weights (`Redrawn`, `PerLayer`, `Scheduled`): no step straddles
    one. Save times between steps are interpolated.

    Systems with noise take "heun" (order 2 in law) or "euler" (order 1; the only one for noise in
    the sense of Itô). Noise between steps is not known, so their save times are steps, too.

    >>> Fixed(0.1)
    Fixed(dt=0.1, solver='rk4')
    """

    uses_encoding = True

    dt: Array
    solver: str = eqx.field(static=True)

    def __init__(self, dt: Any, solver: str = "rk4"):
        self.dt = as_positive(dt, "dt")
        if solver not in FIXED_SOLVERS:
            raise unknown("solver", solver, FIXED_SOLVERS)
        self.solver = solver

    def solver_parts(
        self, system: System, masses: Any, ts: Float[Array, " T"], y: Any
    ) -> SolverParts:
        """The solver under equal steps."""
        noisy = system.dynamics == "diffusion"
        dt = self.dt.astype(ts.dtype)
        steps = EqualSteps(dt, ts if noisy else ts[jnp.array([0, -1])], system.breaks)
        solver = Retracted(FIXED_SOLVERS[self.solver](), system)
        parts = self._continuous(system, masses, solver, steps, dt)
        return with_noise(parts, system, masses, y, steps, self.solver) if noisy else parts

    def steps_limit(self, system: System, ts: Any) -> int:
        """As many steps as it takes."""
        return steps_between(ts, self.dt, system)

    @property
    def stages(self) -> int:
        return {"rk4": 4, "heun": 2, "euler": 1}[self.solver]

    def check(self, system: System, ts: Float[np.ndarray, " T"] | None) -> None:
        """Noise needs a solver for it."""
        require_possible(ts, self.dt, system)
        if system.dynamics == "diffusion":
            require_noise_solver(self, system)
            if ts is not None and not is_traced(self.dt):
                require_numbered(ts, float(self.dt))
        else:
            super().check(system, ts)

    def check_resolution(self, ts: Float[np.ndarray, " T"]) -> None:
        """A step is many units of rounding long."""
        require_resolved(ts, self.dt)

    def __repr__(self) -> str:
        return f"Fixed(dt={as_typed(self.dt)}, solver={self.solver!r})"


class Layers(Method):
    """The discrete Transformer with step dt: residual layers, [E](3), as each system has them.

    Every save time is a whole number of layers after the start.

    >>> Layers()
    Layers(dt=1.0)
    """

    stages = 1

    dt: Array

    def __init__(self, dt: Any = 1.0):
        self.dt = as_positive(dt, "dt")

    def solver_parts(
        self, system: System, masses: Any, ts: Float[Array, " T"], y: Any
    ) -> SolverParts:
        """A layer as a step, in the coordinates of the system itself."""
        dt = self.dt.astype(ts.dtype)
        zero = jax.tree.map(jnp.zeros_like, y)
        return SolverParts(
            term=diffrax.ODETerm(lambda t, y, args: zero),
            solver=LayerStep(system, dt, masses),
            controller=Resumable(EqualSteps(dt, ts[jnp.array([0, -1])], Breaks()), Breaks()),
            dt0=dt,
            encode=lambda t, x: x,
            decode=lambda t, y: y,
        )

    def steps_limit(self, system: System, ts: Any) -> int:
        """The number of layers."""
        return steps_between(ts, self.dt, system)

    @property
    def layer_step(self) -> Array:
        return self.dt

    def check(self, system: System, ts: Float[np.ndarray, " T"] | None) -> None:
        """Save times must be whole numbers of layers after the start."""
        if ts is None or is_traced(self.dt):
            return
        dt = float(self.dt)
        require_possible(ts, dt, system)
        require_whole_layers(ts, dt)
        if system.random:
            require_numbered(ts, dt)
        system.check_layers(dt, ts[0])

    def check_resolution(self, ts: Float[np.ndarray, " T"]) -> None:
        """A step is many units of rounding long."""
        require_resolved(ts, self.dt)

    def __repr__(self) -> str:
        return f"Layers(dt={as_typed(self.dt)})"


ADAPTIVE_SOLVERS: dict[str, Any] = {"dopri8": diffrax.Dopri8, "tsit5": diffrax.Tsit5}
FIXED_SOLVERS: dict[str, Any] = {"rk4": RK4, "heun": diffrax.Heun, "euler": diffrax.Euler}


def as_typed(value: Any) -> str:
    """A number as it would be typed, which a traced one cannot be."""
    return "traced" if is_traced(value) else repr(float(value))
