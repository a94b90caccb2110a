"""The host-side driver: checks, batches, progress, cancelling, and what a failed run leaves."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from attnflow.checks import is_traced
from attnflow.errors import Fault, IncompleteRun, InputError, Interrupted, NotConverged
from attnflow.simulation import inputs, programs
from attnflow.simulation.host import run_on_host
from attnflow.simulation.lost import warn_of_lost
from attnflow.simulation.methods import Method
from attnflow.simulation.programs import Reached, Start
from attnflow.simulation.progress import Progress, bar_for
from attnflow.simulation.reduction import reduce
from attnflow.simulation.solve import Problem, Save, SolverState, split_encoded
from attnflow.simulation.trajectory import Trajectory
from attnflow.systems import System

CHUNK_WORK = 4e9
"""About this many multiplications between two looks at the clock: about a second."""

MAX_CHUNK = 4096
"""Steps in a chunk, at most."""

MAX_RELATIVE_SPEED = 1e14
"""Tokens that move faster, in units of their size, cross it in the shortest step that there is."""


def simulate(
    system: System,
    x0: Any,
    ts: Any,
    *,
    method: Method | None = None,
    masses: Any = None,
    save: Save | None = None,
    key: Any = None,
    progress: Progress = False,
) -> Trajectory:
    """Run a system from x0 and keep its states at the times ts.

    Args:
        system: what to run, for example `SA(beta=4.0)`.
        x0: the tokens at ts[0], shape (n, d). Leading axes are a batch, each member with its own
            step sizes. An earlier `Trajectory` is continued from where it ended. The dtype of x0
            (float64 or float32) is that of the result.
        ts: increasing times, of which the first is the start.
        method: `Adaptive()` (the default), `Fixed(dt)` or `Layers(dt)`. By default a system with
            noise takes `Fixed(dt, "heun")` with a dt that resolves noise and drift, a map in time
            `Layers()`, and `Hardmax` `Filippov()`.
        masses: the masses of the tokens, (n,) or (*batch, n); all 1 by default.
        save: keep `save(t, x)` at each time instead of the states, for example an energy. The
            function is compiled in: pass the same one again to compile only once.
        key: an integer or a JAX key, for systems that draw random numbers as they run (`Noisy`).
            Each member of a batch draws its own; the other systems do not look at it.
        progress: show a bar, under jit too; or a function that is told again and again which part
            of the time is done, from 0 to 1, and may raise KeyboardInterrupt to end the run.

    Where n < d and the flow stays in the span of its tokens (V = cI above all), it is run in R^n
    and lifted back: an identity that costs nothing and saves much.

    Under jit, grad or vmap (when an argument is traced) values cannot be checked and the run is
    one piece. Otherwise it goes in chunks of steps: Ctrl-C raises `Interrupted` and a run that
    cannot go on raises `IncompleteRun`, both with the part that was reached.

    >>> import attnflow as af
    >>> x0 = af.initial.sphere(n=16, d=3, key=0)
    >>> traj = af.simulate(af.SA(beta=1.0), x0, [0.0, 5.0, 20.0])
    >>> traj.xs.shape
    (3, 16, 3)
    >>> bool(af.observe.overlaps(traj.final).min() > 0.999)
    True

    """
    merges, inside = None, False
    if isinstance(x0, Trajectory):
        inputs.check_continued(x0, ts, masses)
        earlier, masses, merges = x0, x0.masses, x0.merges
        x0, inside = inputs.continued(earlier, system, method, ts)
    x, times, m, method = inputs.check_run(system, x0, ts, method, masses, save is None)
    traced = is_traced((system, x, times, m, method))
    if method.on_host and not traced:
        return run_on_host(system, x, times, m, method, save, bar_for(progress))

    start = Start(x, m, None, inputs.check_key(system, key), merges)
    if traced:
        problem = Problem(system, method, times, save, inside)
        limit = method.steps_limit(system, times)
        reached = programs.run_traced(problem, start, limit, progress is True)
        return _to_trajectory(system, method, m, times, reached)
    reduced, x, basis = reduce(system, x)
    problem = Problem(reduced, method, times, save, inside, watched=True)
    try:
        reached = _ChunkedRun(problem).run(start._replace(x=x, basis=basis), progress)
    except _Stopped as stop:
        run = _to_trajectory(system, method, m, stop.times, stop.reached)
        warn_of_lost(run)
        raise stop.error(run) from None
    run = _to_trajectory(system, method, m, times, reached)
    warn_of_lost(run)
    return run


def _to_trajectory(
    system: System, method: Method, masses: Any, ts: Array, reached: Reached
) -> Trajectory:
    at = reached.at
    xs, inner = split_encoded(at.saved)
    last, inner_last = split_encoded(reached.final)
    return Trajectory(
        ts=ts,
        xs=xs,
        final=last,
        masses=masses,
        steps=at.accepted,
        rejected=at.rejected,
        system=system,
        method=method,
        merges=method.merges(at.solver_state),
        inner=inner,
        inner_final=inner_last,
        t_final=at.t,
    )


class _Stopped(Exception):
    """A run ended early, with the times and states that it had reached."""

    def __init__(
        self,
        kind: type[IncompleteRun] | type[Interrupted],
        why: str,
        times: Array,
        reached: Reached,
        remedy: str = "",
    ):
        super().__init__(why)
        self.kind, self.why, self.remedy = kind, why, remedy
        self.times, self.reached = times, reached

    def error(self, trajectory: Trajectory) -> IncompleteRun | Interrupted:
        time = float(np.min(self.reached.at.t))
        return self.kind(self.why, time=time, trajectory=trajectory, remedy=self.remedy)


class _ChunkedRun:
    """The concrete way: chunk after chunk of steps, for a batch of starts."""

    def __init__(self, problem: Problem):
        self.problem = problem

    def run(self, start: Start, progress: Progress) -> Reached:
        """Every chunk, to the end or to an error."""
        t0, t1 = (float(t) for t in np.asarray(self.problem.ts)[[0, -1]])
        chunk = self._chunk(start.x)
        limit = self.problem.method.steps_limit(self.problem.system, self.problem.ts)
        bar, reached = bar_for(progress), None
        try:
            reached = programs.begin(self.problem, start, self._next(chunk, limit))
            self._require_velocity(reached)
            while True:
                reached = self._finish_those_at_rest(reached)
                t = np.asarray(reached.at.t)
                bar.update(100 * (float(t.mean()) - t0) / (t1 - t0) - bar.n)
                self._raise_if_stuck(reached, limit)
                if t.min() >= t1:
                    return reached
                taken = int(np.where(t < t1, _tried(reached.at), 0).max())
                reached = programs.advance(
                    self.problem, reached.at, self._next(chunk, limit - taken)
                )
        except KeyboardInterrupt:
            reached = (
                programs.begin(self.problem, start, np.int64(0)) if reached is None else reached
            )
            why = f"interrupted at t = {float(np.min(reached.at.t)):g} of {t1:g}"
            raise _Stopped(Interrupted, why, *self._partial_result(reached)) from None
        finally:
            bar.refresh()
            bar.close()

    def _require_velocity(self, reached: Reached) -> None:
        """Refuse a start whose velocity cannot be followed; no step was taken from it."""
        failed = (np.asarray(reached.at.failed) & (_tried(reached.at) == 0)).ravel()
        if failed.any():
            i = int(np.argmax(failed))
            who = f"x0 (run {i} of the batch)" if len(failed) > 1 else "x0"
            fault = self._fault(i, reached)
            if fault is not None:
                raise InputError(fault, where=f"the velocity at {who} cannot be followed")

    def _chunk(self, x: Array) -> int:
        """Steps in a chunk."""
        *batch, n, d = x.shape
        pairs = self.problem.system.cost(n).pairs + n * d
        work = self.problem.method.stages * math.prod(batch) * pairs * (2 * d + 20)
        return int(np.clip(CHUNK_WORK / work, 1, MAX_CHUNK))

    def _next(self, chunk: int, left: int) -> np.int64:
        """Steps until the next look: a chunk, or what is left of the steps that are allowed.

        Fixed steps end with the times by themselves. It is an array, so that no number of steps
        is compiled in.
        """
        return np.int64(min(chunk, left) if self.problem.method.limits_steps else chunk)

    def _finish_those_at_rest(self, reached: Reached) -> Reached:
        """The states; of those that have come to rest, the ones at the last time."""
        at, rests = self.problem.method.at_rest(self.problem.system, reached.at)
        return (
            reached._replace(at=at) if rests is None else programs.finish(self.problem, at, rests)
        )

    def _raise_if_stuck(self, reached: Reached, limit: int) -> None:
        """Stop a run that cannot go on."""
        at, end = reached.at, float(np.asarray(self.problem.ts)[-1])
        finite, dt, t = (np.asarray(a).ravel() for a in (reached.finite, at.dt, at.t))
        failed = np.asarray(at.failed).ravel() | ~np.isfinite(dt)
        stuck = ~finite | failed | ((_tried(at).ravel() >= limit) & (t < end))
        if not stuck.any():
            return
        i = int(np.argmax(stuck))
        who = f"run {i} of the batch" if len(stuck) > 1 else "the run"
        times, partial = self._partial_result(reached)
        fault = None if finite[i] and not failed[i] else self._fault(i, partial)
        if fault is not None:
            reason, remedy = fault
            why = f"{who} has no velocity that could be followed: {reason}"
        elif not finite[i]:
            reason, remedy = self.problem.system.not_finite
            why = f"the state of {who} is no longer finite: {reason}"
        else:
            why, remedy = _out_of_steps(_member(at, i), who, limit)
        message = f"{self.problem.method} reached t = {t[i]:g} of {end:g}: {why}"
        raise _Stopped(IncompleteRun, message, times, partial, remedy)

    def _fault(self, i: int, reached: Reached) -> Fault | None:
        """What is wrong with the velocity at the last state of member i; None if nothing is."""
        at, (x, _) = _member(reached.at, i), split_encoded(_member(reached.final, i, reached.at))
        x = x if at.basis is None else x @ at.basis.T
        try:
            v = self.problem.system.velocity(at.t, x, at.masses)
        except NotConverged as error:
            return error.fault
        except InputError:  # a map has no velocity
            return None
        speed, size = (float(jnp.abs(a).max()) for a in (v, x))
        if not np.isfinite(size) or speed <= MAX_RELATIVE_SPEED * max(1.0, size):
            return None
        most = float(np.log(jnp.finfo(x.dtype).max))
        said = f"it is {speed:.1e}" if np.isfinite(speed) else "it overflows"
        return Fault(
            f"{said}, in {self.problem.system!r} ({x.dtype} holds e^s up to s = {most:.0f})",
            "take a smaller beta, smaller weights or tokens, or a normalised system such as SA",
        )

    def _partial_result(self, reached: Reached) -> tuple[Array, Reached]:
        """The save times that some member reached, and the states with what they saved there.

        A member whose tokens ran away has as its last state the last one that was saved.
        """
        at, final, alive = reached
        batch, T = at.t.shape, len(self.problem.ts)
        x, inner = split_encoded(at.saved)
        sound = np.arange(T) < np.asarray(at.count)[..., None]
        if self.problem.save is None:
            kept = np.asarray(x if inner is None else inner)
            sound = sound & np.isfinite(kept).all(axis=(-2, -1))
        count = max(1, int(sound.reshape(-1, T).any(axis=0).sum()))
        if self.problem.save is None:
            last = np.maximum(sound.sum(axis=-1) - 1, 0)
            where = (*np.indices(batch), last)
            final = jax.tree.map(
                lambda a, b: jnp.where(alive[..., None, None], a, b[where]), final, at.saved
            )
            t = jnp.where(alive, at.t, self.problem.ts[last])
            at = dataclasses.replace(at, t=t)
        saved = jax.tree.map(lambda a: a[(*[slice(None)] * len(batch), slice(count))], at.saved)
        return self.problem.ts[:count], Reached(dataclasses.replace(at, saved=saved), final, alive)


def _out_of_steps(at: SolverState, who: str, limit: int) -> Fault:
    """Why a run has no next step, though its state is finite."""
    dt = float(at.dt)
    if bool(at.failed) or not np.isfinite(dt):
        if int(at.accepted):
            return Fault(
                f"the steps of {who} collapsed to {dt:.1e}: the velocity is nearly discontinuous "
                "there (an almost-hard maximum)",
                "use Fixed(dt), a looser rtol, or stop earlier",
            )
        return Fault(
            f"no first step of {who} is short enough, down to {dt:.1e}: the velocity at the start "
            "is too large for this span of time, or jumps there",
            "take a smaller beta or smaller weights, or a span (ts[-1] − ts[0]) of the size of the "
            "time scale",
        )
    return Fault(
        f"{who} used up its {limit} steps; the next would be {dt:.1e} long",
        "raise max_steps, use a looser rtol, or stop earlier",
    )


def _tried(at: SolverState) -> Int[np.ndarray, "*batch"]:
    """The steps that were tried, accepted or not."""
    return np.asarray(np.asarray(at.accepted) + np.asarray(at.rejected))


def _member(tree: Any, i: int, at: SolverState | None = None) -> Any:
    """Member i of a batch, whose axes are those of the times of its states `at`."""
    batch = (tree if at is None else at).t.shape
    return jax.tree.map(lambda a: a[np.unravel_index(i, batch)] if batch else a, tree)
