"""From orthogonal or high-dimensional starts every cosine follows one curve, γ_β(t)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float

from attnflow import initial
from attnflow.observe import overlaps
from attnflow.systems import SA, USA
from attnflow.theory.checks.base import SAVES, STARTS, TOKENS, Check, Draw, FlowCheck, Trial, run
from attnflow.theory.checks.equations import weights_of, written
from attnflow.theory.constants import log_lipschitz
from attnflow.theory.gamma import gamma, transition_time
from attnflow.verdicts import Quantity


def cosines(x: Any) -> np.ndarray:
    """`<x_i, x_j>` for i < j, of tokens (*batch, n, d)."""
    products = np.asarray(overlaps(x))
    i, j = np.triu_indices(products.shape[-1], 1)
    return products[..., i, j]


class CommonCosine(FlowCheck):
    """T6.8: all pairwise cosines are γ_β(t)."""

    id = "T6.8"
    source = "[P] Theorem 6.8"
    hypothesis = "SA or USA, orthogonal start; heads with Q_h = K_h orthogonal are one head"
    conclusion = "<x_i, x_j> = γ_β(t) for all i ≠ j (at Σ_h w_h t for heads with V_h = w_h I)"
    settings = "21 times up to t = 10"

    def trials(self, key: int) -> Iterator[Trial]:
        """Orthonormal starts, of one head and of three."""
        turns = np.stack([np.asarray(initial.orthogonal(9, 9, key=key + h)) for h in (1, 2, 3)])
        shares = np.multiply.outer([0.2, 0.3, 0.4], np.eye(9))
        heads = {"Q": turns, "K": turns, "V": shares}
        for kind, n, d, beta, given in (
            (SA, 8, 8, 4.0, {}),
            (USA, 8, 8, 1.0, {}),
            (SA, 5, 9, 0.5, heads),
        ):
            x0 = initial.orthogonal(n, d, key=key)
            system = kind(beta, **given)
            about = {"system": kind.__name__, "n": n, "d": d, "β": beta, "key": key}
            about["heads"] = system.heads.count or 1
            yield Trial(about, system, x0, np.linspace(0.0, 10.0, 21))

    def measure(self, system: Any, ts: np.ndarray, xs: np.ndarray) -> Sequence[Quantity]:
        """The largest distance of a cosine to the curve."""
        pace = sum(V[0, 0] for _, _, V in weights_of(system, xs.shape[-1]))
        normalised = written(system).normalised
        curve = gamma(float(system.beta), xs.shape[1], pace * ts, normalised=normalised)
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

    def trials(self, key: int) -> Iterator[Trial]:
        """Uniform starts in R^d, drawn in the basis of their span."""
        n, beta = 8, 1.0
        starts = [
            initial.sphere(n, d, key=key + i, batch=(32,), reduced=True)
            for i, d in enumerate(self.dims)
        ]
        about = {"n": n, "β": beta, "key": key}
        yield Trial(about, SA(beta), np.stack(starts), np.linspace(0.0, 10.0, 21))

    def judge(self, trial: Trial) -> Sequence[Draw]:
        """The mean over starts of the largest error, and its exponent in d."""
        beta, n = trial.about["β"], trial.about["n"]
        found = run(trial)
        curve = np.asarray(gamma(beta, n, found.ts))
        far = np.abs(cosines(found.xs) - curve[:, None]).max(axis=-1)
        errors = far.max(axis=-1).mean(axis=-1)
        exponent = np.polyfit(np.log(self.dims), np.log(errors), 1)[0]
        logs = np.log(2) + n * found.ts * float(log_lipschitz(beta))
        logs = logs + 0.5 * np.log(np.log(self.dims[-1]) / self.dims[-1])
        excess = np.log(far[-1].max(axis=0)) - logs
        quantities = (
            Quantity("exponent of the error in d", exponent, "≤", -0.4),
            Quantity(f"error at d = {self.dims[-1]}", errors[-1], "≤", 0.1),
            Quantity("log(error / bound) at t = 0", excess[0], "≤", 0.0),
            Quantity("log(error / bound) later", excess[1:].max(), "≤", 0.0, vacuous=True),
            *found.equation,
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

    def trials(self, key: int) -> Iterator[Trial]:
        """One orthogonal start and 16 uniform ones for each β."""
        n = 32
        for beta in (1.0, 3.0):
            about = {"n": n, "β": beta, "key": key}
            T = float(transition_time(beta, n, self.delta))
            ts = np.array([0.0, 0.95, 1.0, 1.05]) * T
            uniform = initial.sphere(n, 1024, key=key, batch=(16,), reduced=True)
            starts = np.concatenate([uniform, initial.orthogonal(n, n, key=key)[None]])
            yield Trial(about, SA(beta), starts, ts)

    def judge(self, trial: Trial) -> Sequence[Draw]:
        """The cosine of the orthogonal start, which is the last, the fractions of the others."""
        found = run(trial)
        *uniform, orthogonal = cosines(found.xs)
        before, _, after = (np.array(uniform) >= 1 - self.delta).mean(axis=(0, 2))[1:]
        off = np.abs(orthogonal[2] - (1 - self.delta)).max()
        quantities = (
            Quantity("|<x_i,x_j> − (1 − δ)| at the time of Γ", off, "≤", 1e-6),
            Quantity("pairs together 5% before", before, "≤", 0.5),
            Quantity("pairs together 5% after", after, "≥", 0.5),
            *found.equation,
        )
        return [Draw(trial.about, quantities)]


class LipschitzFlow(Check):
    """(D.4): nearby starts part at most at a known rate."""

    id = "D.4"
    source = "[P] (D.4)"
    hypothesis = "SA, any two starts"
    conclusion = (
        "max_j |x_j(t) − y_j(t)| ≤ c(β)^{nt} max_j |x_j(0) − y_j(0)|, c = e^{10 max(1,β)}; "
        "for close starts also ≤ e^{(2+2β)t}, as |δx_i'| ≤ |δx_i| + (1 + 2β) max_j |δx_j|"
    )
    settings = "t ≤ 5, starts 1e-3 apart, and 1e-6 about a token between two clusters; rates of log"

    def trials(self, key: int) -> Iterator[Trial]:
        """Pairs of uniform starts, and pairs that part as fast as they can."""
        pairs = (STARTS // 2,)
        for d, beta in ((2, 1.0), (2, 9.0), (3, 4.0)):
            x = initial.sphere(TOKENS, d, key=key, batch=pairs)
            apart = initial.gaussian(TOKENS, d, scale=1e-3, key=key + 1, batch=pairs)
            about = {"n": TOKENS, "d": d, "β": beta, "key": key}
            starts = np.stack([x, initial.normalise(x + apart)])
            yield Trial(about, SA(beta), starts, np.linspace(0.0, 5.0, SAVES))
        torn = np.broadcast_to(torn_between(), (*pairs, TOKENS, 2))
        tilted = torn.copy()
        tilted[:, 0] += np.multiply.outer(np.linspace(1, 2, *pairs), [0.0, 1e-6])
        starts = np.stack([torn, np.asarray(initial.normalise(tilted))])
        between = {"n": TOKENS, "d": 2, "β": 1.0, "start": "between two clusters"}
        yield Trial(between, SA(1.0), starts, np.linspace(0.0, 5.0, SAVES))

    def judge(self, trial: Trial) -> Sequence[Draw]:
        """The largest rate at which two starts part."""
        beta, n = trial.about["β"], trial.about["n"]
        found = run(trial)
        x, y = found.xs
        apart = np.linalg.norm(x - y, axis=-1).max(axis=-1)
        rate = (np.log(apart[:, 1:] / apart[:, :1]) / found.ts[1:]).max()
        printed = n * float(log_lipschitz(beta))
        quantities = [
            Quantity("rate of parting / (2 + 2β)", rate / (2 + 2 * beta), "≤", 1.0),
            Quantity("rate of parting / (n log c(β))", rate / printed, "≤", 1.0, vacuous=True),
        ]
        if "start" in trial.about:
            quantities.append(Quantity("rate of parting, of a torn token", rate, "≥", 0.3))
        return [Draw(trial.about, (*quantities, *found.equation))]


def torn_between() -> Float[np.ndarray, "n 2"]:
    """A token at right angles to two clusters of the same mass that face each other.

    It goes to the one it is tilted to: with Q = K = V = I no token leaves its place faster.
    """
    x = np.zeros((TOKENS, 2))
    x[0, 0] = 1.0
    x[1 : TOKENS // 2 + 1, 1], x[TOKENS // 2 + 1 :, 1] = 1.0, -1.0
    return x


class Symmetries(Check):
    """R2.2: tokens have no order, and with Q = K = V = I space has no direction."""

    id = "R2.2"
    source = "[P] Remark 2.2"
    hypothesis = (
        "SA or USA, masks permuted with the tokens; rotations: Q, K, V multiples of I in each head"
    )
    conclusion = "the flow commutes with permutations and rotations"
    settings = "t ≤ 60; largest difference of a coordinate"

    def trials(self, key: int) -> Iterator[Trial]:
        """A start, its permutation and its rotation; for two heads, and under a causal mask.

        The masked ones have the shapes of CAUSAL, so that they compile nothing of their own.
        """
        n, d, ts = 8, 3, np.linspace(0.0, 60.0, 121)
        x = np.asarray(initial.sphere(n, d, key=key, batch=(2,)))
        order = np.random.default_rng(key % 2**64).permutation(n)
        O = np.asarray(initial.orthogonal(d, d, key=key))
        earlier = np.tril(np.ones((n, n), bool))[np.ix_(order, order)]
        Q, V = (np.multiply.outer(c, np.eye(d)) for c in ([1.0, 2.0], [0.5, 0.25]))
        plain = {"Q": np.eye(d), "K": np.eye(d)}
        for system, permuted in (
            (USA(1.0, Q=Q, V=V), None),
            (SA(2.0, **plain, mask="causal"), SA(2.0, **plain, mask=earlier)),
        ):
            kind, heads = type(system).__name__, system.heads.count or 1
            about = {"system": kind, "n": n, "d": d, "heads": heads}
            about |= {"mask": "none" if permuted is None else "causal", "key": key}
            data = (order, O, permuted or system)
            yield Trial(about, system, np.stack([x, x @ O]), ts, data=data)

    def judge(self, trial: Trial) -> Sequence[Draw]:
        """What the flow of the changed start is, against the changed flow."""
        order, O, system = trial.data
        found = run(trial)
        plain, rotated = found.xs
        permuted, both = run(replace(trial, system=system, x0=trial.x0[..., order, :])).xs
        expected = plain[..., order, :]
        quantities = (
            Quantity("permuted", np.abs(permuted - expected).max(), "≤", 1e-6),
            Quantity("rotated", np.abs(rotated - plain @ O).max(), "≤", 1e-6),
            Quantity("both", np.abs(both - expected @ O).max(), "≤", 1e-6),
            *found.equation,
        )
        return [Draw(trial.about, quantities)]
