"""A short report of a run: the number of clusters over time, and the energy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow import observe
from attnflow.errors import InputError
from attnflow.records import plain
from attnflow.simulation import Trajectory
from attnflow.systems.base import title_of

__all__ = ["Report", "summarise"]

TOLERANCE = 1e-2
"""Tokens linked within this fraction of their root-mean-square distance from 0 are one cluster."""


@dataclass(frozen=True)
class Report:
    """The numbers behind a run's report and picture.

    Attributes:
        system: the system, with its parameters.
        title: the system without its arrays, for pictures; a loaded run has its whole name.
        method: the method, with its parameters.
        n: number of tokens.
        d: dimension of the tokens.
        steps: number of accepted steps.
        rejected: number of rejected steps.
        tolerance: tokens linked within this distance are one cluster.
        times: the save times.
        clusters: number of clusters at each time.
        energy: the energy E_β at each time; None if the system has none.
        sums_error: a bound on the error of each mean at the end, if sums were computed by
            harmonics; else None.
        order: the order parameter r of oscillators at each time; None for other systems.
    """

    system: str
    title: str
    method: str
    n: int
    d: int
    steps: int
    rejected: int
    tolerance: float
    times: list[float]
    clusters: list[int]
    energy: list[float] | None
    sums_error: float | None = None
    order: list[float] | None = None

    @property
    def staircase(self) -> list[tuple[float, int]]:
        """The times at which the cluster count changed, and the new counts."""
        return observe.staircase(self.times, self.clusters)

    def to_json(self) -> dict[str, Any]:
        """Everything, for `--json`."""
        return plain(self) | {"staircase": plain(self.staircase)}


def summarise(trajectory: Trajectory) -> Report:
    """The report of a single run with saved states, up to where they still have digits."""
    if trajectory.final.ndim != 2 or getattr(trajectory.xs, "ndim", 0) != 3:
        raise InputError("a report needs a single run (not a batch) with saved states.")
    trajectory = trajectory.with_digits
    tokens, system = trajectory.positions, trajectory.known_system
    n, d = tokens.shape[1:]
    scale = float(np.sqrt(np.mean(np.sum(np.asarray(tokens)[0] ** 2, axis=-1))))
    tolerance = TOLERANCE * scale if scale > 0 else TOLERANCE
    return Report(
        system=str(trajectory.system),
        title=str(trajectory.system) if system is None else title_of(system),
        method=str(trajectory.method),
        n=n,
        d=d,
        steps=int(trajectory.steps),
        rejected=int(trajectory.rejected),
        tolerance=tolerance,
        times=np.asarray(trajectory.ts).tolist(),
        clusters=observe.cluster_history(trajectory, tolerance).counts.tolist(),
        energy=_energies(trajectory),
        sums_error=_sums_error(trajectory),
        order=_orders(trajectory),
    )


def _sums_error(trajectory: Trajectory) -> float | None:
    system, method = trajectory.known_system, trajectory.method
    if system is None or isinstance(method, str) or method.exact_sums:
        return None
    bound = system.error_bound(trajectory.final, trajectory.masses)
    return None if bound is None or not jnp.isfinite(bound) else float(bound)


def _energies(trajectory: Trajectory) -> list[float] | None:
    """E_β at the save times, for attention on the sphere or in angles."""
    system = trajectory.known_system
    beta = None if system is None else system.inverse_temperature
    if beta is None or not system.space.round:
        return None
    xs = trajectory.positions
    return np.asarray(_energy_along(xs, beta, trajectory.masses)).tolist()


@jax.jit
def _energy_along(
    xs: Float[Array, "T n k"], beta: Float[Array, ""], masses: Float[Array, " n"] | None
) -> Float[Array, " T"]:
    """Compiled once for each shape; `lax.map` alone would compile its function at each call."""
    return jax.lax.map(lambda x: observe.energy(x, beta.astype(x.dtype), masses), xs)


def _orders(trajectory: Trajectory) -> list[float] | None:
    """Kuramoto's r at the save times, for oscillators."""
    system = trajectory.known_system
    if system is None or not system.oscillates:
        return None
    order = jax.vmap(lambda x: observe.order_parameter(x, trajectory.masses))
    return [float(r) for r in order(trajectory.positions)]
