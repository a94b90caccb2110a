"""From orthogonal or high-dimensional starts every cosine follows one curve, γ_β(t)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from attnflow import initial
from attnflow.observe import overlaps
from attnflow.simulate import simulate
from attnflow.systems import SA, USA
from attnflow.theory.checks.base import (
    SAVES,
    STARTS,
    TOKENS,
    Check,
    Draw,
    FlowCheck,
    Quantity,
    Trial,
)
from attnflow.theory.constants import log_lipschitz
from attnflow.theory.gamma import gamma, transition_time


def cosines(x: Any) -> np.ndarray:
    """`<x_i, x_j>` for i < j, of tokens (*batch, n, d)."""
    products = np.asarray(overlaps(x))
    i, j = np.triu_indices(products.shape[-1], 1)
    return products[..., i, j]


class CommonCosine(FlowCheck):
    """T6.8: all pairwise cosines are γ_β(t)."""

    id = "T6.8"
    source = "[P] Theorem 6.8"
    hypothesis = "SA or USA, orthogonal start"
    conclusion = "<x_i, x_j> = γ_β(t) for all i ≠ j"
    settings = "21 times up to t = 10"

    def trials(self, seed: int) -> Iterator[Trial]:
        """Orthonormal starts."""
        for kind, n, d, beta in ((SA, 8, 8, 0.5), (SA, 8, 8, 4.0), (USA, 8, 8, 1.0)):
            x0 = initial.orthogonal(n, d, seed=seed)
            about = {"system": kind.__name__, "n": n, "d": d, "β": beta, "seed": seed}
            yield Trial(about, kind(beta), x0, np.linspace(0.0, 10.0, 21))

    def measure(self, system: Any, ts: np.ndarray, xs: np.ndarray) -> Sequence[Quantity]:
        """The largest distance of a cosine to the curve."""
        curve = gamma(float(system.beta), xs.shape[1], ts, normalised=isinstance(system, SA))
        error = np.abs(cosines(xs) - np.asarray(curve)[:, None]).max()
        return [Quantity("max |<x_i,x_j> − γ_β|", error, "≤", 1e-6)]


class Concentration(Check):
    """T6.9: in high dimension uniform starts do nearly the same."""

    id = "T6.9"
    source = "[P] Theorem 6.9"
    hypothesis = "SA, uniform start, d large"
    conclusion = (
        "|<x_i,x_j> − γ_β| ≤ 2 c(β)^{nt} √(log d/d), with probability ≥ 1 − 2n²d^{−1/64}, which is "
        "below 0 here"
    )
    settings = (
        "n = 8, β = 1, t ≤ 10, d = 16 … 16384, 32 starts; the probability 1 − 2n²d^{−1/64} of the "
        "theorem is below 0 for each d that can be run, so the bound is vacuous: the error and its "
        "exponent in d are what is measured"
    )
    dims = (16, 64, 256, 1024, 4096, 16384)

    def trials(self, seed: int) -> Iterator[Trial]:
        """Uniform starts in R^d, drawn in the basis of their span."""
        n, beta = 8, 1.0
        starts = [
            initial.sphere(n, d, seed=seed + i, batch=(32,), reduced=True)
            for i, d in enumerate(self.dims)
        ]
        about = {"n": n, "β": beta, "seed": seed}
        yield Trial(about, SA(beta), np.stack(starts), np.linspace(0.0, 10.0, 21))

    def judge(self, trial: Trial) -> Sequence[Draw]:
        """The mean over starts of the largest error, and its exponent in d."""
        beta, n = trial.about["β"], trial.about["n"]
        run = trial.run()
        curve = np.asarray(gamma(beta, n, np.asarray(run.ts)))
        far = np.abs(cosines(run.xs) - curve[:, None]).max(axis=-1)
        errors = far.max(axis=-1).mean(axis=-1)
        exponent = np.polyfit(np.log(self.dims), np.log(errors), 1)[0]
        logs = np.log(2) + n * np.asarray(run.ts) * float(log_lipschitz(beta))
        logs = logs + 0.5 * np.log(np.log(self.dims[-1]) / self.dims[-1])
        excess = (np.log(far[-1].max(axis=0)) - logs).max()
        quantities = (
            Quantity("exponent of the error in d", exponent, "≤", -0.4),
            Quantity(f"error at d = {self.dims[-1]}", errors[-1], "≤", 0.1),
            Quantity("log(error / bound)", excess, "≤", 0.0),
        )
        return [Draw(trial.about, quantities)]


class Transition(Check):
    """(6.12): γ_β(t) = 1 − δ is where tokens become one cluster."""

    id = "6.12"
    source = "[P] (6.12)"
    hypothesis = "SA; orthogonal start, or uniform start in R^1024; δ = 1e-3, n = 32"
    conclusion = "cosines reach 1 − δ at the time of the curve Γ"
    settings = "orthogonal: at that time; uniform, 16 starts: half of the pairs, within 5%"
    delta = 1e-3

    def trials(self, seed: int) -> Iterator[Trial]:
        """One orthogonal start and 16 uniform ones for each β."""
        n = 32
        for beta in (1.0, 3.0):
            about = {"n": n, "β": beta, "seed": seed}
            T = float(transition_time(beta, n, self.delta))
            ts = np.array([0.0, 0.95, 1.0, 1.05]) * T
            uniform = initial.sphere(n, 1024, seed=seed, batch=(16,), reduced=True)
            yield Trial(about, SA(beta), uniform, ts, data=initial.orthogonal(n, n, seed=seed))

    def judge(self, trial: Trial) -> Sequence[Draw]:
        """The cosine of the orthogonal start, the fractions of the uniform ones."""
        exact = simulate(trial.system, trial.data, trial.ts)
        together = cosines(trial.run().xs) >= 1 - self.delta
        before, _, after = together.mean(axis=(0, 2))[1:]
        off = np.abs(cosines(exact.xs[2]) - (1 - self.delta)).max()
        quantities = (
            Quantity("|<x_i,x_j> − (1 − δ)| at the time of Γ", off, "≤", 1e-6),
            Quantity("pairs together 5% before", before, "≤", 0.5),
            Quantity("pairs together 5% after", after, "≥", 0.5),
        )
        return [Draw(trial.about, quantities)]


class LipschitzFlow(Check):
    """(D.4): nearby starts part at most at a known rate."""

    id = "D.4"
    source = "[P] (D.4)"
    hypothesis = "SA, any two starts"
    conclusion = "max_j |x_j(t) − y_j(t)| ≤ c(β)^{nt} max_j |x_j(0) − y_j(0)|, c = e^{10 max(1,β)}"
    settings = "t ≤ 5, starts 1e-3 apart; the rate is log(ratio)/(nt)"

    def trials(self, seed: int) -> Iterator[Trial]:
        """Pairs of uniform starts."""
        pairs = (STARTS // 2,)
        for d, beta in ((2, 1.0), (2, 9.0), (3, 4.0)):
            x = initial.sphere(TOKENS, d, seed=seed, batch=pairs)
            apart = initial.gaussian(TOKENS, d, scale=1e-3, seed=seed + 1, batch=pairs)
            about = {"n": TOKENS, "d": d, "β": beta, "seed": seed}
            starts = np.stack([x, initial.normalise(x + apart)])
            yield Trial(about, SA(beta), starts, np.linspace(0.0, 5.0, SAVES))

    def judge(self, trial: Trial) -> Sequence[Draw]:
        """The largest rate at which two starts part."""
        beta, n = trial.about["β"], trial.about["n"]
        x, y = np.asarray(trial.run().xs)
        apart = np.linalg.norm(x - y, axis=-1).max(axis=-1)
        rate = np.log(apart[:, 1:] / apart[:, :1]) / (n * np.asarray(trial.ts)[1:])
        return [
            Draw(
                trial.about,
                (Quantity("rate of parting / n", rate.max(), "≤", float(log_lipschitz(beta))),),
            )
        ]


class Symmetries(Check):
    """R2.2: tokens have no order, and with Q = K = V = I space has no direction."""

    id = "R2.2"
    source = "[P] Remark 2.2"
    hypothesis = "SA or USA without mask; rotations: Q = K = V = I"
    conclusion = "the flow commutes with permutations and rotations"
    settings = "t ≤ 5; largest difference of a coordinate"

    def trials(self, seed: int) -> Iterator[Trial]:
        """A start, its permutation and its rotation."""
        x = np.asarray(initial.sphere(TOKENS, 3, seed=seed, batch=(2,)))
        order = np.random.default_rng(seed % 2**64).permutation(TOKENS)
        O = np.asarray(initial.orthogonal(3, 3, seed=seed))
        starts = np.stack([x, x[:, order], x @ O, x[:, order] @ O])
        for system in (SA(3.0), USA(1.0)):
            about = {"system": type(system).__name__, "n": TOKENS, "d": 3, "seed": seed}
            yield Trial(about, system, starts, np.linspace(0.0, 5.0, SAVES), data=(order, O))

    def judge(self, trial: Trial) -> Sequence[Draw]:
        """What the flow of the changed start is, against the changed flow."""
        order, O = trial.data
        plain, permuted, rotated, both = np.asarray(trial.run().xs)
        expected = plain[..., order, :]
        quantities = (
            Quantity("permuted", np.abs(permuted - expected).max(), "≤", 1e-6),
            Quantity("rotated", np.abs(rotated - plain @ O).max(), "≤", 1e-6),
            Quantity("both", np.abs(both - expected @ O).max(), "≤", 1e-6),
        )
        return [Draw(trial.about, quantities)]
