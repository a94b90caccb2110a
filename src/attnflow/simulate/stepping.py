"""What attnflow adds to diffrax: steps that stay in the space, layers as steps, RK4, resuming."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attnflow.systems import System
from attnflow.weights.schedules import rounding


class RK4(diffrax.AbstractERK):
    """The classical Runge–Kutta method of order 4."""

    tableau: ClassVar[diffrax.ButcherTableau] = diffrax.ButcherTableau(
        a_lower=(np.array([1 / 2]), np.array([0, 1 / 2]), np.array([0, 0, 1.0])),
        b_sol=np.array([1 / 6, 1 / 3, 1 / 3, 1 / 6]),
        b_error=np.zeros(4),
        c=np.array([1 / 2, 1 / 2, 1.0]),
    )
    interpolation_cls: ClassVar[Callable[..., Any]] = (
        diffrax.ThirdOrderHermitePolynomialInterpolation.from_k
    )

    def order(self, terms: Any) -> int:
        """4."""
        return 4


MARGIN = 0.1
"""The part of its tolerance that a step may use: errors add up over steps, and states between
steps are interpolated, yet the whole run should keep to what was asked for."""


class Tolerance(eqx.Module):
    """The error that a step may make: `|error of a token| ≤ MARGIN (atol + rtol |token|)`.

    Lengths of tokens, not coordinates, are compared, so that steps do not depend on the choice of
    axes. A solver divides its error by this scale and the controller compares it with 1.
    """

    rtol: Array
    atol: Array

    def scaled(self, error: Any, y0: Any, y1: Any) -> Any:
        """The error in units of what is allowed."""

        def one(e: Array, a: Array, b: Array) -> Array:
            allowed = self.atol + self.rtol * jnp.maximum(lengths(a), lengths(b))
            return e / (MARGIN * allowed)

        return jax.tree.map(one, error, y0, y1)


def lengths(y: Array) -> Array:
    """The length of each row, kept as an axis; of single numbers, their size."""
    return jnp.linalg.norm(y, axis=-1, keepdims=True) if y.ndim > 1 else jnp.abs(y)


def worst_token(y: Any) -> Array:
    """The norm of the controller: the length of the longest row."""
    return jnp.stack([jnp.max(lengths(leaf)) for leaf in jax.tree.leaves(y)]).max()


class Around(diffrax.AbstractAdaptiveSolver):
    """A solver around another one, which it follows in all but its step."""

    solver: eqx.AbstractVar[diffrax.AbstractSolver]

    @property
    def term_structure(self) -> Any:
        """As of the solver inside."""
        return self.solver.term_structure

    @property
    def interpolation_cls(self) -> Any:  # type: ignore[override]
        """As of the solver inside."""
        return self.solver.interpolation_cls

    def order(self, terms: Any) -> Any:
        """As of the solver inside."""
        return self.solver.order(terms)

    def init(self, terms: Any, t0: Any, t1: Any, y0: Any, args: Any) -> Any:
        """As of the solver inside."""
        return self.solver.init(terms, t0, t1, y0, args)

    def func(self, terms: Any, t0: Any, y0: Any, args: Any) -> Any:
        """As of the solver inside."""
        return self.solver.func(terms, t0, y0, args)


class Retracted(Around):
    """A solver whose every step ends in the system's space.

    What is interpolated between steps is retracted when it is saved.

    At a multiple of a period in `breaks` the velocity jumps. A step that ends there must use the
    velocity from before the jump: the term reads the latest time that it may see as its `args`.
    """

    solver: diffrax.AbstractSolver
    system: System
    tolerance: Tolerance | None = None

    def under(self, adjoint: diffrax.AbstractAdjoint) -> Retracted:
        """This solver with the kind of loop over its stages that the derivative needs."""
        if not (isinstance(adjoint, diffrax.ForwardMode) and hasattr(self.solver, "scan_kind")):
            return self
        return Retracted(type(self.solver)(scan_kind="lax"), self.system, self.tolerance)

    def step(
        self, terms: Any, t0: Any, t1: Any, y0: Any, args: Any, solver_state: Any, made_jump: Any
    ) -> Any:
        """The step of the solver inside, retracted."""
        latest = latest_stage(self.system, t1)
        y1, error, dense, solver_state, result = self.solver.step(
            terms, t0, t1, y0, latest, solver_state, made_jump
        )
        y1 = self.system.retract(y1)
        result = stop_unless_finite(y1, result)
        if self.tolerance is not None:
            error = self.tolerance.scaled(error, y0, y1)
        return y1, error, dense | {"y1": y1}, solver_state, result


def latest_stage(system: System, t1: Any) -> Any:
    """The latest time that the stages of a step to t1 may see: before a jump that is at t1."""
    if not system.breaks:
        return None
    return t1 - 10 * rounding(t1.dtype) * min(system.breaks)


class LayerStep(diffrax.AbstractSolver):
    """A layer of the discrete Transformer as a step; its term is not used."""

    system: System
    dt: Array
    masses: Array | None

    term_structure: ClassVar[Any] = diffrax.AbstractTerm
    interpolation_cls: ClassVar[Callable[..., Any]] = diffrax.LocalLinearInterpolation

    def under(self, adjoint: diffrax.AbstractAdjoint) -> LayerStep:
        """Itself: a layer has no stages."""
        return self

    def order(self, terms: Any) -> int:
        """1."""
        return 1

    def init(self, terms: Any, t0: Any, t1: Any, y0: Any, args: Any) -> None:
        """Layers carry no state from one to the next."""

    def func(self, terms: Any, t0: Any, y0: Any, args: Any) -> Any:
        """Not used: the step is a map."""
        return terms.vf(t0, y0, args)

    def step(
        self, terms: Any, t0: Any, t1: Any, y0: Any, args: Any, solver_state: Any, made_jump: Any
    ) -> Any:
        """Layer number t0/dt."""
        y1 = self.system.layer(whole_if_close(t0 / self.dt), y0, self.dt, self.masses)
        result = stop_unless_finite(y1, diffrax.RESULTS.successful)
        return y1, None, {"y0": y0, "y1": y1}, solver_state, result


def stop_unless_finite(y: Any, result: Any) -> Any:
    """The result of a step: it ends the run when tokens ran away and the step is not rejected."""
    finite = jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(y)]).all()
    return diffrax.RESULTS.where(finite, result, diffrax.RESULTS.nonlinear_divergence)


def whole_if_close(k: Array) -> Array:
    """k, without the rounding error of a number that should be whole."""
    nearest = jnp.round(k)
    close = 1e-3 if k.dtype == jnp.float32 else 1e-6
    return jnp.where(jnp.abs(k - nearest) < close, nearest, k)


class Resumable(diffrax.AbstractStepSizeController):
    """A controller that remembers the step it would take next, and stops at every break.

    Its state is a pair: the inner state and the next step, which is what a later call needs to go
    on exactly where this one stopped.
    """

    controller: diffrax.AbstractStepSizeController
    breaks: tuple[float, ...]

    def wrap(self, direction: Any) -> Resumable:
        """As of the controller inside."""
        return Resumable(self.controller.wrap(direction), self.breaks)

    def init(
        self,
        terms: Any,
        t0: Any,
        t1: Any,
        y0: Any,
        dt0: Any,
        args: Any,
        func: Any,
        error_order: Any,
    ) -> Any:
        """The first step, cut at the first break."""
        t_next, state = self.controller.init(terms, t0, t1, y0, dt0, args, func, error_order)
        t_next = self._cut(t0, t_next)
        return t_next, (state, t_next - t0)

    def adapt_step_size(
        self,
        t0: Any,
        t1: Any,
        y0: Any,
        y1_candidate: Any,
        args: Any,
        y_error: Any,
        error_order: Any,
        controller_state: Any,
    ) -> Any:
        """The next step, cut at the next break; a break that was reached is a jump."""
        keep, start, end, jump, state, result = self.controller.adapt_step_size(
            t0, t1, y0, y1_candidate, args, y_error, error_order, controller_state[0]
        )
        end = self._cut(start, end)
        start = jnp.asarray(start)
        for every in self.breaks:
            from_break = start / every - jnp.floor(start / every + rounding(start.dtype))
            jump = jump | (jnp.abs(from_break) <= rounding(start.dtype))
        return keep, start, end, jump, (state, end - start), result

    def _cut(self, start: Any, end: Any) -> Any:
        for every in self.breaks:
            following = (jnp.floor(start / every + rounding(start.dtype)) + 1) * every
            end = jnp.minimum(end, following)
        return end
