"""What all contenders compute, the velocity of SA, and the error of an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from attnflow import initial

SAMPLE = 64
"""Tokens on which an answer is compared with the exact one."""


@dataclass(frozen=True)
class DriftProblem:
    """The velocity `P⊥(Σ_j softmax(β <x_i, x_j>)_j x_j)` of n tokens on S^{d−1}.

    Tokens are drawn around three centres, so that velocities are of order 1 and a wrong answer
    cannot hide.

    Attributes:
        n: number of tokens.
        d: dimension of the tokens.
        beta: inverse temperature β.
        dtype: `"float32"` or `"float64"`.
        replicates: number of independent systems, computed at once.

    >>> DriftProblem(n=16, d=3, beta=4.0, dtype="float32").tokens().shape
    (1, 16, 3)
    """

    n: int
    d: int
    beta: float
    dtype: str
    replicates: int = 1

    def tokens(self) -> Float[np.ndarray, "replicates n d"]:
        """The tokens, the same at every call."""
        x = initial.clustered(
            self.n, self.d, spread=0.7, key=0, batch=self.replicates, dtype=self.dtype
        )
        return np.array(x)

    def error(self, x: Float[np.ndarray, "replicates n d"], answer: Any) -> float:
        """The largest error of an answer on a sample of tokens."""
        rng = np.random.default_rng(0)
        which = rng.integers(self.replicates, size=SAMPLE), rng.integers(self.n, size=SAMPLE)
        answers = np.asarray(answer, np.float64)[which]
        exact = [self._exact(x[r].astype(np.float64), int(i)) for r, i in zip(*which, strict=True)]
        return float(np.max(np.abs(answers - exact)))

    def _exact(self, x: Float[np.ndarray, "n d"], i: int) -> Float[np.ndarray, " d"]:
        """The velocity of token i, in float64 from the definition."""
        scores = self.beta * (x @ x[i])
        weights = np.exp(scores - scores.max())
        mean = (weights @ x) / weights.sum()
        return mean - x[i] * (x[i] @ mean) / (x[i] @ x[i])

    @property
    def where(self) -> str:
        """The sphere that the tokens are on."""
        return {2: "circle", 3: "S²"}.get(self.d, f"S^{self.d - 1}")

    def __str__(self) -> str:
        """The sizes in words."""
        many = f", {self.replicates} replicates" if self.replicates > 1 else ""
        return f"n = {self.n:,}, d = {self.d}{many}, β = {self.beta:g}, {self.dtype}"
