"""Good triples and paranormal V: hyperplanes, and polytopes times subspaces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from attnflow import initial, weights
from attnflow.observe import dual_coordinates, eigenbasis
from attnflow.simulation import Trajectory
from attnflow.systems import RescaledAttention
from attnflow.theory import triples
from attnflow.theory.checks.base import SAVES, FlowCheck, Trial, keys
from attnflow.theory.checks.equations import weights_of
from attnflow.theory.limits import (
    boundary_distance,
    growing_coordinates,
    growing_points,
    late,
    leading_coordinates,
    still_moving,
)
from attnflow.verdicts import Quantity

LATE_TS = np.append(0.5 * np.arange(SAVES - 1), 15.0)
"""Save times for a leading eigenvalue 1; over the long last step it shows what still moves."""


def along(trajectory: Trajectory, W: Float[np.ndarray, "m d"]) -> Float[np.ndarray, "*batch T n m"]:
    """`trajectory.along(W)`, with rows of 0 up to d, so that one program does for all m."""
    m, d = W.shape
    square = np.zeros((d, d))
    square[:m] = W
    return np.asarray(trajectory.along(square))[..., :m]


def settled(name: str, ys: Float[np.ndarray, "T n m"]) -> Sequence[Quantity] | str:
    """How far points are from `∂K ∪ {0}`, K their hull, at the end of a run, if they rest."""
    far = boundary_distance(ys).max()
    return still_moving(ys, 1e-3) or [Quantity(name, far, "≤", 1e-3)]


class Hyperplanes(FlowCheck):
    """T4.1: the leading coordinate takes at most three limits."""

    id = "T4.1"
    source = "[E] Theorem 4.1"
    hypothesis = "RescaledAttention, good triple: λ₁ > |λ₂| simple, real, positive; <Qφ₁,Kφ₁> > 0"
    conclusion = "φ₁*(z_i) → one of at most three values {a, 0, b}"
    settings = "λ₁t = 15, gaps ≥ 0.4; distance to {a, 0, b} in units of max(|a|, |b|) ≤ 1e-3"
    ts = LATE_TS
    sizes = ((24, 2), (24, 3), (24, 5))

    def trials(self, key: int) -> Iterator[Trial]:
        """A good triple, every other one with complex λ₂, and a start in the cube [−1, 1]^d."""
        for n, d in self.sizes:
            for k in range(4):
                draw, tokens = keys(key, k)
                rotating = d > 2 and k % 2 == 1
                about = {"n": n, "d": d, "complex λ₂": rotating, "key": key, "draw": k}
                system = RescaledAttention(
                    **triples.hyperplanes(d, draw, rotating=rotating)._asdict()
                )
                x0 = initial.cube(n, d, side=2.0, key=tokens)
                yield Trial(about, system, x0, self.ts, late())

    def states(self, trajectory: Trajectory) -> np.ndarray:
        """The leading coordinates φ₁*(z)."""
        V = trajectory.running.heads.V  # type: ignore[attr-defined]
        return along(trajectory, eigenbasis(V).dual[:1].real)

    def measure(self, system: Any, ts: np.ndarray, xs: np.ndarray) -> Sequence[Quantity] | str:
        """How far the leading coordinates are from {a, 0, b}."""
        return settled("distance of φ₁*(z) to {a, 0, b}", xs)


class DualCoordinates(FlowCheck):
    """L-dual: along every growing eigenvector the tokens draw together."""

    id = "L-dual"
    source = "[E] slides"
    hypothesis = (
        "RescaledAttention, any Q, K; λ_k ≥ 0 an eigenvalue of V; heads V_h = w_h V and masses too"
    )
    conclusion = "min_j φ_k*(z_j) is non-decreasing, max_j φ_k*(z_j) non-increasing"
    settings = "λ₁t ≤ 6; steps back of 1e-7 of the first range are rounding"

    def trials(self, key: int) -> Iterator[Trial]:
        """V with eigenvalue 0 and others in [0, 1), in a random basis; Ginibre Q and K.

        In R² one head; in R³ two of them, which share V as 3 to 7, and tokens with masses.
        """
        n = 24
        for d, heads in ((2, None), (3, 2)):
            for k in range(3):
                draw, tokens = keys(key, k)
                values, V_key, Q_key, K_key = jax.random.split(draw, 4)
                positive = np.asarray(jax.random.uniform(values, (d - 1,)))
                V = weights.spectrum([*positive, 0.0], symmetric=False, key=V_key)
                Q, K = (
                    weights.ginibre(d, heads=heads, scale=d**-0.5, key=key)
                    for key in (Q_key, K_key)
                )
                masses = None
                if heads:
                    V = jnp.multiply.outer(jnp.array([0.3, 0.7]), V)
                    masses = np.linspace(0.2, 3.0, n)
                x0 = initial.cube(n, d, side=2.0, key=tokens)
                about = {"n": n, "d": d, "heads": heads or 1, "key": key, "draw": k}
                ts = np.linspace(0.0, 6.0, SAVES)
                yield Trial(about, RescaledAttention(Q=Q, K=K, V=V), x0, ts, masses=masses)

    def states(self, trajectory: Trajectory) -> np.ndarray:
        """The coordinates φ_k*(z)."""
        V = total_of(trajectory.running, trajectory.final.shape[-1])
        return np.asarray(dual_coordinates(trajectory, V).real)

    def measure(self, system: Any, ts: np.ndarray, xs: np.ndarray) -> Sequence[Quantity]:
        """The largest step back of a minimum or a maximum."""
        values = eigenbasis(total_of(system, xs.shape[-1])).values
        along = xs[..., (np.abs(values.imag) < 1e-12) & (values.real >= -1e-12)]
        low, high = along.min(axis=1), along.max(axis=1)
        back = np.maximum(-np.diff(low, axis=0), np.diff(high, axis=0)) / (high[0] - low[0])
        return [Quantity("largest step back of a min or max", back.max(), "≤", 1e-7)]


def total_of(system: Any, d: int) -> Float[np.ndarray, "d d"]:
    """`Σ_h V_h`."""
    return np.sum([V for _, _, V in weights_of(system, d)], axis=0)


class PolytopeTimesSubspace(FlowCheck):
    """T5.1: a polytope in the leading eigenspace, anything in the other."""

    id = "T5.1"
    source = "[E] Theorem 5.1"
    hypothesis = "RescaledAttention, QᵀK ≻ 0, V = λI on F, spectral radius < λ on G"
    conclusion = "dist(z_i, (∂K ∪ {0}) × G) → 0"
    settings = "λt = 15, radius λ/2; K the hull in F, distances in units of its size ≤ 1e-3"
    ts = LATE_TS

    def trials(self, key: int) -> Iterator[Trial]:
        """A paranormal V and a start in the cube [−1, 1]^d for each trial."""
        for n, d, m in ((24, 3, 2), (24, 5, 2), (24, 5, 3)):
            for k in range(4):
                draw, tokens = keys(key, k)
                about = {"n": n, "d": d, "dim F": m, "key": key, "draw": k}
                system = RescaledAttention(**triples.subspace(d, m, draw)._asdict())
                x0 = initial.cube(n, d, side=2.0, key=tokens)
                yield Trial(about, system, x0, self.ts, late())

    def states(self, trajectory: Trajectory) -> np.ndarray:
        """The parts in F."""
        V = trajectory.running.heads.V  # type: ignore[attr-defined]
        return along(trajectory, leading_coordinates(V, trajectory.final.shape[-1]))

    def measure(self, system: Any, ts: np.ndarray, xs: np.ndarray) -> Sequence[Quantity] | str:
        """How far the parts in F are from ∂K ∪ {0}."""
        return settled("distance to (∂K ∪ {0}) × G", xs)


class Codimension(FlowCheck):
    """C4.2: a conjecture, so what is seen is reported and nothing is called proven."""

    id = "C4.2"
    source = "[E] Conjecture 4.2, for good triples"
    hypothesis = "good triple, k eigenvalues of V with positive real part"
    conclusion = "z_i → at most three parallel subspaces of codimension k"
    settings = "λ₁t = 25, growing eigenvalues ≥ 0.3 λ₁; points within 1e-2 of the size are one"
    proven = False
    ts = 5 / 3 * LATE_TS

    def trials(self, key: int) -> Iterator[Trial]:
        """Good triples with two growing eigenvalues."""
        for n, d, growing in ((24, 2, 2), (24, 3, 2)):
            for k in range(4):
                draw, tokens = keys(key, k)
                system = RescaledAttention(**triples.hyperplanes(d, draw, growing)._asdict())
                x0 = initial.cube(n, d, side=2.0, key=tokens)
                about = {"n": n, "d": d, "k": growing, "key": key, "draw": k}
                yield Trial(about, system, x0, self.ts, late(), window=5 / 3)

    def states(self, trajectory: Trajectory) -> np.ndarray:
        """The coordinates along eigenvalues with positive real part."""
        V = trajectory.running.heads.V  # type: ignore[attr-defined]
        return along(trajectory, growing_coordinates(V, trajectory.final.shape[-1]))

    def measure(self, system: Any, ts: np.ndarray, xs: np.ndarray) -> Sequence[Quantity] | str:
        """The number of distinct points that the growing coordinates settled at."""
        points, moved = growing_points(None, xs)
        if points > 3 and moved > 1e-3:
            return f"{points} points, still moving by {moved:.1g} between the last two saves"
        return [Quantity("parallel subspaces", points, "≤", 3)]
