"""The pure driver: one integration under jit, grad and vmap, in one piece or in chunks of steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from attnflow.simulate.methods import Adaptive, Method, Pieces
from attnflow.systems import Random, System

Save = Callable[[Any, Any], Any]


class Standing(eqx.Module):
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

    With a basis B the states are coordinates c, and what is kept are the tokens c B.
    """

    system: System
    method: Method
    ts: Float[Array, " T"]
    save: Save | None

    def begin(
        self,
        x: Any,
        masses: Float[Array, " n"] | None,
        basis: Float[Array, "r d"] | None = None,
        key: Key[Array, ""] | None = None,
    ) -> Standing:
        """The standing at ts[0], before any step; the key is for systems that draw as they run.

        What is kept at ts[0] is kept now: no step that fails can take it along.
        """
        t0, t1 = self.ts[0], self.ts[-1]
        parts = self._pieces(masses, key, x)
        y = parts.encode(t0, x)
        order = parts.solver.error_order(parts.term)
        t_next, controller_state = parts.controller.init(
            parts.term, t0, t1, y, parts.dt0, None, parts.solver.func, order
        )
        first = jax.tree.map(jnp.asarray, self._keep(parts, t0, y, basis))
        none = jnp.zeros((), int)
        start = Standing(
            masses=masses,
            basis=basis,
            key=key,
            t=t0,
            y=y,
            dt=t_next - t0,
            solver_state=parts.solver.init(parts.term, t0, t_next, y, None),
            controller_state=controller_state,
            made_jump=jnp.zeros((), bool),
            kept=jax.tree.map(
                lambda a: _unset((len(self.ts), *a.shape), a.dtype).at[0].set(a), first
            ),
            count=none + 1,
            accepted=none,
            rejected=none,
            failed=jnp.zeros((), bool),
        )
        return jax.tree.map(jnp.asarray, start)

    def advance(
        self, at: Standing, steps: int, adjoint: diffrax.AbstractAdjoint, progress: Any
    ) -> Standing:
        """The standing after at most `steps` more steps."""
        T = len(self.ts)
        parts = self._pieces(at.masses, at.key, at.y)
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
        return Standing(
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

    def final(self, at: Standing) -> Any:
        """The state that was reached."""
        parts = self._pieces(at.masses, at.key, at.y)
        return _lifted(parts.decode(at.t, at.y), at.basis)

    def _pieces(self, masses: Any, key: Any, y: Any) -> Pieces:
        drawn = self.system
        if isinstance(drawn, Random) and key is not None:
            drawn = drawn.drawing(key)
        return self.method.pieces(drawn, masses, self.ts, y)

    def _keep(self, parts: Pieces, t: Any, y: Any, basis: Array | None) -> Any:
        x = _lifted(parts.decode(t, y), basis)
        return x if self.save is None else self.save(t, x)


def solve(
    system: System,
    x0: Float[Array, "n d"],
    ts: Float[Array, " T"],
    *,
    method: Method | None = None,
    masses: Float[Array, " n"] | None = None,
    save: Save | None = None,
    key: Key[Array, ""] | None = None,
    progress: bool = False,
    adjoint: diffrax.AbstractAdjoint | None = None,
) -> tuple[Any, Any, Standing]:
    """What was kept at the times ts, the last state, and the standing, for one start.

    Pure and traced: it lives under jit, grad and vmap and checks nothing. `simulate` is the
    friendly way in. Reverse-mode derivatives by default; `adjoint=diffrax.ForwardMode()` for
    forward mode. A run that cannot be completed raises when the compiled code runs.

    >>> import attnflow as af
    >>> x0 = af.initial.sphere(n=4, d=3, seed=0)
    >>> run = lambda beta: solve(af.SA(beta), x0, jnp.array([0.0, 1.0]))[1]
    >>> jax.jit(run)(2.0).shape
    (4, 3)
    """
    problem = Problem(system, method or Adaptive(), ts, save)
    at = problem.advance(
        problem.begin(x0, masses, None, key),
        problem.method.steps_limit(ts),
        diffrax.RecursiveCheckpointAdjoint() if adjoint is None else adjoint,
        diffrax.TqdmProgressMeter() if progress else diffrax.NoProgressMeter(),
    )
    # Not all of `at`: the key of a system that draws cannot pass through error_if.
    stopped = "attnflow: the run stopped before ts[-1]: raise max_steps or rtol."
    reached = eqx.error_if((at.y, at.kept), at.t < ts[-1], stopped)
    at = eqx.tree_at(lambda a: (a.y, a.kept), at, reached)
    return at.kept, problem.final(at), at


def _lifted(x: Any, basis: Array | None) -> Any:
    return x if basis is None else x @ basis


def _unset(shape: tuple[int, ...], dtype: Any) -> Array:
    fill = jnp.nan if jnp.issubdtype(dtype, jnp.inexact) else 0
    return jnp.full(shape, fill, dtype)
