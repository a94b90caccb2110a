"""Statements about measures: how fast two of them part, and which points repel each other best."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from attnflow import initial
from attnflow.observe import wasserstein
from attnflow.spaces import Sphere
from attnflow.systems import SA, USA
from attnflow.theory.checks.base import SAVES, STARTS, TOKENS, Check, Draw, Trial, run
from attnflow.theory.sharp import Sharp, known_sharp, sharp
from attnflow.verdicts import Quantity


class Dobrushin(Check):
    """R3.3: two measures under the same flow part at most at the rate L of its field."""

    id = "R3.3"
    source = "[P] Remark 3.3 (Dobrushin)"
    hypothesis = "USA on the circle, any two measures; L = 2e^β, e^β in the place and e^β in μ"
    conclusion = "W1(μ(t), ν(t)) ≤ e^{Lt} W1(μ(0), ν(0)); equal measures stay equal"
    settings = "t ≤ 5, β = 0.5, tokens with masses; equal: m equal tokens beside one of mass m"
    beta = 0.5

    def trials(self, key: int) -> Iterator[Trial]:
        """Measures of tokens with masses, others nearby, and one that is written in two ways."""
        rng = np.random.default_rng(key % 2**64)
        half = STARTS // 2
        angles = rng.uniform(0, 2 * np.pi, (half, TOKENS))
        other = angles + rng.normal(0, 0.1, angles.shape)
        masses, others = rng.uniform(0.2, 3.0, (2, half, TOKENS))
        # The first measure again: one token for every two equal ones, and 8 more without weight.
        angles[0, 1::2], other[0, ::2] = angles[0, ::2], angles[0, ::2]
        others[0, ::2], others[0, 1::2] = masses[0, ::2] + masses[0, 1::2], 1e-12
        theta, m = (np.concatenate(pair) for pair in ((angles, other), (masses, others)))
        x0 = np.stack([np.cos(theta), np.sin(theta)], axis=-1)
        about = {"n": TOKENS, "d": 2, "β": self.beta, "key": key}
        yield Trial(about, USA(self.beta), x0, np.linspace(0.0, 5.0, SAVES), masses=m)

    def judge(self, trial: Trial) -> Sequence[Draw]:
        """The rates at which measures part, and the distance of the two that are one."""
        found, half = run(trial), len(trial.x0) // 2
        pairs = [
            [self._apart(trial, found.xs[:, k], i, i + half) for k in range(len(found.ts))]
            for i in range(half)
        ]
        same, *apart = np.array(pairs)
        growth = np.log(np.array(apart)[:, 1:] / np.array(apart)[:, :1]) / found.ts[1:]
        L = 2 * math.exp(float(trial.system.beta))
        quantities = (
            Quantity("log(W1(t) / W1(0)) / (Lt)", growth.max() / L, "≤", 1.0),
            Quantity("W1 of a measure to itself", same.max(), "≤", 1e-6),
            *found.equation,
        )
        return [Draw(trial.about, quantities)]

    def _apart(self, trial: Trial, xs: np.ndarray, i: int, j: int) -> float:
        masses = {"masses": trial.masses[i], "other_masses": trial.masses[j]}
        return float(wasserstein(xs[i], xs[j], space=Sphere(), **masses).distance)


class SharpMinima(Check):
    """T9.2: points that repel each other rest at a sharp configuration, which no other beats."""

    id = "T9.2"
    source = "[P] Theorem 9.2 (Cohn, Kumar)"
    hypothesis = "n points on S^{d−1} where a sharp configuration of so many exists, any β > 0"
    conclusion = "Σ_{i≠j} e^{β<x_i,x_j>} is least there; the repulsive flow V = −I finds it"
    settings = "the icosahedron; t = 400, β = 2, 8 starts, of which the best"

    def trials(self, key: int) -> Iterator[Trial]:
        """Uniform starts that repel each other."""
        n, d = 12, 3
        x0 = initial.sphere(n, d, key=key, batch=(STARTS,))
        about = {"points": known_points(n, d).name, "n": n, "d": d, "β": 2.0, "key": key}
        yield Trial(about, SA(2.0, V=-1.0), x0, np.linspace(0.0, 400.0, SAVES))

    def judge(self, trial: Trial) -> Sequence[Draw]:
        """The energy of every state beside the least, and the inner products of the best."""
        found, beta = run(trial), trial.about["β"]
        n, d = trial.about["n"], trial.about["d"]
        best = pair_sum(np.asarray(sharp(trial.about["points"], n=n, d=d)), beta)
        ratios = pair_sum(found.xs, beta) / best
        settled = found.final[np.argmin(ratios[:, -1])]
        row = known_points(n, d)
        i, j = np.triu_indices(n, 1)
        products = (settled @ settled.T)[i, j]
        off = np.abs(products[:, None] - np.array(row.inner_products)).min(axis=1).max()
        quantities = (
            Quantity("least energy / that of the sharp points − 1", ratios.min() - 1, "≥", -1e-12),
            Quantity("the same for the best start at rest", ratios[:, -1].min() - 1, "≤", 1e-8),
            Quantity("its inner products off the sharp ones", off, "≤", 1e-4),
            *found.equation,
        )
        return [Draw(trial.about, quantities)]


def known_points(n: int, d: int) -> Sharp:
    """The sharp configuration of n points in R^d."""
    row = known_sharp(n, d)
    if row is None:
        raise ValueError(f"no sharp configuration of {n} points in R^{d} is known")
    return row


def pair_sum(x: np.ndarray, beta: float) -> Any:
    """`Σ_{i≠j} e^{β<x_i,x_j>}` of tokens (*batch, n, d).

    >>> float(pair_sum(np.eye(2), 1.0).round(3))
    2.0
    """
    kernel = np.exp(beta * (x @ np.swapaxes(x, -1, -2)))
    return kernel.sum(axis=(-1, -2)) - np.trace(kernel, axis1=-2, axis2=-1)
