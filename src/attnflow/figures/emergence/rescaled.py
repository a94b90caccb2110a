"""The runs that several figures of [E] have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from attnflow import initial, observe
from attnflow.figures.scipy_solution import Head, compare_with_scipy, rescaled
from attnflow.simulation import Adaptive, Trajectory, simulate
from attnflow.systems import RescaledAttention
from attnflow.theory.limits import boundary_distance, moved, size
from attnflow.verdicts import Quantity

TOKENS, SAVES = 40, 61
"""One shape for all: it is compiled once for the figures that are made together."""


def late(max_steps: int = 100_000) -> Adaptive:
    """Nearly a hard maximum needs few digits; order 5 compiles in half the time of order 8."""
    return Adaptive(rtol=1e-6, atol=1e-9, solver="tsit5", max_steps=max_steps)


def rescaled_run(V: Any, d: int, end: float) -> Trajectory:
    """Rescaled attention with Q = K = I from 40 tokens uniform in [−5, 5]^d, with 61 saves."""
    ts = np.linspace(0.0, end, SAVES)
    return simulate(RescaledAttention(V=V), initial.cube(TOKENS, d, key=0), ts, method=late())


def solves(V: Any, run: Trajectory, until: float) -> Quantity:
    """Whether tokens with Q = K = I go as [E](4) says, coordinate by coordinate, up to a time."""
    basis = observe.eigenbasis(V)
    return compare_with_scipy(
        "[E](4)", rescaled(Head(V=V)), run.ts, run.xs, until=until, along=basis.dual
    )


@dataclass(frozen=True)
class Levels:
    """The leading coordinate φ₁*(z_i) along a run, and the levels that it settled at."""

    direction: Float[np.ndarray, " d"]
    functional: Float[np.ndarray, " d"]
    along: Float[np.ndarray, "T n"]
    labels: Int[np.ndarray, " n"]
    levels: Float[np.ndarray, " k"]

    @property
    def numbers(self) -> dict[str, Any]:
        """What is behind the picture."""
        return {
            "φ₁": self.direction,
            "φ₁*": self.functional,
            "levels": self.levels,
            "tokens on each": np.bincount(self.labels),
        }

    @property
    def seen(self) -> tuple[Quantity, ...]:
        """T4.1: at most three levels, {a, 0, b}, and tokens are there."""
        ys = self.along[..., None]
        return (
            Quantity("parallel hyperplanes", len(self.levels), "≤", 3),
            Quantity("parallel hyperplanes", len(self.levels), "≥", 2),
            Quantity("distance of φ₁*(z) to {a, 0, b}", boundary_distance(ys).max(), "≤", 1e-3),
            Quantity(
                "way of φ₁*(z) in the last third", moved(ys[[2 * len(ys) // 3, -1]]), "≤", 1e-2
            ),
        )


def levels(V: Float[np.ndarray, "d d"], run: Trajectory) -> Levels:
    """The leading coordinate of the tokens; values within 1e-2 of the size are one level."""
    basis = observe.eigenbasis(V)
    direction, functional = np.real(basis.vectors[:, 0]), np.real(basis.dual[0])
    along = np.asarray(run.along(functional[None]))[..., 0]
    found = observe.clusters(along[-1][:, None], 1e-2 * size(along[..., None]))
    return Levels(direction, functional, along, found.labels, found.centers[:, 0])
