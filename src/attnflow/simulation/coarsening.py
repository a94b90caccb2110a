"""`Coarsening`: tokens that have met become one, so that metastable times can be reached."""

from __future__ import annotations

import dataclasses
from typing import Any

import diffrax
import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from attnflow.checks import as_positive
from attnflow.errors import InputError
from attnflow.retired import renamed_arguments
from attnflow.simulation.clock import Clock
from attnflow.simulation.loop import Value, repeat, save_due
from attnflow.simulation.merging import MergedTokens, Merges, Path, merge_all
from attnflow.simulation.methods import (
    ADAPTIVE_SOLVERS,
    MAX_STEPS,
    ErrorControlled,
    SolverParts,
    as_typed,
)
from attnflow.simulation.rest import at_rest
from attnflow.simulation.stepping import Resumable, Retracted
from attnflow.systems import System
from attnflow.systems.base import row_lengths
from attnflow.weights.breaks import Breaks

STILL_STEPS = 64
"""After so many steps without motion, and without a longer step, a run is looked at for rest."""

NEVER = np.iinfo(np.int32).max


class CoarseningState(eqx.Module):
    """What a coarsened run carries besides its tokens.

    `inner` is the state of the solver inside, `clock` the time to far below its rounding, `mass`
    (0: merged away), `leader` and `merges` say who has met. `still` counts the steps since tokens
    moved or a step was as long as `longest`; at `patience` the run stops to be looked at.
    """

    inner: Any
    clock: Clock
    mass: Float[Array, "*batch n"]
    leader: Int[Array, "*batch n"]
    merges: Merges
    still: Int[Array, "*batch"]
    longest: Float[Array, "*batch"]
    patience: Int[Array, "*batch"]

    def flock(self, x: Float[Array, "n d"]) -> MergedTokens:
        """Who has met, with the tokens at x."""
        return MergedTokens(x, self.mass, self.leader, self.merges)


