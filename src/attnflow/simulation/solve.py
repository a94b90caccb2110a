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
from attnflow.simulation.methods import Method, Pieces
from attnflow.systems import System

Save = Callable[[Any, Any], Any]


class Both(NamedTuple):
    """A state x, and the coordinates in which it was integrated and has all its digits."""

    x: Any
    inner: Any


def parted(kept: Any) -> tuple[Any, Any]:
    """What was kept, and the same in the coordinates of the integration where these are others."""
    return (kept.x, kept.inner) if isinstance(kept, Both) else (kept, None)


class SolverState(eqx.Module):
    """Where an integration stands: all that is needed to go on, and all that was kept."""

    masses: Float[Array, " n"] | None
    basis: Float[Array, "r d"] | None
    key: Key[Array, ""] | None
    t: Float[Array, ""]
    y: Any
    dt: Float[Array, ""]
    solver_state: Any
    controller_state: Any
    made_jump: Bool[Array, ""]
    kept: Any
    count: Int[Array, ""]
    accepted: Int[Array, ""]
    rejected: Int[Array, ""]
    failed: Bool[Array, ""]


class Problem(eqx.Module):
    """What is integrated: a system from its start to the last of ts, by a method.

    With a basis B the states are coordinates c, and what is kept are the tokens c B. `inside` says
    that the start is given in the coordinates of the system's `encode`.
    """

    system: System
    method: Method
    ts: Float[Array, " T"]
    save: Save | None
    inside: bool = False

    def begin(
        self,
        x: Any,
        masses: Float[Array, " n"] | None,
        basis: Float[Array, "r d"] | None = None,
        key: Key[Array, ""] | None = None,
        merges: Any = None,
    ) -> SolverState:
        """The standing at ts[0], before any step; the key is for systems that draw as they run.

        `merges` is the merge tree of the run that is continued.

        What is kept at ts[0] is kept now: no step that fails can take it along.
        """
        t0, t1 = self.ts[0], self.ts[-1]
        parts = self._pieces(masses, key, x)
        y = x if self.inside else parts.encode(t0, x)
        order = parts.solver.error_order(parts.term)
        start = t0 if self.method.advance is None else jnp.zeros_like(t0)
        t_next, controller_state = parts.controller.init(
            parts.term, start, t1, y, parts.dt0, None, parts.solver.func, order
        )
        inner = parts.solver.init(parts.term, start, t_next, y, None)
        first = jax.tree.map(jnp.asarray, self._keep(parts, t0, y, basis))
        none = jnp.zeros((), int)
        standing = SolverState(
            masses=masses,
            basis=basis,
            key=key,
            t=t0,
            y=y,
            dt=t_next - start,
            solver_state=self.method.entered(inner, t0, y, masses, merges),
            controller_state=controller_state,
            made_jump=jnp.zeros((), bool),
            kept=jax.tree.map(
                lambda a: _unset((len(self.ts), *a.shape), a.dtype).at[0].set(a), first
            ),
            count=none + 1,
            accepted=none,
            rejected=none,
            failed=~(_finite(parts.term.vf(t0, y, None)) & (t_next > start)),
        )
        return jax.tree.map(jnp.asarray, standing)

    def advance(
        self, at: SolverState, steps: int, adjoint: diffrax.AbstractAdjoint, progress: Any
    ) -> SolverState:
        """The standing after at most `steps` more steps."""
        T = len(self.ts)
        parts = self._pieces(at.masses, at.key, at.y)
        if self.method.advance is not None:
            return self.method.advance(
                parts, at, self.ts, lambda t, y: self._keep(parts, t, y, at.basis), steps, progress
            )
        padded = jnp.concatenate([self.ts, jnp.full(T, self.ts[-1])])
        window = jax.lax.dynamic_slice(padded, (at.count,), (T,))
        keep = diffrax.SubSaveAt(ts=window, fn=lambda t, y, args: self._keep(parts, t, y, at.basis))
        last = diffrax.SubSaveAt(t1=True)
        solution = diffrax.diffeqsolve(
            parts.term,
            parts.solver.under(adjoint),
            at.t,
            self.ts[-1],
            at.dt,
            at.y,
            stepsize_controller=parts.controller,
            saveat=diffrax.SaveAt(
                subs=(keep, last), solver_state=True, controller_state=True, made_jump=True
            ),
            adjoint=adjoint,
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
            kept=jax.tree.map(lambda a, b: a.at[slots].set(b, mode="drop"), at.kept, new),
            count=jnp.minimum(at.count + made.sum(), T),
            accepted=at.accepted + jnp.asarray(solution.stats["num_accepted_steps"], int),
            rejected=at.rejected + jnp.asarray(solution.stats["num_rejected_steps"], int),
            failed=(solution.result != diffrax.RESULTS.successful) & (solution.result != running),
        )

    def rested(self, at: SolverState, rests: Bool[Array, ""]) -> SolverState:
        """The standing itself, or at the end of time for a state that rests."""
        parts = self._pieces(at.masses, at.key, at.y)
        due = rests & (jnp.arange(len(self.ts)) >= at.count)

        def at_time(t: Any, due: Any, kept: Any) -> Any:
            value = self._keep(parts, t, at.y, at.basis)
            return jax.tree.map(lambda a, b: jnp.where(due, a, b), value, kept)

        kept = jax.lax.map(lambda args: at_time(*args), (self.ts, due, at.kept))
        t, count = jnp.where(rests, self.ts[-1], at.t), jnp.where(rests, len(self.ts), at.count)
        return dataclasses.replace(at, t=t, count=count, kept=kept)

    def whole(
        self,
        x0: Any,
        masses: Any,
        key: Any,
        merges: Any = None,
        adjoint: diffrax.AbstractAdjoint | None = None,
        progress: bool = False,
    ) -> SolverState:
        """The standing at the last of ts, in one piece; raises where it cannot be reached."""
        start = self.begin(x0, masses, None, key, merges)
        overflow = "attnflow: the velocity at x0 is too large for this dtype."
        at = self.advance(
            eqx.tree_at(lambda a: a.y, start, eqx.error_if(start.y, start.failed, overflow)),
            self.method.steps_limit(self.system, self.ts),
            diffrax.RecursiveCheckpointAdjoint() if adjoint is None else adjoint,
            diffrax.TqdmProgressMeter() if progress else diffrax.NoProgressMeter(),
        )
        # Not all of `at`: the key of a system that draws cannot pass through error_if.
        stopped = "attnflow: the run stopped before ts[-1]: raise max_steps or rtol."
        reached = eqx.error_if((at.y, at.kept), at.t < self.ts[-1], stopped)
        return eqx.tree_at(lambda a: (a.y, a.kept), at, reached)

    def final(self, at: SolverState) -> Any:
        """The state that was reached."""
        parts = self._pieces(at.masses, at.key, at.y)
        return self._state(parts, at.t, at.y, at.basis)

    def _pieces(self, masses: Any, key: Any, y: Any) -> Pieces:
        drawn = self.system if key is None else self.system.with_key(key)
        return self.method.pieces(drawn, masses, self.ts, y)

    def _keep(self, parts: Pieces, t: Any, y: Any, basis: Array | None) -> Any:
        state = self._state(parts, t, y, basis)
        return state if self.save is None else self.save(t, parted(state)[0])

    def _state(self, parts: Pieces, t: Any, y: Any, basis: Array | None) -> Any:
        x = _lifted(parts.decode(t, y), basis)
        if not (self.system.encoded and self.method.encodes):
            return x
        return Both(x, _lifted(self.system.retract(y), basis))


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
) -> tuple[Any, Any, SolverState]:
    """What was kept at the times ts, the last state, and the standing, for one start.

    Pure and traced: it lives under jit, grad and vmap. It chooses its method as `simulate` does,
    and refuses what can be refused without looking at values: a method that does not fit the
    system, a missing key. `simulate` is the friendly way in.
    Reverse-mode derivatives by default; `adjoint=diffrax.ForwardMode()` for forward mode. A run
    that cannot be completed raises when the compiled code runs. `merges` is the merge tree of the
    run that is continued.

    >>> import attnflow as af
    >>> x0 = af.initial.sphere(n=4, d=3, key=0)
    >>> run = lambda beta: solve(af.SA(beta), x0, jnp.array([0.0, 1.0]))[1]
    >>> jax.jit(run)(2.0).shape
    (4, 3)
    """
    inputs.check_system(system)
    method = inputs.check_method(method, system, x0, ts, masses)
    problem = Problem(system, method, ts, save)
    at = problem.whole(x0, masses, inputs.check_key(system, key), merges, adjoint, progress)
    return parted(at.kept)[0], parted(problem.final(at))[0], at


def _lifted(x: Any, basis: Array | None) -> Any:
    return x if basis is None else x @ basis


def _finite(tree: Any) -> Bool[Array, ""]:
    return jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(tree)]).all()


def _unset(shape: tuple[int, ...], dtype: Any) -> Array:
    fill = jnp.nan if jnp.issubdtype(dtype, jnp.inexact) else 0
    return jnp.full(shape, fill, dtype)
