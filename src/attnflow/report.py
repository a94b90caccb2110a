"""What a run did, in a few lines: how many clusters when, and the energy."""

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
from attnflow.simulation import Coarsening, Trajectory
from attnflow.spaces import Circle, Sphere
from attnflow.systems import System
from attnflow.systems.angles import Oscillators
from attnflow.systems.attention import AttentionSystem
from attnflow.systems.base import title_of

TOLERANCE = 1e-2
"""Tokens are one cluster when linked within this part of their root-mean-square distance from 0."""


@dataclass(frozen=True)
class Report:
    """The numbers behind a run's report and picture.

    `title` is the system without its arrays, for pictures; of a run that was read from a store only
    the whole name is known. `sums_error` bounds the error of each mean at the end, where sums went
    through harmonics. `order` is the order parameter r of angles that have no energy.
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
        """The times at which the cluster count was first seen to change, and the new count."""
        return observe.staircase(self.times, self.clusters)

    def to_json(self) -> dict[str, Any]:
        """Everything, for `--json`."""
        return plain(self) | {"staircase": plain(self.staircase)}


def summarise(trajectory: Trajectory) -> Report:
    """The report of a single run that kept its states, up to where they have their digits."""
    if trajectory.final.ndim != 2 or getattr(trajectory.xs, "ndim", 0) != 3:
        raise InputError("a report is of a single run (no batch) that kept its states.")
    trajectory = trajectory.with_digits
    tokens, system = trajectory.positions, trajectory.system
    n, d = tokens.shape[1:]
    scale = float(np.sqrt(np.mean(np.sum(np.asarray(tokens[0]) ** 2, axis=-1))))
    tolerance = TOLERANCE * scale if scale > 0 else TOLERANCE
    return Report(
        system=str(trajectory.system),
        title=title_of(system) if isinstance(system, System) else str(system),
        method=str(trajectory.method),
        n=n,
        d=d,
        steps=int(trajectory.steps),
        rejected=int(trajectory.rejected),
        tolerance=tolerance,
        times=[float(t) for t in trajectory.ts],
        clusters=observe.cluster_history(trajectory, tolerance).counts.tolist(),
        energy=_energies(trajectory),
        sums_error=_sums_error(trajectory),
        order=_orders(trajectory),
    )


def _sums_error(trajectory: Trajectory) -> float | None:
    system = trajectory.system
    if not isinstance(system, AttentionSystem) or isinstance(trajectory.method, Coarsening):
        return None
    bound = system.error_bound(trajectory.final, trajectory.masses)
    return None if bound is None or not jnp.isfinite(bound) else float(bound)


def _energies(trajectory: Trajectory) -> list[float] | None:
    """E_β at the save times, for attention on the sphere or in angles."""
    system = trajectory.system
    if not isinstance(system, System) or not isinstance(system.space, (Sphere, Circle)):
        return None
    beta = getattr(system, "beta", None)
    if beta is None:
        return None
    xs = trajectory.positions
    return np.asarray(_energy_along(xs, beta.astype(xs.dtype), trajectory.masses)).tolist()


@jax.jit
def _energy_along(
    xs: Float[Array, "T n k"], beta: Float[Array, ""], masses: Float[Array, " n"] | None
) -> Float[Array, " T"]:
    """Compiled once for a shape: `lax.map` alone would compile its function at each call."""
    return jax.lax.map(lambda x: observe.energy(x, beta, masses), xs)


def _orders(trajectory: Trajectory) -> list[float] | None:
    """Kuramoto's r at the save times, for oscillators."""
    if not isinstance(trajectory.system, Oscillators):
        return None
    order = jax.vmap(lambda x: observe.order_parameter(x, trajectory.masses))
    return [float(r) for r in order(trajectory.positions)]
