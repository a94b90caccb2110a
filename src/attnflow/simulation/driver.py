"""The host-side driver: checks, batches, progress, cancelling, and what a failed run leaves."""

from __future__ import annotations

import math
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attnflow.checks import is_traced
from attnflow.errors import Fault, IncompleteRun, InputError, Interrupted, NotConverged
from attnflow.simulation import inputs
from attnflow.simulation.host import run_on_host
from attnflow.simulation.lost import warn_of_lost
from attnflow.simulation.merging import Merges
from attnflow.simulation.methods import Method
from attnflow.simulation.progress import Progress, bar_for
from attnflow.simulation.reduction import reduce
from attnflow.simulation.solve import Problem, Save, SolverState, split_encoded
from attnflow.simulation.trajectory import Trajectory
from attnflow.systems import System

CHUNK_WORK = 4e9
"""About this many multiplications between two looks at the clock: about a second."""

MAX_VMAPPED_TOKENS = 1024
"""Members of a batch with more tokens than this run one after the other: a vmap would hold the
scores of all at once, and gain nothing."""

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

    batch = x.shape[:-2]
    x = x.reshape(math.prod(batch), *x.shape[-2:])
    each = None if m is None else jnp.broadcast_to(m, (*batch, m.shape[-1])).reshape(x.shape[:2])
    keys = inputs.check_keys(system, key, len(x))
    merges = jax.tree.map(lambda a: jnp.reshape(a, (len(x), -1)), merges)
    if traced:
        problem = Problem(system, method, times, save, inside)
        saved, final, at = _run_traced(problem, x, each, keys, merges, progress is True)
    else:
        reduced, x, basis = reduce(system, x)
        problem = Problem(reduced, method, times, save, inside)
        try:
            saved, final, at = _ChunkedRun(problem).run(x, each, basis, keys, merges, progress)
        except _Stopped as stop:
            reached = _to_trajectory(system, method, m, batch, *stop.reached)
            warn_of_lost(reached)
            raise stop.error(reached) from None
    run = _to_trajectory(system, method, m, batch, times, saved, final, at)
    if not traced:
        warn_of_lost(run)
    return run


def _run_traced(
    problem: Problem,
    x: Array,
    masses: Array | None,
    keys: Array | None,
    merges: Merges | None,
    progress: bool,
) -> tuple[Any, Any, SolverState]:
    """The traced way: one vmapped `solve`."""

    def one(
        x: Array, masses: Array | None, key: Array | None, merges: Merges | None
    ) -> tuple[Any, Any, SolverState]:
        at = problem.run_or_raise(x, masses, key, merges, progress=progress)
        return at.saved, problem.final(at), at

    return _for_each(one, x.shape[-2], x, masses, keys, merges)


def _to_trajectory(
    system: System,
    method: Method,
    masses: Any,
    batch: tuple[int, ...],
    ts: Array,
    saved: Any,
    final: Any,
    at: SolverState,
) -> Trajectory:
    """A trajectory with the batch axes that x0 had."""

    def shaped(a: Array) -> Array:
        return a.reshape(*batch, *a.shape[1:])

    xs, inner = split_encoded(jax.tree.map(shaped, saved))
    last, inner_last = split_encoded(jax.tree.map(shaped, final))
    return Trajectory(
        ts=ts,
        xs=xs,
        final=last,
        masses=masses,
        steps=shaped(at.accepted),
        rejected=shaped(at.rejected),
        system=system,
        method=method,
        merges=jax.tree.map(shaped, method.merges(at.solver_state)),
        inner=inner,
        inner_final=inner_last,
        t_final=shaped(at.t),
    )


class _Stopped(Exception):
    """A run ended early, with what it had reached."""

    def __init__(
        self,
        kind: type[IncompleteRun] | type[Interrupted],
        why: str,
        reached: tuple,
        remedy: str = "",
    ):
        super().__init__(why)
        self.kind, self.why, self.reached, self.remedy = kind, why, reached, remedy
        self.time = float(np.min(reached[3].t))

    def error(self, trajectory: Trajectory) -> IncompleteRun | Interrupted:
        return self.kind(self.why, time=self.time, trajectory=trajectory, remedy=self.remedy)


