"""One cluster in the end: for small β, for large β, for d ≥ 3, and from a hemisphere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from attnflow import initial, weights
from attnflow.observe import clusters, diameter, exponential_rate
from attnflow.simulation import Coarsening
from attnflow.systems import SA, USA
from attnflow.theory.checks.base import (
    FIT,
    SAVES,
    STARTS,
    TOKENS,
    Check,
    Draw,
    FlowCheck,
    Trial,
    run,
    unfitted,
)
from attnflow.theory.constants import large_beta
from attnflow.verdicts import Quantity

CLUSTER_TOL = 1e-3
"""Tokens this close are linked into clusters; all tokens are at one point when none are further
apart than this."""


class OneCluster(FlowCheck):
    """Shared by the theorems whose conclusion is one cluster."""

    conclusion = "all tokens → one point"

    def measure(self, system: Any, ts: np.ndarray, xs: np.ndarray) -> Sequence[Quantity] | str:
        """The diameter at the end. A run that was still merging is unresolved."""
        before, after = (clusters(x, CLUSTER_TOL).count for x in xs[-2:])
        if 1 < after < before:
            return f"{after} clusters at the end, and still merging"
        spread = float(diameter(xs[-1]))
        return [Quantity(f"diameter at t = {ts[-1]:g}", spread, "≤", CLUSTER_TOL)]


class Uniform(OneCluster):
    """T4.1p: β = 0."""

    id = "T4.1p"
    source = "[P] Theorem 4.1"
    hypothesis = "SA, β = 0, almost every start"
    settings = "t = 100, tolerance 1e-3"

    def trials(self, key: int) -> Iterator[Trial]:
        """Batches of uniform starts."""
        for d in (2, 3):
            x0 = initial.sphere(TOKENS, d, key=key, batch=(STARTS,))
            about = {"n": TOKENS, "d": d, "β": 0.0, "key": key}
            yield Trial(about, SA(0.0), x0, np.linspace(0.0, 100.0, SAVES))


class NearlyUniform(Check):
    """T4.2: the smaller β, the more starts end in one cluster."""

    id = "T4.2"
    source = "[P] Theorem 4.2"
    hypothesis = "SA, V = I, any Q and K, β → 0"
    conclusion = "the fraction of starts that end in one cluster → 1"
    settings = (
        "t = 100, β = 0.01, 64 starts for each Q, K; tolerance 1e-3; beside it the same starts "
        "with Q = K = I and β = 30, which do not end there by then"
    )

    def trials(self, key: int) -> Iterator[Trial]:
        """Ginibre Q, K."""
        for n, d in ((16, 2), (16, 3)):
            for k in range(2):
                Q, K = weights.ginibre(d, heads=2, key=2 * key + k)
                x0 = initial.sphere(n, d, key=2 * key + k, batch=(64,))
                about = {"n": n, "d": d, "key": key, "draw": k}
                other = SA(30.0, Q=np.eye(d), K=np.eye(d))
                yield Trial(about, SA(0.01, Q=Q, K=K), x0, [0.0, 100.0], data=other)

    def judge(self, trial: Trial) -> Sequence[Draw]:
        """The fraction at the small β, and at a large one, without which 1 would say little."""
        small, large = run(trial), run(replace(trial, system=trial.data, window=0.1))
        fractions = [fraction_clustered(found.final) for found in (small, large)]
        quantities = (
            Quantity("fraction at β = 0.01", fractions[0], "≥", 0.98),
            Quantity("fraction with Q = K = I, β = 30", fractions[1], "≤", 0.5),
            *small.equation,
            *large.equation,
        )
        return [Draw(trial.about, quantities)]


def fraction_clustered(final: np.ndarray) -> float:
    """The fraction of a batch that ends in one cluster."""
    return float(np.mean(np.asarray(jax.vmap(diameter)(final)) <= CLUSTER_TOL))


class SmallBeta(OneCluster):
    """T4.3: β ≤ 1 on the circle, β ≤ C/n elsewhere."""

    id = "T4.3"
    source = "[P] Theorem 4.3"
    hypothesis = "SA or USA; d = 2 and β ≤ 1, or β ≤ C/n"
    settings = "t = 400, tolerance 1e-3"

    def trials(self, key: int) -> Iterator[Trial]:
        """Batches of uniform starts; of USA with masses of 1, so as to run the program of R3.3."""
        for kind, d, beta, masses in (
            (SA, 2, 1.0, None),
            (USA, 2, 1.0, np.ones(TOKENS)),
            (SA, 3, 0.5 / TOKENS, None),
        ):
            x0 = initial.sphere(TOKENS, d, key=key, batch=(STARTS,))
            about = {"system": kind.__name__, "n": TOKENS, "d": d, "β": beta, "key": key}
            yield Trial(about, kind(beta), x0, np.linspace(0.0, 400.0, SAVES), masses=masses)


class LargeBeta(OneCluster):
    """T5.1p: β large compared with n²."""

    id = "T5.1p"
    source = "[P] Theorem 5.1"
    hypothesis = "SA or USA, (n − 1) τ*_β < π/2 with β sin²τ* = (d − 1) cos τ*"
    settings = "Coarsening to t = 1e30, tolerance 1e-3"

    def trials(self, key: int) -> Iterator[Trial]:
        """Batches of uniform starts at 1.1 times the least β of the hypothesis."""
        for kind, n, d in ((SA, 4, 3), (SA, 6, 2), (USA, 4, 3)):
            beta = 1.1 * float(large_beta(n, d))
            x0 = initial.sphere(n, d, key=key, batch=(8,))
            about = {"system": kind.__name__, "n": n, "d": d, "β": beta, "key": key}
            window = 1.0 if kind is SA else 0.01
            ts = [0.0, 1e10, 1e20, 1e30]
            yield Trial(about, kind(beta), x0, ts, Coarsening(), window=window)


class AnyBeta(OneCluster):
    """T6.1: in three dimensions and more, whatever β."""

    id = "T6.1"
    source = "[P] Theorem 6.1"
    hypothesis = "SA or USA, d ≥ 3, any β ≥ 0"
    settings = "Coarsening to t = 1e20, tolerance 1e-3"

    def trials(self, key: int) -> Iterator[Trial]:
        """Batches of uniform starts."""
        for kind, d, beta in ((SA, 4, 6.0), (SA, 4, 1.0), (USA, 3, 3.0)):
            x0 = initial.sphere(TOKENS, d, key=key, batch=(4,))
            about = {"system": kind.__name__, "n": TOKENS, "d": d, "β": beta, "key": key}
            ts = [0.0, 1e5, 1e10, 1e20]
            yield Trial(about, kind(beta), x0, ts, Coarsening(), window=1 / (1 + beta))


class Hemisphere(FlowCheck):
    """L6.4 and T6.3: tokens of an open hemisphere meet exponentially fast."""

    id = "L6.4"
    aliases = ("T6.3",)
    source = "[P] Lemma 6.4, Theorem 6.3"
    hypothesis = (
        "SA, V = I, any Q and K, start in an open hemisphere (d ≥ n: always); by the same proof "
        "also for heads with V_h = w_h I, with masses, and under a causal mask"
    )
    conclusion = "all tokens → one point, at an exponential rate"
    settings = "t = 60; rate fitted where the diameter is between 1e-7 and 1e-2"
    ts = np.linspace(0.0, 60.0, 121)

    def trials(self, key: int) -> Iterator[Trial]:
        """Hemispheres in R³, without a mask and with it; uniform tokens with masses and d = n."""
        masses = np.linspace(0.2, 3.0, 8)
        for k in range(2):
            for n, d, beta, start, heads, m in (
                (16, 3, 2.0, initial.hemisphere, None, None),
                (8, 8, 4.0, initial.sphere, 2, masses),
                (8, 3, 1.0, initial.hemisphere, None, None),
            ):
                stack = (heads or 1) * 2
                drawn = weights.ginibre(d, heads=stack, scale=d**-0.5, key=2 * key + k)
                Q, K = drawn if heads is None else (drawn[:2], drawn[2:])
                mask = "causal" if n > d and n == 8 else None
                V = None if heads is None else 0.5
                x0 = start(n, d, key=2 * key + k, batch=(4,))
                about = {"n": n, "d": d, "β": beta, "heads": heads or 1, "mask": mask or "none"}
                system = SA(beta, Q=Q, K=K, V=V, mask=mask)
                yield Trial(about | {"key": key, "draw": k}, system, x0, self.ts, masses=m)

    def measure(self, system: Any, ts: np.ndarray, xs: np.ndarray) -> Sequence[Quantity] | str:
        """The diameter at the end, and its rate against four standard errors."""
        spread = np.array([float(diameter(x)) for x in xs])
        quantities = [Quantity(f"diameter at t = {ts[-1]:g}", spread[-1], "≤", 1e-6)]
        window = (spread < 1e-2) & (spread > 1e-7)
        if window.sum() < FIT:
            return unfitted(quantities, int(window.sum()))
        fit = exponential_rate(ts[window], spread[window])
        return [*quantities, Quantity("exponential rate", fit.rate, "≥", max(0.1, 4 * fit.error))]


class CausalCollapse(FlowCheck):
    """CAUSAL: where tokens see only earlier ones, all of them go to the first."""

    id = "CAUSAL"
    source = "Karagodin, Polyanskiy, Rigollet 2024"
    hypothesis = "SA under a causal mask, V = I, any Q and K, almost every start"
    conclusion = "every token → x_1(0), which does not move"
    settings = "n = 8, β = 1, t = 60, tolerance 1e-3"
    ts = Hemisphere.ts

    def trials(self, key: int) -> Iterator[Trial]:
        """Uniform starts."""
        for k in range(2):
            Q, K = weights.ginibre(3, heads=2, scale=3**-0.5, key=2 * key + k)
            x0 = initial.sphere(8, 3, key=2 * key + k, batch=(4,))
            about = {"n": 8, "d": 3, "β": 1.0, "key": key, "draw": k}
            yield Trial(about, SA(1.0, Q=Q, K=K, mask="causal"), x0, self.ts)

    def measure(self, system: Any, ts: np.ndarray, xs: np.ndarray) -> Sequence[Quantity] | str:
        """How far tokens are from where the first one began, and how far that one moved."""
        away = np.linalg.norm(xs - xs[0, 0], axis=-1)
        return [
            Quantity("max |x_i − x_1(0)| at the end", away[-1].max(), "≤", CLUSTER_TOL),
            Quantity("way of the first token", away[:, 0].max(), "≤", 1e-12),
        ]
