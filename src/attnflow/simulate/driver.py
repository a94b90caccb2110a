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
from attnflow.errors import IncompleteRun, Interrupted
from attnflow.simulate import inputs
from attnflow.simulate.host import HostMethod, run_on_host
from attnflow.simulate.methods import Adaptive, Method
from attnflow.simulate.progress import Progress, bar_for
from attnflow.simulate.reduction import reduce
from attnflow.simulate.solve import Problem, Save, Standing, solve
from attnflow.simulate.trajectory import Trajectory
from attnflow.systems import System

CHUNK_WORK = 4e9
"""About this many multiplications between two looks at the clock: about a second."""

LARGE = 1024
"""Members of a batch with more tokens than this run one after the other: a vmap would hold the
scores of all at once, and gain nothing."""


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

    Arguments:
        system: what to run, for example `SA(beta=4.0)`.
        x0: the tokens at ts[0], shape (n, d). Leading axes are a batch, each member with its own
            step sizes. An earlier `Trajectory` is continued from where it ended. The dtype of x0
            (float64 or float32) is that of the result.
        ts: increasing times, of which the first is the start.
        method: `Adaptive()` (the default), `Fixed(dt)` or `Layers(dt)`; for `Hardmax` by default
            `Filippov()`.
        masses: the masses of the tokens, (n,) or (*batch, n); all 1 by default.
        save: keep `save(t, x)` at each time instead of the states, for example an energy. The
            function is compiled in: pass the same one again to compile only once.
        key: a seed or a key, for systems that draw random numbers as they run (`Noisy`). Each
            member of a batch draws its own; the other systems do not look at it.
        progress: show a bar, under jit too; or a function that is told again and again which part
            of the time is done, from 0 to 1, and may raise KeyboardInterrupt to end the run.

    Where n < d and the flow stays in the span of its tokens (V = cI above all), it is run in R^n
    and lifted back: an identity that costs nothing and saves much.

    Under jit, grad or vmap (when an argument is traced) values cannot be checked and the run is
    one piece. Otherwise it goes in chunks of steps: Ctrl-C raises `Interrupted` and a run that
    cannot go on raises `IncompleteRun`, both with the part that was reached.

    >>> import attnflow as af
    >>> x0 = af.initial.sphere(n=16, d=3, seed=0)
    >>> traj = af.simulate(af.SA(beta=1.0), x0, [0.0, 5.0, 20.0])
    >>> traj.xs.shape
    (3, 16, 3)
    >>> bool(af.observe.overlaps(traj.final).min() > 0.999)
    True

    """
    if isinstance(x0, Trajectory):
        inputs.check_continued(x0, ts, masses)
        x0, masses = x0.final, x0.masses
    x, times, m, method = inputs.check_run(system, x0, ts, method, masses, save is None)
    traced = is_traced((system, x, times, m, method))
    if isinstance(method, HostMethod) and not traced:
        return run_on_host(system, x, times, m, method, save, bar_for(progress))

    batch = x.shape[:-2]
    x = x.reshape(math.prod(batch), *x.shape[-2:])
    each = None if m is None else jnp.broadcast_to(m, (*batch, m.shape[-1])).reshape(x.shape[:2])
    keys = inputs.check_keys(system, key, len(x))
    if traced:
        shown = progress is True
        kept, final, at = _in_one(system, x, times, each, keys, method, save, shown)
    else:
        inside, x, basis = reduce(system, x)
        problem = Problem(inside, method, times, save)
        try:
            kept, final, at = _Run(problem).all(x, each, basis, keys, progress)
        except _Stopped as stop:
            raise stop.error(_gathered(system, method, m, batch, *stop.reached)) from None
    return _gathered(system, method, m, batch, times, kept, final, at)


def _in_one(
    system: System,
    x: Array,
    ts: Array,
    masses: Array | None,
    keys: Array | None,
    method: Method,
    save: Save | None,
    progress: bool,
) -> tuple[Any, Any, Standing]:
    """The traced way: one vmapped `solve`."""
    given: dict[str, Any] = {"method": method, "save": save, "progress": progress}

    def one(x: Array, masses: Array | None, key: Array | None) -> tuple[Any, Any, Standing]:
        return solve(system, x, ts, masses=masses, key=key, **given)

    return _for_each(one, x.shape[-2], x, masses, keys)


def _gathered(
    system: System,
    method: Method,
    masses: Any,
    batch: tuple[int, ...],
    ts: Array,
    kept: Any,
    final: Any,
    at: Standing,
) -> Trajectory:
    """A trajectory with the batch axes that x0 had."""

    def shaped(a: Array) -> Array:
        return a.reshape(*batch, *a.shape[1:])

    return Trajectory(
        ts=ts,
        xs=jax.tree.map(shaped, kept),
        final=jax.tree.map(shaped, final),
        masses=masses,
        steps=shaped(at.accepted),
        rejected=shaped(at.rejected),
        system=system,
        method=method,
        merges=jax.tree.map(shaped, method.merges(at.solver_state)),
    )


class _Stopped(Exception):
    """A run ended early, with what it had reached."""

    def __init__(self, kind: type[IncompleteRun] | type[Interrupted], why: str, reached: tuple):
        super().__init__(why)
        self.kind, self.why, self.reached = kind, why, reached
        self.time = float(np.min(reached[3].t))

    def error(self, trajectory: Trajectory) -> IncompleteRun | Interrupted:
        return self.kind(self.why, time=self.time, trajectory=trajectory)


class _Run:
    """The concrete way: chunk after chunk of steps, for a batch of starts."""

    def __init__(self, problem: Problem):
        self.problem = problem

    def all(
        self,
        x: Array,
        masses: Array | None,
        basis: Array | None,
        keys: Array | None,
        progress: Progress,
    ) -> tuple[Any, Any, Standing]:
        """Every chunk, to the end or to an error."""
        t0, t1 = (float(t) for t in (self.problem.ts[0], self.problem.ts[-1]))
        chunk = self._chunk(x)
        limit = self.problem.method.steps_limit(self.problem.ts)
        at = _begin(self.problem, x, masses, basis, keys)
        bar = bar_for(progress)
        try:
            while float(jnp.min(at.t)) < t1:
                taken = int(jnp.max(jnp.where(at.t < t1, at.accepted + at.rejected, 0)))
                at = _advance(self.problem, at, self._next(chunk, limit - taken))
                bar.update(100 * (float(jnp.mean(at.t)) - t0) / (t1 - t0) - bar.n)
                self._look(at, limit)
        except KeyboardInterrupt:
            why = f"interrupted at t = {float(jnp.min(at.t)):g} of {t1:g}"
            raise _Stopped(Interrupted, why, self._reached(at)) from None
        finally:
            bar.refresh()
            bar.close()
        return at.kept, _final(self.problem, at), at

    def _chunk(self, x: Array) -> int:
        """Steps in a chunk: a power of 4, so that few sizes are compiled."""
        members, n, d = x.shape
        heads = getattr(getattr(self.problem.system, "heads", None), "count", None) or 1
        pairs = self.problem.system.pairs(n) + n * d
        work = self.problem.method.stages * members * heads * pairs * (2 * d + 20)
        return int(4 ** np.clip(np.floor(np.log(CHUNK_WORK / work) / np.log(4)), 0, 6))

    def _next(self, chunk: int, left: int) -> int:
        """Steps until the next look: a chunk, or what is left of the steps that are allowed.

        Fixed steps end with the times by themselves; to compile for as many as there are would
        compile every new dt or span.
        """
        return min(chunk, left) if isinstance(self.problem.method, Adaptive) else chunk

    def _look(self, at: Standing, limit: int) -> None:
        """Stop a run that cannot go on."""
        finite = np.asarray(_finite(at.y))
        failed = np.asarray(at.failed)
        spent = np.asarray(at.accepted + at.rejected) >= limit
        stuck = ~finite | failed | (spent & (np.asarray(at.t) < float(self.problem.ts[-1])))
        if not stuck.any():
            return
        i = int(np.argmax(stuck))
        t, dt = float(at.t[i]), float(at.dt[i])
        who = f"run {i} of the batch" if len(stuck) > 1 else "the run"
        if not finite[i]:
            why = f"the state of {who} is no longer finite: tokens ran away, or a step took one "
            why += "to the origin, which has no direction. Take a smaller dt, or look at tokens "
            why += "that grow through RescaledAttention"
        elif failed[i]:
            why = f"the steps of {who} collapsed to {dt:.1e}: the velocity is nearly "
            why += "discontinuous there (an almost-hard maximum). Use Fixed(dt), a looser rtol, "
            why += "or stop earlier"
        else:
            why = f"{who} used up its {limit} steps; the next would be {dt:.1e} long. Raise "
            why += "max_steps, use a looser rtol, or stop earlier"
        message = f"{self.problem.method} reached t = {t:g} of {float(self.problem.ts[-1]):g}: "
        message += f"{why}. What was reached is in this error's .trajectory."
        raise _Stopped(IncompleteRun, message, self._reached(at))

    def _reached(self, at: Standing) -> tuple[Array, Any, Any, Standing]:
        """The save times that some member reached, what it kept there, and the last states.

        A member whose tokens ran away has as its last state the last one that was kept.
        """
        T = len(self.problem.ts)
        alive = np.asarray(_finite(at.y))
        sound = np.asarray(jax.vmap(_finite)(at.kept)) & (
            np.arange(T) < np.asarray(at.count)[:, None]
        )
        count = max(1, int(sound.any(axis=0).sum()))
        kept = jax.tree.map(lambda a: a[:, :count], at.kept)
        final = _final(self.problem, at)
        if self.problem.save is None:
            last = np.maximum(sound.sum(axis=1) - 1, 0)
            final = jnp.where(alive[:, None, None], final, at.kept[np.arange(len(last)), last])
            at = eqx.tree_at(lambda s: s.t, at, jnp.where(alive, at.t, self.problem.ts[last]))
        return self.problem.ts[:count], kept, final, at


def _for_each(fn: Any, tokens: int, *batched: Any) -> Any:
    """`fn` of every member: side by side, or one after the other where each is large.

    A batch of one is spared the vmap, which compiles a third faster.
    """
    members = len(jax.tree.leaves(batched)[0])
    if members == 1:
        single = fn(*jax.tree.map(lambda a: a[0], batched))
        return jax.tree.map(lambda a: a[None], single)
    if tokens > LARGE:
        return jax.lax.map(lambda member: fn(*member), batched)
    return jax.vmap(fn)(*batched)


@eqx.filter_jit
def _begin(
    problem: Problem, x: Array, masses: Array | None, basis: Array | None, keys: Array | None
) -> Standing:
    return _for_each(problem.begin, x.shape[-2], x, masses, basis, keys)


@eqx.filter_jit
def _advance(problem: Problem, at: Standing, steps: int) -> Standing:
    def one(at: Standing) -> Standing:
        return problem.advance(at, steps, diffrax.ForwardMode(), diffrax.NoProgressMeter())

    return _for_each(one, _tokens(at), at)


@eqx.filter_jit
def _final(problem: Problem, at: Standing) -> Any:
    return _for_each(problem.final, _tokens(at), at)


def _tokens(at: Standing) -> int:
    """The tokens of each member: all states have the axes (member, token, …)."""
    return jax.tree.leaves(at.y)[0].shape[1]


def _finite(y: Any) -> Array:
    leaves = [jnp.isfinite(a).reshape(len(a), -1).all(axis=1) for a in jax.tree.leaves(y)]
    return jnp.stack(leaves).all(axis=0)
