"""V = I: distances grow, hulls shrink, tokens settle at vertices. V = −I: they go to 0."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy

from attnflow import initial
from attnflow.observe import clusters, exponential_rate, hull
from attnflow.systems import PureAttention, RescaledAttention
from attnflow.theory import triples
from attnflow.theory.checks.base import SAVES, FlowCheck, Trial, keys
from attnflow.theory.limits import SAME_POINT_TOL, boundary_distance, late, size, still_moving
from attnflow.verdicts import Quantity

SIZES = ((24, 2), (40, 3))
"""(n, d) of the runs on R^d."""


class Distances(FlowCheck):
    """L-dist: pairwise distances never shrink."""

    id = "L-dist"
    source = "[E] slides"
    hypothesis = "PureAttention, QᵀK = V = I"
    conclusion = "every |x_i − x_j| is non-decreasing"
    settings = "t ≤ 4; a decrease by 1e-6 of the distance is the error of the run"

    def trials(self, key: int) -> Iterator[Trial]:
        """Batches of Gaussian starts."""
        for n, d in SIZES:
            x0 = initial.gaussian(n, d, key=key, batch=(4,))
            about = {"n": n, "d": d, "key": key}
            yield Trial(about, PureAttention(V=1.0), x0, np.linspace(0.0, 4.0, SAVES), late())

    def measure(self, system: Any, ts: np.ndarray, xs: np.ndarray) -> Sequence[Quantity]:
        """The largest relative decrease of a distance between two saves."""
        distances = np.array([scipy.spatial.distance.pdist(x) for x in xs])
        decrease = (distances[:-1] - distances[1:]) / distances[:-1]
        return [Quantity("largest relative decrease of a distance", decrease.max(), "≤", 1e-6)]


class Polytope(FlowCheck):
    """T3.1 and C.1: the hull shrinks, and every token goes to 0 or to the boundary of its limit."""

    id = "T3.1"
    aliases = ("C.1",)
    source = "[E] Theorem 3.1"
    hypothesis = "RescaledAttention, V = I, QᵀK ≻ 0"
    conclusion = "conv{z_i} shrinks to a polytope K; each z_i → 0 or ∂K, in the finite set S"
    settings = "t = 20, K the final hull; distances in units of its size, tolerance 1e-3"
    ts = np.concatenate([np.linspace(0.0, 5.0, 11), [10.0, 20.0]])

    def trials(self, key: int) -> Iterator[Trial]:
        """A triple of weights and a start in the cube [−2, 2]^d for each trial."""
        for n, d in SIZES:
            for k in range(4):
                draw, tokens = keys(key, k)
                system = RescaledAttention(**triples.polytope(d, draw)._asdict())
                x0 = initial.cube(n, d, side=4.0, key=tokens)
                about = {"n": n, "d": d, "key": key, "draw": k}
                yield Trial(about, system, x0, self.ts, late())

    def measure(self, system: Any, ts: np.ndarray, xs: np.ndarray) -> Sequence[Quantity] | str:
        """How far tokens leave earlier hulls, how far they are from ∂K ∪ {0} and from S."""
        z = xs[-1]
        start = np.linalg.norm(xs[0], axis=-1).max()
        escape = max(-hull(before).depth(after).min() for before, after in pairwise(xs))
        Q, K = (np.eye(z.shape[-1]) if W is None else W for W in (system.heads.Q, system.heads.K))
        shrinks = Quantity("escape from an earlier hull", escape / start, "≤", 1e-6)
        if shrinks.holds and (why := still_moving(xs, 1e-3)):
            return why
        same = SAME_POINT_TOL * size(xs)
        points = clusters(z, same).count
        at_vertices = hull(z, tol=SAME_POINT_TOL).distance(z) <= same
        return [
            shrinks,
            Quantity("distance to ∂K ∪ {0}", boundary_distance(xs).max(), "≤", 1e-3),
            Quantity("residual of S", stationarity(z, np.asarray(Q.T @ K)).max(), "≤", 1e-3),
            Quantity("share of tokens at vertices", at_vertices.mean(), "≥", 0.8),
            Quantity("distinct points / n", points / len(z), "≤", 0.7),
        ]


class Origin(FlowCheck):
    """TC.5: with V = −I everything goes to 0, algebraically."""

    id = "TC.5"
    source = "[E] Theorem C.5"
    hypothesis = "PureAttention, V = −I, QᵀK = I"
    conclusion = "all tokens → 0; the mean dies exponentially and 2t·Cov → I on the span"
    settings = "t = 1000; |2t·Cov − I| ≤ 0.05"
    ts = np.concatenate([np.linspace(0.0, 11.0, SAVES - 2), [500.0, 1000.0]])

    def trials(self, key: int) -> Iterator[Trial]:
        """Batches of Gaussian starts."""
        for n, d in SIZES:
            x0 = initial.gaussian(n, d, key=key, batch=(4,))
            about = {"n": n, "d": d, "key": key}
            yield Trial(about, PureAttention(V=-1.0), x0, self.ts, late())

    def measure(self, system: Any, ts: np.ndarray, xs: np.ndarray) -> Sequence[Quantity]:
        """The covariance against its law, the rate of the mean, and the size."""
        x, t = xs[-1], ts[-1]
        spread = 2 * t * np.cov(x.T, bias=True)
        means = np.linalg.norm(xs.mean(axis=1), axis=-1)
        early = (ts <= 11.0) & (means > 1e-6 * means[0])
        decay = exponential_rate(ts[early], means[early])
        shrunk = np.linalg.norm(x, axis=-1).max() / np.linalg.norm(xs[0], axis=-1).max()
        off = np.abs(np.linalg.eigvalsh(spread) - 1).max()
        return [
            Quantity("|2t·Cov − I|", off, "≤", 0.05),
            Quantity("rate at which the mean dies", decay.rate, "≥", 4 * decay.error),
            Quantity("max |x| / its first value", shrunk, "≤", 0.1),
        ]


def stationarity(z: np.ndarray, B: np.ndarray) -> np.ndarray:
    """How far each token is from `S = {x ∈ K : |Ax|² = max_j <Ax, A v_j>}`, with B = AᵀA = QᵀK.

    In units of the largest |Av|². The maximum over the hull is that over its tokens.
    """
    scores = z @ B @ z.T
    own = np.diag(scores)
    return (scores.max(axis=1) - own) / own.max()
