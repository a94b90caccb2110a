"""Methods that change course discretely, and so run on the host, leg by leg."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow.errors import IncompleteRun, InputError, Interrupted
from attnflow.simulation.methods import Method, SolverParts
from attnflow.simulation.trajectory import Trajectory
from attnflow.systems import System


class Leg(NamedTuple):
    """A smooth part of a run that ends at time t: the state at each time of it, and its steps."""

    t: float
    state: Callable[[float], np.ndarray]
    steps: int


class Stuck(Exception):
    """A method cannot go on: why, and what to do."""

    def __init__(self, reason: str, remedy: str):
        super().__init__(reason)
        self.reason, self.remedy = reason, remedy


class HostMethod(Method):
    """A method whose loop is not compiled: it walks from one discrete change to the next."""

    on_host = True
    stages = 1

    @abc.abstractmethod
    def walk(
        self,
        system: System,
        x: Float[np.ndarray, "n d"],
        ts: Float[np.ndarray, " T"],
        masses: Float[np.ndarray, " n"] | None,
    ) -> Iterator[Leg]:
        """The legs from ts[0] to ts[-1]; raises `Stuck` where there is no next one."""

    def solver_parts(
        self, system: System, masses: Any, ts: Float[Array, " T"], y: Any
    ) -> SolverParts:
        """Raises: there is nothing to compile."""
        raise InputError(
            f"method {self!r} runs on the host, where it can stop at every change of course: call "
            "simulate with concrete arrays, outside of jit, grad and vmap."
        )


def run_on_host(
    system: System,
    x: Float[Array, "*batch n d"],
    ts: Float[Array, " T"],
    masses: Float[Array, "*batch n"] | None,
    method: Any,
    save: Any,
    bar: Any,
) -> Trajectory:
    """All legs of a single start, with what is to be kept at the times ts."""
    if x.ndim != 2:
        raise InputError(
            f"x0 must be a single start (n, d) for {method!r}, which runs one at a time, but its "
            f"shape is {x.shape}: call simulate for each."
        )
    times = np.asarray(ts, float)
    kept = [np.asarray(x)]
    t, state, steps = times[0], np.asarray(x, float), 0

    def reached() -> Trajectory:
        kinds = [jnp.asarray(z, x.dtype) for z in kept]
        told = kinds if save is None else [save(*pair) for pair in zip(ts, kinds, strict=False)]
        return Trajectory(
            ts=ts[: len(kept)],
            xs=jax.tree.map(lambda *parts: jnp.stack(parts), *told),
            final=jnp.asarray(state, x.dtype),
            masses=masses,
            steps=jnp.asarray(steps),
            rejected=jnp.asarray(0),
            system=system,
            method=method,
            t_final=jnp.asarray(t, ts.dtype),
        )

    try:
        m = None if masses is None else np.asarray(masses, float)
        for leg in method.walk(system, state, times, m):
            due = times[len(kept) : np.searchsorted(times, leg.t, side="right")]
            kept += [leg.state(float(s)) for s in due]
            t, state, steps = leg.t, leg.state(leg.t), steps + leg.steps
            bar.update(100 * (t - times[0]) / (times[-1] - times[0]) - bar.n)
    except KeyboardInterrupt:
        why = f"interrupted at t = {t:g} of {times[-1]:g}"
        raise Interrupted(why, time=float(t), trajectory=reached()) from None
    except Stuck as stuck:
        why = f"{method} reached t = {t:g} of {times[-1]:g}: {stuck.reason}"
        raise IncompleteRun(why, time=float(t), trajectory=reached(), remedy=stuck.remedy) from None
    finally:
        bar.close()
    return reached()
