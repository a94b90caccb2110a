"""Conjecture 4.2: at most three parallel subspaces, the smaller the more directions grow."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from attnflow import initial, weights
from attnflow.systems import RescaledAttention
from attnflow.theory import triples
from attnflow.theory.checks.base import Trial
from attnflow.theory.limits import growing_points, late
from attnflow.theory.search.base import Finding, Question

TS = np.array([0.0, 20.0, 25.0])

MAX_STEPS = 20_000
"""Steps after which a candidate is given up."""


class Codimension(Question):
    """C4.2: how the candidates are looked at, wherever they come from."""

    statement = (
        "with k growing eigenvalues tokens settle on at most 3 parallel subspaces of codimension k"
    )

    def look(self, trial: Trial) -> Finding:
        """Count the points that the growing coordinates settled at.

        They are at rest if they move by less than 1e-3 of their size in a time 1/λ, λ being the
        slowest growth. Between the last two saves there may be far less than that.
        """
        run = trial.run()
        V = trial.system.heads.V
        points, moved = growing_points(V, run)
        elapsed = slowest_growth(V) * float(run.ts[-1] - run.ts[-2])
        moved /= min(1.0, elapsed)
        if points > 3 and moved > 1e-3:
            return Finding("still moving")
        at = f"at t = {float(run.ts[-1]):g}, at rest to {moved:.0e}"
        several = f"subspace{'s' * (points != 1)}"
        return Finding(f"{points} {several}", points > 3, f"{points} parallel {several} {at}")


def slowest_growth(V: Any) -> float:
    """The smallest positive real part of an eigenvalue of V, and infinity where there is none.

    >>> slowest_growth(np.diag([1.0, 0.25, -2.0])), slowest_growth(None)
    (0.25, 1.0)
    """
    growth = np.linalg.eigvals(np.atleast_2d(1.0 if V is None else np.asarray(V))).real
    return float(np.min(growth, where=growth > 0, initial=np.inf))


class GoodTriples(Codimension):
    """C4.2 where it is believed: the leading eigenvalue is simple."""

    id = "C4.2"
    source = "[E] Conjecture 4.2, for good triples"
    looks_for = "a good triple whose tokens come to rest on more than 3"
    sizes = ((16, 2, 2), (16, 3, 2), (16, 3, 3))

    def draw(self, key: Any) -> Trial:
        """A good triple with k growing eigenvalues, and a start in [−1, 1]^d."""
        which, draw, tokens = jax.random.split(key, 3)
        n, d, k = self.sizes[int(jax.random.randint(which, (), 0, len(self.sizes)))]
        system = RescaledAttention(**triples.hyperplanes(d, draw, growing=k)._asdict())
        x0 = initial.cube(n, d, side=2.0, key=tokens)
        return Trial({"n": n, "d": d, "k": k}, system, x0, TS, late(MAX_STEPS))


class AnyValue(Codimension):
    """C4.2 as printed, for any V: V = I contradicts it."""

    id = "C4.2-printed"
    source = "[E] Conjecture 4.2, as printed"
    looks_for = "any V, with QᵀK ≻ 0, whose tokens come to rest on more than 3"

    def draw(self, key: Any) -> Trial:
        """A V of any kind: multiples of I, growing rotations, symmetric, Ginibre, paranormal."""
        which, scores, draw, tokens = jax.random.split(key, 4)
        n, d = 16, 2 + int(jax.random.randint(tokens, (), 0, 2))
        kinds = ("identity", "rotation", "symmetric", "Ginibre", "paranormal")
        kind = kinds[int(jax.random.randint(which, (), 0, len(kinds)))]
        Q, K = triples.positive_scores(d, scores)
        x0 = initial.cube(n, d, side=8.0, key=tokens)
        system = RescaledAttention(Q=Q, K=K, V=value(kind, d, draw))
        return Trial({"n": n, "d": d, "V": kind}, system, x0, TS, late(MAX_STEPS))


def value(kind: str, d: int, key: Any) -> Any:
    """A d × d matrix V of the named kind, its largest eigenvalues of modulus about 1.

    Args:
        kind: "identity", "rotation", "symmetric", "Ginibre" or "paranormal".
        d: the dimension.
        key: an integer or a JAX key.
    """
    if kind == "identity":
        return np.eye(d)
    if kind == "rotation":
        return weights.spectrum([1 + 0.5j, 1 - 0.5j, *[0.5] * (d - 2)], symmetric=False, key=key)
    if kind == "symmetric":
        return weights.goe(d, scale=d**-0.5, key=key)
    if kind == "Ginibre":
        return weights.ginibre(d, scale=d**-0.5, key=key)
    return weights.paranormal(d, d - 1, condition=2.0, key=key)