class _ChunkedRun:
    """The concrete way: chunk after chunk of steps, for a batch of starts."""

    def __init__(self, problem: Problem):
        self.problem = problem

    def run(
        self,
        x: Array,
        masses: Array | None,
        basis: Array | None,
        keys: Array | None,
        merges: Merges | None,
        progress: Progress,
    ) -> tuple[Any, Any, SolverState]:
        """Every chunk, to the end or to an error."""
        t0, t1 = (float(t) for t in (self.problem.ts[0], self.problem.ts[-1]))
        chunk = self._chunk(x)
        limit = self.problem.method.steps_limit(self.problem.system, self.problem.ts)
        at = self._finish_those_at_rest(_begin(self.problem, x, masses, basis, keys, merges))
        self._require_velocity(at)
        bar = bar_for(progress)
        try:
            if not np.isfinite(np.asarray(at.dt)).all():
                self._raise_if_stuck(at, limit)
            while float(jnp.min(at.t)) < t1:
                taken = int(jnp.max(jnp.where(at.t < t1, at.accepted + at.rejected, 0)))
                at = _advance(self.problem, at, self._next(chunk, limit - taken))
                at = self._finish_those_at_rest(at)
                bar.update(100 * (float(jnp.mean(at.t)) - t0) / (t1 - t0) - bar.n)
                self._raise_if_stuck(at, limit)
        except KeyboardInterrupt:
            why = f"interrupted at t = {float(jnp.min(at.t)):g} of {t1:g}"
            raise _Stopped(Interrupted, why, self._partial_result(at)) from None
        finally:
            bar.refresh()
            bar.close()
        return at.saved, _final(self.problem, at), at

    def _require_velocity(self, at: SolverState) -> None:
        """Refuse a start whose velocity cannot be followed, before any step."""
        failed = np.asarray(at.failed)
        if failed.any():
            i = int(np.argmax(failed))
            who = f"x0 (run {i} of the batch)" if len(failed) > 1 else "x0"
            fault = self._fault(i, _final(self.problem, at), at)
            if fault is not None:
                raise InputError(fault, where=f"the velocity at {who} cannot be followed")

    def _chunk(self, x: Array) -> int:
        """Steps in a chunk: a power of 4, so that few sizes are compiled."""
        members, n, d = x.shape
        pairs = self.problem.system.cost(n).pairs + n * d
        work = self.problem.method.stages * members * pairs * (2 * d + 20)
        return int(4 ** np.clip(np.floor(np.log(CHUNK_WORK / work) / np.log(4)), 0, 6))

    def _next(self, chunk: int, left: int) -> int:
        """Steps until the next look: a chunk, or what is left of the steps that are allowed.

        Fixed steps end with the times by themselves; to compile for as many as there are would
        compile every new dt or span.
        """
        return min(chunk, left) if self.problem.method.limits_steps else chunk

    def _finish_those_at_rest(self, at: SolverState) -> SolverState:
        """The states; of those that have come to rest, the ones at the last time."""
        at, rests = self.problem.method.at_rest(self.problem.system, at)
        return at if rests is None else _rested(self.problem, at, jnp.asarray(rests))

    def _raise_if_stuck(self, at: SolverState, limit: int) -> None:
        """Stop a run that cannot go on."""
        finite = np.asarray(_finite(at.y))
        failed = np.asarray(at.failed) | ~np.isfinite(np.asarray(at.dt))
        spent = np.asarray(at.accepted + at.rejected) >= limit
        stuck = ~finite | failed | (spent & (np.asarray(at.t) < float(self.problem.ts[-1])))
        if not stuck.any():
            return
        i = int(np.argmax(stuck))
        who = f"run {i} of the batch" if len(stuck) > 1 else "the run"
        reached = self._partial_result(at)
        fault = None if finite[i] and not failed[i] else self._fault(i, *reached[2:])
        if fault is not None:
            reason, remedy = fault
            why = f"{who} has no velocity that could be followed: {reason}"
        elif not finite[i]:
            reason, remedy = self.problem.system.not_finite
            why = f"the state of {who} is no longer finite: {reason}"
        else:
            why, remedy = _out_of_steps(at, i, who, limit)
        t, end = float(at.t[i]), float(self.problem.ts[-1])
        message = f"{self.problem.method} reached t = {t:g} of {end:g}: {why}"
        raise _Stopped(IncompleteRun, message, reached, remedy)

    def _fault(self, i: int, final: Any, at: SolverState) -> Fault | None:
        """What is wrong with the velocity at the last state of member i; None if nothing is."""
        x = split_encoded(final)[0][i]
        x = x if at.basis is None else x @ at.basis[i].T
        masses = None if at.masses is None else at.masses[i]
        try:
            v = self.problem.system.velocity(at.t[i], x, masses)
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

    def _partial_result(self, at: SolverState) -> tuple[Array, Any, Any, SolverState]:
        """The save times that some member reached, what it saved there, and the last states.

        A member whose tokens ran away has as its last state the last one that was saved.
        """
        T = len(self.problem.ts)
        alive = np.asarray(_finite(at.y))
        x, inner = split_encoded(at.saved)
        sound = np.arange(T) < np.asarray(at.count)[:, None]
        if self.problem.save is None:
            sound &= np.asarray(jax.vmap(_finite)(x if inner is None else inner))
        count = max(1, int(sound.any(axis=0).sum()))
        saved = jax.tree.map(lambda a: a[:, :count], at.saved)
        final = _final(self.problem, at)
        if self.problem.save is None:
            last = np.maximum(sound.sum(axis=1) - 1, 0)
            final = jax.tree.map(
                lambda a, b: jnp.where(alive[:, None, None], a, b[np.arange(len(last)), last]),
                final,
                at.saved,
            )
            at = eqx.tree_at(lambda s: s.t, at, jnp.where(alive, at.t, self.problem.ts[last]))
        return self.problem.ts[:count], saved, final, at