class Coarsening(ErrorControlled):
    """Error-controlled steps, merging tokens that have come within `tol` and are approaching.

    Equal tokens stay equal where no mask, place, noise or time tells them apart, so m of them are
    one of mass m. Merging tokens that are nearly equal takes the fast motion inside clusters out of
    the equation, and steps grow to the slow, metastable scale: any time up to 10³⁰ and beyond is
    reached in a few hundred steps. The trajectory's `merges` is the merge tree; its times are those
    at which two tokens first come within tol, as exact as the run. The merged token sits at the
    mean, weighted by mass and retracted; pairs that move apart are left alone.

    The difference from the run without merging is that of a start that is off by tol. It falls
    linearly with tol, as long as the flow does not drive apart what is close. Attraction (V = I
    above all) does not; repulsion (V = −I) or a V of one's own may let two tokens come
    within tol in passing and part again much later: compare with a smaller tol there.

    The velocity must not depend on t: time is counted from the beginning of each step, and its sum
    is kept in two floats. A run that has come to a stable rest is at its end. It works for
    attention on the sphere with any constant Q, K, V, and for `Aggregation`, where it is the way
    through collisions. A system says itself whether its tokens may be merged
    (`System.merging_obstacle`); masks, rotary positions and weights that change are refused.

    Args:
        tol: the distance within which tokens that approach each other are merged.
        rtol: relative tolerance: see `Adaptive`.
        atol: absolute tolerance.
        max_steps: the number of steps, accepted or rejected, after which the run gives up.
        solver: "dopri8" or "tsit5".

    >>> Coarsening(tol=1e-7)
    Coarsening(tol=1e-07, rtol=1e-08, atol=1e-10, solver='dopri8', max_steps=100000)
    """

    exact_sums = True
    local_time = True
    tol: Array

    @renamed_arguments(eps="tol")
    def __init__(
        self,
        tol: Any = 1e-6,
        rtol: Any = 1e-8,
        atol: Any = 1e-10,
        max_steps: int = MAX_STEPS,
        solver: str = "dopri8",
    ):
        super().__init__(rtol, atol, max_steps, solver)
        self.tol = as_positive(tol, "tol")

    def check(self, system: System, ts: Float[np.ndarray, " T"] | None) -> None:
        """Merging must be exact for the system, and its velocity the same at all times."""
        super().check(system, ts)
        obstacle = system.merging_obstacle
        if obstacle is None and not system.autonomous:
            obstacle = "it does not declare that its velocity does not depend on t"
        if obstacle is not None:
            raise InputError(
                f"method: Coarsening does not work for {system!r}: {obstacle}. Use Adaptive()."
            )

    def solver_parts(
        self, system: System, masses: Any, ts: Float[Array, " T"], y: Any
    ) -> SolverParts:
        """The adaptive method in time that begins with each step, on sums that are exact."""
        system = system.with_exact_sums(len(y))
        flock = MergedTokens.of(y, masses, None)
        solver = ADAPTIVE_SOLVERS[self.solver]()
        controller = self.controller(ts)
        # Nothing is rounded away in local time, so that steps may be as short as speeds are high.
        least = float(jnp.finfo(ts.dtype).tiny) * 1e12
        controller = eqx.tree_at(lambda c: c.dtmin, controller, jnp.asarray(least, ts.dtype))
        return SolverParts(
            term=diffrax.ODETerm(lambda t, x, args: flock.velocity(system, x)),
            solver=Retracted(solver, system, self.tolerance(ts.dtype)),
            controller=Resumable(controller, Breaks()),
            dt0=None,
            encode=lambda t, x: x,
            decode=lambda t, x: system.retract(x),
        )

    def initial_state(
        self,
        inner: Any,
        t: Any,
        x: Float[Array, "n d"],
        masses: Any,
        merges: Merges | None,
        watched: bool,
    ) -> CoarseningState:
        """The state before the first step, with what an earlier run has merged."""
        flock, none = MergedTokens.of(x, masses, merges), jnp.zeros((), jnp.int32)
        return CoarseningState(
            inner=inner,
            clock=Clock.at(t),
            mass=flock.mass,
            leader=flock.leader,
            merges=flock.merges,
            still=none,
            longest=jnp.zeros_like(t),
            patience=none + (STILL_STEPS if watched else NEVER),
        )

    def advance(
        self,
        parts: SolverParts,
        at: Any,
        ts: Float[Array, " T"],
        value: Value,
        steps: Any,
        progress: diffrax.AbstractProgressMeter,
    ) -> Any:
        end, limit = ts[-1], at.accepted + at.rejected + steps

        def going(at: Any, _: None) -> Any:
            ledger = at.solver_state
            waiting = (at.accepted + at.rejected < limit) & (ledger.still < ledger.patience)
            return (ledger.clock.until(end) > 0) & ~at.failed & waiting

        def step(at: Any, _: None) -> Any:
            return self._step(parts, at, ts, value), None

        return repeat(going, step, at, None, ts, progress)

    def _step(self, parts: SolverParts, at: Any, ts: Array, value: Value) -> Any:
        """One step, and the tokens merged that have met in it; or a shorter one to try next."""
        ledger, system, end = at.solver_state, parts.solver.system, ts[-1]
        flock, tol = ledger.flock(at.y), self.tol.astype(ts.dtype)
        left, start = ledger.clock.until(end), jnp.zeros_like(end)
        dt = jnp.minimum(at.dt, left)
        term = diffrax.ODETerm(lambda t, x, args: flock.velocity(system, x))
        x1, error, dense, inner, result = parts.solver.step(
            term, start, dt, at.y, None, ledger.inner, at.made_jump
        )
        error = jnp.where(jnp.isnan(error), jnp.inf, error)
        good, _, _, _, control, stuck = parts.controller.adapt_step_size(
            start, dt, at.y, x1, None, error, parts.solver.error_order(term), at.controller_state
        )
        path = Path(parts.solver.interpolation_cls, dense, dt)
        v = dense["k"][-1]  # The last stage is the velocity at the end, times dt.
        now = dataclasses.replace(flock, x=x1)
        now = merge_all(now, v, path, ledger.clock, tol, system, good)
        saved, count = save_due(
            at,
            len(ts),
            lambda k: good & (ledger.clock.until(ts[k]) <= dt),
            lambda k: value(ts[k], path.at(ledger.clock.until(ts[k]))),
        )
        clock = ledger.clock.after(dt)
        clock = jax.tree.map(lambda a, b: jnp.where(dt == left, a, b), Clock.at(end), clock)
        still, longest = self._stillness(ledger, at.y, now.x, dt, good)
        waits = dataclasses.replace(ledger, still=still, longest=longest)
        moves = CoarseningState(
            inner, clock, now.mass, now.leader, now.merges, still, longest, ledger.patience
        )
        met = now.merges.count > flock.merges.count
        x, ledger, met = jax.tree.map(
            lambda a, b: jnp.where(good, a, b), (now.x, moves, met), (at.y, waits, at.made_jump)
        )
        ended = ledger.clock.until(end) <= 0
        fine = diffrax.RESULTS.successful
        return dataclasses.replace(
            at,
            t=jnp.where(ended, end, jnp.minimum(ledger.clock.high, eqxi.prevbefore(end))),
            y=x,
            dt=control[1],
            solver_state=ledger,
            controller_state=control,
            made_jump=met,
            saved=saved,
            count=count,
            accepted=at.accepted + good.astype(at.accepted.dtype),
            rejected=at.rejected + (~good).astype(at.rejected.dtype),
            failed=(stuck != fine) | (good & (result != fine)),
        )

    def _stillness(
        self, ledger: CoarseningState, before: Array, after: Array, dt: Any, good: Any
    ) -> tuple[Array, Array]:
        """The steps since something moved or a step was longer than those before."""
        tolerance = self.tolerance(dt.dtype)
        moved = jnp.max(row_lengths(after - before)) > tolerance.atol + tolerance.rtol
        restless = good & (moved | (dt > 2 * ledger.longest))
        longest = jnp.where(restless, dt, ledger.longest)
        return jnp.where(restless, 0, ledger.still + 1), longest

    def at_rest(self, system: System, at: Any) -> tuple[Any, np.ndarray | None]:
        """The states of a batch, and which of those that hardly move are at rest."""
        ledger = at.solver_state
        still, patience = np.array(ledger.still), np.array(ledger.patience)
        waiting = still >= patience
        if not waiting.any():
            return at, None
        patience[waiting] = np.minimum(4 * patience[waiting], NEVER // 8)
        still[waiting] = 0
        ledger = dataclasses.replace(
            ledger, still=jnp.asarray(still), patience=jnp.asarray(patience)
        )
        rests, tolerance = np.zeros_like(waiting), float(self.rtol + self.atol)
        for i in zip(*np.nonzero(waiting), strict=True) if waiting.ndim else [()]:
            rests[i] = at_rest(system, at.y[i], ledger.mass[i], tolerance)
        return dataclasses.replace(at, solver_state=ledger), rests

    def merges(self, solver_state: Any) -> Merges:
        """The merge tree that the solver's state holds."""
        return solver_state.merges

    def __repr__(self) -> str:
        return f"Coarsening(tol={as_typed(self.tol)}, {self._typed()})"
