"""What attnflow adds to diffrax: steps that stay in the space, layers as steps, RK4, resuming."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from attnflow.systems import System
from attnflow.systems.base import row_lengths
from attnflow.weights import Breaks

Sizes = Callable[[Array], tuple[Array, Any]]


def usual_sizes(y: Array) -> tuple[Array, Any]:
    """What `rtol` and `atol` are parts of: the length of each row, and 1."""
    return row_lengths(y), 1.0


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
        return 4


MARGIN = 0.1
"""The part of its tolerance that a step may use: errors add up over steps, and states between
steps are interpolated, yet the whole run should keep to what was asked for."""


class Tolerance(eqx.Module):
    """The error that a step may make: `|error of a token| ≤ MARGIN (atol + rtol |token|)`.

    Lengths of tokens, not coordinates, are compared, so that steps do not depend on the choice of
    axes. A solver divides its error by this scale and the controller compares it with 1. A system
    that is integrated in other coordinates may give `sizes` of its own.
    """

    rtol: Array
    atol: Array

    def scaled(self, error: Any, y0: Any, y1: Any, sizes: Sizes = usual_sizes) -> Any:
        """The error in units of what is allowed; NaN is too much, so that the step is shortened."""

        def one(e: Array, a: Array, b: Array) -> Array:
            (before, unit), (after, _) = sizes(a), sizes(b)
            scaled = e / (MARGIN * (self.atol * unit + self.rtol * jnp.maximum(before, after)))
            return jnp.where(jnp.isnan(scaled), jnp.inf, scaled)

        return jax.tree.map(one, error, y0, y1)


def worst_token(y: Any) -> Array:
    """The norm of the controller: the length of the longest row."""
    return jnp.stack([jnp.max(row_lengths(leaf)) for leaf in jax.tree.leaves(y)]).max()


class WrappedSolver(diffrax.AbstractAdaptiveSolver, diffrax.AbstractWrappedSolver):
    """A solver around another one, which it follows in all but its step."""

    @property
    def scan_kind(self) -> Any:
        """The kind of loop over the stages, which diffrax chooses by the derivative it needs."""
        return self.solver.scan_kind  # type: ignore[attr-defined]

    @property
    def term_structure(self) -> Any:
        return self.solver.term_structure

    @property
    def interpolation_cls(self) -> Any:  # type: ignore[override]
        """As of the solver inside."""
        return self.solver.interpolation_cls

    def order(self, terms: Any) -> Any:
        return self.solver.order(terms)

    def init(self, terms: Any, t0: Any, t1: Any, y0: Any, args: Any) -> Any:
        return self.solver.init(terms, t0, t1, y0, args)

    def func(self, terms: Any, t0: Any, y0: Any, args: Any) -> Any:
        return self.solver.func(terms, t0, y0, args)


def with_plain_stages(solver: Any) -> Any:
    """The solver with a quicker loop over its stages, which has no derivative in reverse mode."""
    inside = solver.solver if isinstance(solver, WrappedSolver) else None
    if not isinstance(inside, diffrax.AbstractRungeKutta):
        return solver
    return eqx.tree_at(
        lambda s: s.solver.scan_kind, solver, "lax", is_leaf=lambda leaf: leaf is None
    )


class Retracted(WrappedSolver):
    """A solver whose every step ends in the system's space.

    What is interpolated between steps is retracted when it is saved.

    At a break the velocity jumps. A step that ends there must use the velocity from before the
    jump: the term reads the latest time that it may see as its `args`.
    """

    solver: diffrax.AbstractSolver  # type: ignore[misc]
    system: System
    tolerance: Tolerance | None = None

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
            error = self.tolerance.scaled(error, y0, y1, partial(self.system.sizes, t0, t1))
        return y1, error, dense | {"y1": y1}, solver_state, result


def latest_stage(system: System, t1: Any) -> Any:
    """The latest time that the stages of a step to t1 may see: before a jump that is at t1."""
    return system.breaks.before(t1) if system.breaks else None


class LayerStep(diffrax.AbstractSolver):
    """A layer of the discrete Transformer as a step; its term is not used."""

    system: System
    dt: Array
    masses: Array | None

    term_structure: ClassVar[Any] = diffrax.AbstractTerm
    interpolation_cls: ClassVar[Callable[..., Any]] = diffrax.LocalLinearInterpolation

    def order(self, terms: Any) -> int:
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
    return diffrax.RESULTS.where(all_finite(y), result, diffrax.RESULTS.nonlinear_divergence)


def all_finite(y: Any) -> Bool[Array, ""]:
    """Whether every number of a state is finite."""
    return jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(y)]).all()


def whole_if_close(k: Array) -> Array:
    """k, without the rounding error of a number that should be whole."""
    nearest = jnp.round(k)
    close = jnp.maximum(1e-6, 8 * jnp.finfo(k.dtype).eps * jnp.abs(k))
    return jnp.where(jnp.abs(k - nearest) < close, nearest, k)


class Resumable(diffrax.AbstractStepSizeController):
    """A controller that remembers the step it would take next, and stops at every break.

    Its state is a pair: the inner state and the next step, which is what a later call needs to go
    on exactly where this one stopped.
    """

    controller: diffrax.AbstractStepSizeController
    breaks: Breaks = eqx.field(static=True)

    def wrap(self, direction: Any) -> Resumable:
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
        if self.breaks:
            jump = jump | self.breaks.reached(jnp.asarray(start))
        return keep, start, end, jump, (state, end - start), result

    def _cut(self, start: Any, end: Any) -> Any:
        return jnp.minimum(end, self.breaks.next(jnp.asarray(start))) if self.breaks else end


class EqualSteps(diffrax.AbstractStepSizeController):
    """Fixed steps: between two stops a whole number of equal ones, none longer than dt.

    The stops are the breaks of the velocity and the times `stops`, of which the first is the start
    and the last the end. Where a step ends is a function of where it begins, so nothing adds up.
    """

    dt: Float[Array, ""]
    stops: Float[Array, " S"]
    breaks: Breaks = eqx.field(static=True)

    def length(self, t: Float[Array, ""]) -> Float[Array, ""]:
        """The length of the step from t."""
        start, end, count = self._stretch(t)
        return (end - start) / count

    def end(self, t: Float[Array, ""]) -> Float[Array, ""]:
        """The end of the step from t."""
        start, end, count = self._stretch(t)
        done = jnp.round((t - start) / (end - start) * count)
        following = jnp.where(done + 1 < count, start + (end - start) * ((done + 1) / count), end)
        return jnp.where(t < self.stops[-1], following, t + self.dt)

    def _stretch(self, t: Float[Array, ""]) -> tuple[Array, Array, Array]:
        """The stops before and after t, and the number of steps between them."""
        unit = 16 * float(jnp.finfo(t.dtype).eps)
        passed = self.stops <= t + unit * jnp.abs(t)
        # At the end there is no next stop: the last stretch stays.
        passed = passed.at[-1].set(False)
        start = jnp.max(jnp.where(passed, self.stops, self.stops[0]))
        end = jnp.min(jnp.where(passed, self.stops[-1], self.stops))
        if self.breaks:
            inside = jnp.minimum(t, jnp.nextafter(self.stops[-1], self.stops[0]))
            start = jnp.maximum(start, self.breaks.last(inside))
            end = jnp.minimum(end, self.breaks.next(inside))
        slack = 1e-9 + unit * jnp.maximum(jnp.abs(start), jnp.abs(end)) / self.dt
        count = jnp.ceil((end - start) / self.dt - jnp.minimum(slack, 0.5))
        return start, end, jnp.maximum(count, 1)

    def wrap(self, direction: Any) -> EqualSteps:
        """Itself: time runs forward."""
        return self

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
        """The first step."""
        return self.end(t0), None

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
        """The next step."""
        return True, t1, self.end(t1), False, None, diffrax.RESULTS.successful