def _out_of_steps(at: SolverState, i: int, who: str, limit: int) -> Fault:
    """Why member i has no next step, though its state is finite."""
    dt = float(at.dt[i])
    if bool(at.failed[i]) or not np.isfinite(dt):
        if int(at.accepted[i]):
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


def _for_each(fn: Any, tokens: int, *batched: Any) -> Any:
    """`fn` of every member: side by side, or one after the other where each is large.

    A batch of one is spared the vmap, which compiles a third faster.
    """
    members = len(jax.tree.leaves(batched)[0])
    if members == 1:
        single = fn(*jax.tree.map(lambda a: a[0], batched))
        return jax.tree.map(lambda a: a[None], single)
    if tokens > MAX_VMAPPED_TOKENS:
        return jax.lax.map(lambda member: fn(*member), batched)
    return jax.vmap(fn)(*batched)


@eqx.filter_jit
def _begin(
    problem: Problem,
    x: Array,
    masses: Array | None,
    basis: Array | None,
    keys: Array | None,
    merges: Merges | None,
) -> SolverState:
    return _for_each(problem.begin, x.shape[-2], x, masses, basis, keys, merges)


@eqx.filter_jit
def _advance(problem: Problem, at: SolverState, steps: int) -> SolverState:
    def one(at: SolverState) -> SolverState:
        return problem.advance(at, steps, diffrax.ForwardMode())

    return _for_each(one, _tokens(at), at)


@eqx.filter_jit
def _rested(problem: Problem, at: SolverState, rests: Array) -> SolverState:
    return _for_each(problem.rested, _tokens(at), at, rests)


@eqx.filter_jit
def _final(problem: Problem, at: SolverState) -> Any:
    return _for_each(problem.final, _tokens(at), at)


def _tokens(at: SolverState) -> int:
    """The tokens of each member: all states have the axes (member, token, …)."""
    return jax.tree.leaves(at.y)[0].shape[1]


def _finite(y: Any) -> Array:
    leaves = [jnp.isfinite(a).reshape(len(a), -1).all(axis=1) for a in jax.tree.leaves(y)]
    return jnp.stack(leaves).all(axis=0)
