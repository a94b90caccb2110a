"""Theorems about random draws alone: Wendel's hemisphere, Ginibre's leading eigenvalue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from attnflow import initial, weights
from attnflow.theory.checks.base import Check, Draw, Trial, keys
from attnflow.theory.wendel import wendel
from attnflow.verdicts import Quantity

GINIBRE_SHARE = 0.14
"""The share of good matrices that [E] §4 reports for d = 128."""


class Wendel(Check):
    """T6.7: how often uniform tokens share a hemisphere."""

    id = "T6.7"
    source = "[P] Theorem 6.7 (Wendel)"
    hypothesis = "n independent uniform tokens on S^{d−1}"
    conclusion = "P(some open hemisphere has them all) = 2^{−(n−1)} Σ_{k<d} C(n−1, k)"
    settings = "20,000 draws for each n, d; deviation in standard errors"
    count = 20_000

    def trials(self, key: int) -> Iterator[Trial]:
        """Uniform tokens (count, n, d)."""
        for n, d in ((4, 2), (8, 2), (6, 3), (7, 4)):
            draw = initial.sphere(n, d, key=keys(key, n)[1], batch=(self.count,))
            yield Trial({"n": n, "d": d, "key": key}, x0=np.asarray(draw))

    def judge(self, trial: Trial) -> Sequence[Draw]:
        """The fraction in a hemisphere, against Wendel's."""
        p = wendel(trial.about["n"], trial.about["d"])
        return [Draw(trial.about, (deviation(share_hemisphere(trial.x0).mean(), p, self.count),))]


def share_hemisphere(x: np.ndarray) -> np.ndarray:
    """Whether each set of tokens in general position lies in an open hemisphere.

    If one does, some hemisphere has d − 1 of the tokens on its edge and the others inside.
    """
    count, n, d = x.shape
    found = np.zeros(count, bool)
    for edge in combinations(range(n), d - 1):
        others = [i for i in range(n) if i not in edge]
        sides = _normal(x[:, edge]) @ np.swapaxes(x[:, others], 1, 2)
        found |= (sides > 0).all(axis=(1, 2)) | (sides < 0).all(axis=(1, 2))
    return found


def _normal(edge: np.ndarray) -> np.ndarray:
    """A vector (count, 1, d) across d − 1 vectors (count, d − 1, d), by cofactors."""
    d = edge.shape[-1]
    minors = [np.delete(edge, k, axis=-1) for k in range(d)]
    signs = [(-1) ** k * np.linalg.det(minor) for k, minor in enumerate(minors)]
    return np.stack(signs, axis=-1)[:, None, :]


class Ginibre(Check):
    """About 14% of real Ginibre matrices have a leading eigenvalue that is real and positive."""

    id = "Gin"
    source = "[E] §4"
    hypothesis = "V real Ginibre, d = 128"
    conclusion = "λ₁ is real, positive and simple with probability about 0.14"
    settings = "400 draws; deviation from 0.14 in standard errors"
    count = 400

    def trials(self, key: int) -> Iterator[Trial]:
        """Matrices with Gaussian entries."""
        draw = weights.ginibre(128, heads=self.count, key=keys(key, 0)[0])
        yield Trial({"d": 128, "draws": self.count, "key": key}, data=np.asarray(draw))

    def judge(self, trial: Trial) -> Sequence[Draw]:
        """The share of matrices whose eigenvalue of largest modulus is real and positive."""
        good = leads_positive(np.linalg.eigvals(trial.data))
        return [Draw(trial.about, (deviation(good.mean(), GINIBRE_SHARE, len(good)),))]


def leads_positive(eigenvalues: np.ndarray) -> np.ndarray:
    """Whether the eigenvalue of largest modulus is real and positive, matrix by matrix.

    >>> print(leads_positive(np.array([[2.0, -1.0], [1.0, -2.0]])))
    [ True False]
    """
    at = np.argmax(np.abs(eigenvalues), axis=1)
    leading = eigenvalues[np.arange(len(at)), at]
    return (leading.imag == 0) & (leading.real > 0)


def deviation(share: float, p: float, count: int) -> Quantity:
    """How many standard errors a measured share is from its probability.

    Args:
        share: the measured share.
        p: the probability.
        count: the number of draws.
    """
    error = np.sqrt(p * (1 - p) / count)
    return Quantity(f"|share − {p:.4g}| / standard error", abs(share - p) / error, "≤", 4.0)
