"""The pure driver: one integration under jit, grad and vmap, in one piece or in chunks of steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from attnflow.simulation import inputs
from attnflow.simulation.methods import Method, SolverParts
from attnflow.simulation.stepping import all_finite, with_plain_stages
from attnflow.systems import System

Save = Callable[[Any, Any], Any]

NO_METER = diffrax.NoProgressMeter()

OVERFLOW = "attnflow: the velocity at x0 is too large for this dtype."
STOPPED = "attnflow: the run stopped before ts[-1]: raise max_steps or rtol."


class EncodedState(NamedTuple):
    """A state x, and the coordinates in which it was integrated and has all its digits."""

    x: Any
    inner: Any


def split_encoded(saved: Any) -> tuple[Any, Any]:
    """What was saved, and the same in the coordinates of the integration where these differ."""
    return (saved.x, saved.inner) if isinstance(saved, EncodedState) else (saved, None)


class SolverState(eqx.Module):
    """The state of an integration: all that is needed to go on, and all that was saved.

    Between two compiled programs it is that of a batch, with axes `*batch` before all others.
    """

    masses: Float[Array, "*batch n"] | None
    basis: Float[Array, "*batch r d"] | None
    key: Key[Array, "*batch"] | None
    t: Float[Array, "*batch"]
    y: Any
    dt: Float[Array, "*batch"]
    solver_state: Any
    controller_state: Any
    made_jump: Bool[Array, "*batch"]
    saved: Any
    count: Int[Array, "*batch"]
    accepted: Int[Array, "*batch"]
    rejected: Int[Array, "*batch"]
    failed: Bool[Array, "*batch"]


class Problem(eqx.Module):
    """What is integrated: a system from its start to the last of ts, by a method.

    With a basis B the states are coordinates c, and what is saved are the tokens c B. `inside` says
    that the start is given in the coordinates of the system's `encode`, `watched` that the host
    looks at the run from time to time.
    """

    system: System
    method: Method
    ts: Float[Array, " T"]
    save: Save | None
    inside: bool = False
    watched: bool = False

    def begin(
        self,
        x: Any,
        masses: Float[Array, " n"] | None,
        basis: Float[Array, "r d"] | None = None,
        key: Key[Array, ""] | None = None,
        merges: Any = None,
    ) -> SolverState:
        """The state at ts[0], before any step; the key is for systems that draw as they run.

        `merges` is the merge tree of the run that is continued. What is due at ts[0] is saved now,
        so that no step that fails can take it along.
        """
        t0, t1 = self.ts[0], self.ts[-1]
        parts = self._solver_parts(masses, key, x)
        y = x if self.inside else parts.encode(t0, x)
        order = parts.solver.error_order(parts.term)
        start = jnp.zeros_like(t0) if self.method.local_time else t0
        t_next, controller_state = parts.controller.init(
            parts.term, start, t1, y, parts.dt0, None, parts.solver.func, order
        )
        inner = parts.solver.init(parts.term, start, t_next, y, None)
        first = jax.tree.map(jnp.asarray, self._value(parts, t0, y, basis))
        sound = t_next > start
        if parts.dt0 is not None:  # else the first step was found from the velocity
            sound &= all_finite(parts.term.vf(t0, y, None))
        none = jnp.zeros((), int)
        state = SolverState(
            masses=masses,
            basis=basis,
            key=key,
            t=t0,
            y=y,
            dt=t_next - start,
            solver_state=self.method.initial_state(inner, t0, y, masses, merges, self.watched),
            controller_state=controller_state,
            made_jump=jnp.zeros((), bool),
            saved=jax.tree.map(
                lambda a: _unset((len(self.ts), *a.shape), a.dtype).at[0].set(a), first
            ),
            count=none + 1,
            accepted=none,
            rejected=none,
            failed=~sound,
        )
        return jax.tree.map(jnp.asarray, state)

    def advance(
        self,
        at: SolverState,
        steps: Any = None,
        progress: diffrax.AbstractProgressMeter = NO_METER,
    ) -> SolverState:
        """The state after at most `steps` more steps: by default as many as the method allows.

        The loop has no derivative in reverse mode, and nothing in it calls back to the host.
        """
        steps = self.method.steps_limit(self.system, self.ts) if steps is None else steps
        parts = self._solver_parts(at.masses, at.key, at.y)
        quick = parts._replace(solver=with_plain_stages(parts.solver))
        moving = dataclasses.replace(at, masses=None, basis=None, key=None)
        moved = self.method.advance(
            quick, moving, self.ts, lambda t, y: self._value(parts, t, y, at.basis), steps, progress
        )
        return dataclasses.replace(moved, masses=at.masses, basis=at.basis, key=at.key)

    def advance_with_derivatives(
        self,
        at: SolverState,
        steps: int | None = None,
        adjoint: diffrax.AbstractAdjoint | None = None,
        progress: diffrax.AbstractProgressMeter = NO_METER,
    ) -> SolverState:
        """The state at the end, or where the method gives up, with derivatives in either mode."""
        if self.method.local_time:
            return self.advance(at, steps, progress)
        steps = self.method.steps_limit(self.system, self.ts) if steps is None else steps
        T = len(self.ts)
        parts = self._solver_parts(at.masses, at.key, at.y)
        solution = diffrax.diffeqsolve(
            parts.term,
            parts.solver,
            at.t,
            self.ts[-1],
            at.dt,
            at.y,
            stepsize_controller=parts.controller,
            saveat=self._saves(parts, at),
            adjoint=diffrax.RecursiveCheckpointAdjoint() if adjoint is None else adjoint,
            max_steps=steps,
            throw=False,
            progress_meter=progress,
            solver_state=at.solver_state,
            controller_state=at.controller_state,
            made_jump=at.made_jump,
        )
        (times, new), (t_last, y_last) = zip(solution.ts, solution.ys, strict=True)
        made = jnp.isfinite(times)
        slots = jnp.where(made, at.count + jnp.arange(T), T)
        running = diffrax.RESULTS.max_steps_reached
        return SolverState(
            masses=at.masses,
            basis=at.basis,
            key=at.key,
            t=t_last[0],
            y=jax.tree.map(lambda a: a[0], y_last),
            dt=solution.controller_state[1],
            solver_state=solution.solver_state,
            controller_state=solution.controller_state,
            made_jump=jnp.asarray(solution.made_jump),
            saved=jax.tree.map(lambda a, b: a.at[slots].set(b, mode="drop"), at.saved, new),
            count=jnp.minimum(at.count + made.sum(), T),
            accepted=at.accepted + jnp.asarray(solution.stats["num_accepted_steps"], int),
            rejected=at.rejected + jnp.asarray(solution.stats["num_rejected_steps"], int),
            failed=(solution.result != diffrax.RESULTS.successful) & (solution.result != running),
        )

    def _saves(self, parts: SolverParts, at: SolverState) -> diffrax.SaveAt:
        """What is due after this state: values at the times that are left, and the end."""
        T = len(self.ts)
        padded = jnp.concatenate([self.ts, jnp.full(T, self.ts[-1])])
        due = diffrax.SubSaveAt(
            ts=jax.lax.dynamic_slice(padded, (at.count,), (T,)),
            fn=lambda t, y, args: self._value(parts, t, y, at.basis),
        )
        return diffrax.SaveAt(
            subs=(due, diffrax.SubSaveAt(t1=True)),
            solver_state=True,
            controller_state=True,
            made_jump=True,
        )

    def rested(self, at: SolverState, rests: Bool[Array, ""]) -> SolverState:
        """The state itself; where it rests, the same at the last of ts, with all saves made."""
        parts = self._solver_parts(at.masses, at.key, at.y)
        due = rests & (jnp.arange(len(self.ts)) >= at.count)

        def at_time(t: Any, due: Any, saved: Any) -> Any:
            value = self._value(parts, t, at.y, at.basis)
            return jax.tree.map(lambda a, b: jnp.where(due, a, b), value, saved)

        saved = jax.lax.map(lambda args: at_time(*args), (self.ts, due, at.saved))
        t, count = jnp.where(rests, self.ts[-1], at.t), jnp.where(rests, len(self.ts), at.count)
        return dataclasses.replace(at, t=t, count=count, saved=saved)

    def run_or_raise(
        self,
        x0: Any,
        masses: Any,
        key: Any,
        merges: Any,
        steps: int | None = None,
        adjoint: diffrax.AbstractAdjoint | None = None,
        progress: bool = False,
    ) -> SolverState:
        """The state at the last of ts; the compiled code raises where it is not reached."""
        start = self.begin(x0, masses, None, key, merges)
        y = eqx.error_if(start.y, start.failed, OVERFLOW)
        meter = diffrax.TqdmProgressMeter() if progress else NO_METER
        begun = eqx.tree_at(lambda a: a.y, start, y)
        at = self.advance_with_derivatives(begun, steps, adjoint, meter)
        # Not all of `at`: the key of a system that draws cannot pass through error_if.
        reached = eqx.error_if((at.y, at.saved), at.t < self.ts[-1], STOPPED)
        return eqx.tree_at(lambda a: (a.y, a.saved), at, reached)

    def final(self, at: SolverState) -> Any:
        """The state that was reached."""
        parts = self._solver_parts(at.masses, at.key, at.y)
        return self._state(parts, at.t, at.y, at.basis)

    def _solver_parts(self, masses: Any, key: Any, y: Any) -> SolverParts:
        drawn = self.system if key is None else self.system.with_key(key)
        return self.method.solver_parts(drawn, masses, self.ts, y)

    def _value(self, parts: SolverParts, t: Any, y: Any, basis: Array | None) -> Any:
        state = self._state(parts, t, y, basis)
        return state if self.save is None else self.save(t, split_encoded(state)[0])

    def _state(self, parts: SolverParts, t: Any, y: Any, basis: Array | None) -> Any:
        x = _lifted(parts.decode(t, y), basis)
        if not (self.system.encoded and self.method.uses_encoding):
            return x
        return EncodedState(x, _lifted(self.system.retract(y), basis))


class Solution(eqx.Module):
    """What `solve` returns.

    Attributes:
        ts: the times.
        xs: the states at these times, (T, n, d), or what `save` made of them.
        final: the last state, (n, d).
        steps: how many steps were taken.
        rejected: how many steps were tried and rejected.
        merges: the merge tree of `Coarsening`; None for other methods.
    """

    ts: Float[Array, " T"]
    xs: Any
    final: Any
    steps: Int[Array, ""]
    rejected: Int[Array, ""]
    merges: Any

    def __getitem__(self, number: Any) -> Any:
        """Refused, as is unpacking: it was a tuple of three in 0.1."""
        raise TypeError("solve returns a Solution now: take its .xs, .final and .steps by name.")


def solve(
    system: System,
    x0: Float[Array, "n d"],
    ts: Float[Array, " T"],
    *,
    method: Method | None = None,
    masses: Float[Array, " n"] | None = None,
    save: Save | None = None,
    key: Any = None,
    merges: Any = None,
    progress: bool = False,
    adjoint: diffrax.AbstractAdjoint | None = None,
) -> Solution:
    """Run a system from one start, under your own jit, grad and vmap.

    `simulate` is the friendly way in; `solve` is the pure function below it. It chooses its method
    in the same way, and refuses what can be refused without looking at values: a method that does
    not fit the system, a missing key. If a run does not reach the last time, the compiled code
    raises.

    Args:
        system: what to run, for example `SA(beta=4.0)`.
        x0: the tokens at ts[0], shape (n, d).
        ts: increasing times, shape (T,), of which the first is the start.
        method: as in `simulate`.
        masses: the masses of the tokens, shape (n,); all 1 by default.
        save: save `save(t, x)` at each time instead of the state.
        key: an integer or a JAX key, for systems that draw random numbers as they run.
        merges: the merge tree of an earlier run that is continued with `Coarsening`.
        progress: show a bar.
        adjoint: how derivatives are taken; reverse mode by default,
            `diffrax.ForwardMode()` for forward mode.

    >>> import attnflow as af
    >>> x0 = af.initial.sphere(n=4, d=3, key=0)
    >>> run = lambda beta: solve(af.SA(beta), x0, jnp.array([0.0, 1.0])).final
    >>> jax.jit(run)(2.0).shape
    (4, 3)
    """
    inputs.check_system(system)
    method = inputs.check_method(method, system, x0, ts, masses)
    problem = Problem(system, method, ts, save)
    key = inputs.check_key(system, key)
    at = problem.run_or_raise(x0, masses, key, merges, adjoint=adjoint, progress=progress)
    return Solution(
        ts=ts,
        xs=split_encoded(at.saved)[0],
        final=split_encoded(problem.final(at))[0],
        steps=at.accepted,
        rejected=at.rejected,
        merges=method.merges(at.solver_state),
    )


def _lifted(x: Any, basis: Array | None) -> Any:
    return x if basis is None else x @ basis


def _unset(shape: tuple[int, ...], dtype: Any) -> Array:
    fill = jnp.nan if jnp.issubdtype(dtype, jnp.inexact) else 0
    return jnp.full(shape, fill, dtype)
