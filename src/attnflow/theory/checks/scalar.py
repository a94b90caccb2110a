"""T2.1: in one dimension the attention matrix becomes Boolean, of rank 1 or 2."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from attnflow import initial
from attnflow.observe import attention, doubly_exponential_rate
from attnflow.systems import RescaledAttention
from attnflow.theory.checks.base import FIT, FlowCheck, Trial, keys, unfitted
from attnflow.theory.checks.equations import plain_weights, weights_of
from attnflow.verdicts import Quantity

UNIT_ROW_TOL = 1e-6
"""A row within this distance of a unit row is that row."""


class Leaders(FlowCheck):
    """Every row of P(t) but at most one goes to e_1 or e_n, the leftmost or rightmost token."""

    id = "T2.1"
    source = "[E] Theorem 2.1"
    hypothesis = "d = 1, QK > 0, V > 0, distinct tokens"
    conclusion = "rows of P → e_1 or e_n except at most one, doubly exponentially; rank ≤ 2"
    settings = "Vt = 12; a row is settled when 1e-6 from e_1 or e_n; rate fitted below 1e-2"

    def trials(self, key: int) -> Iterator[Trial]:
        """Positive numbers Q, K, V and a Gaussian start for each trial."""
        for n in (10, 40):
            for k in range(4):
                numbers, tokens = keys(key, k)
                Q, K, V = (
                    float(w) for w in jax.random.uniform(numbers, (3,), minval=0.5, maxval=2)
                )
                x0 = initial.gaussian(n, 1, key=tokens)
                about = {"n": n, "d": 1, "Q": Q, "K": K, "V": V, "key": key, "draw": k}
                yield Trial(
                    about, RescaledAttention(Q=Q, K=K, V=V), x0, np.linspace(0.0, 12 / V, 121)
                )

    def measure(self, system: Any, ts: np.ndarray, xs: np.ndarray) -> Sequence[Quantity] | str:
        """Unsettled rows, the rank, and the rate at which the slowest settled row settles."""
        [(Q, K, V)] = weights_of(system, 1)
        beta = float(system.beta)
        Ps = [plain_weights(np.exp(t * V) * z, Q, K, beta) for t, z in zip(ts, xs, strict=True)]
        away = np.array([rows_away(P, z) for P, z in zip(Ps, xs, strict=True)])
        settled = away[-1] <= UNIT_ROW_TOL
        P = Ps[-1]
        off = np.abs(np.asarray(_attention(system, xs[-1], np.asarray(ts[-1]))) - P).max()
        slowest = away[:, settled].max(axis=1) if settled.any() else away.min(axis=1)
        # By NumPy, as each number of settled rows would be a program of its own for `observe.rank`.
        rank = int(np.linalg.matrix_rank(P[settled], rtol=1e-6)) if settled.any() else 0
        window = (slowest < 1e-2) & (slowest > 1e-300)
        quantities = [
            Quantity("rows that are neither e_1 nor e_n", int((~settled).sum()), "≤", 1),
            Quantity("rank of the settled rows", rank, "≤", 2),
            Quantity("P off observe.attention", off, "≤", 1e-6, "equation"),
        ]
        if window.sum() < FIT:
            return unfitted(quantities, int(window.sum()))
        fit = doubly_exponential_rate(ts[window], slowest[window])
        rate = fit.rate / V.item()
        return [*quantities, Quantity("doubly exponential rate / V", rate, "≥", 0.5)]


@eqx.filter_jit
def _attention(system: Any, x: Any, t: Any) -> Float[Array, "n n"]:
    return attention(system, x, t)


def rows_away(P: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The weight of each row of P that is on neither end, or on the end it gives less to.

    A sum of small weights and no difference 1 − P_ij, which would lose them.
    """
    P = P.copy()
    ends = [int(np.argmin(z[:, 0])), int(np.argmax(z[:, 0]))]
    chosen = np.where(P[:, ends[0]] > P[:, ends[1]], ends[0], ends[1])
    P[np.arange(len(P)), chosen] = 0.0
    return P.sum(axis=1)
