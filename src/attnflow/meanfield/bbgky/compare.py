"""How far a closure is from the ensemble, and until when it is near."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attnflow.errors import InputError
from attnflow.meanfield.bbgky.closures import Closure
from attnflow.meanfield.bbgky.ensemble import TwoPoint
from attnflow.meanfield.bbgky.flow import solve_pairs


@dataclass(frozen=True)
class Comparison:
    """A solution ψ of (8.1) beside the ensemble.

    Attributes:
        ts: the times, shape (T,).
        psi: ψ in M cells, shape (T, M).
        w1: W1 between both laws of θ₂ − θ₁, shape (T,), in units of π/2, the distance from the
            uniform law to one cluster.
        l1: `∫ |ψ − ψ'| dx`, shape (T,), at most 2; it also counts how wide a cell's cluster is.
    """

    ts: Float[np.ndarray, " T"]
    psi: Float[np.ndarray, "T M"]
    w1: Float[np.ndarray, " T"]
    l1: Float[np.ndarray, " T"]

    def until(self, level: float) -> float:
        """The last of the times up to which w1 has stayed at or below a level.

        >>> zeros = np.zeros((3, 4))
        >>> errors = np.array([0.0, 0.2, 0.1])
        >>> Comparison(np.array([0.0, 1.0, 2.0]), zeros, errors, errors).until(0.1)
        0.0
        """
        above = self.w1 > level
        if above[0]:
            raise InputError(f"level must be at least the first error, {self.w1[0]:g}.")
        last = int(np.argmax(above)) - 1 if above.any() else len(above) - 1
        return float(self.ts[last])


def compare(sampled: TwoPoint, closure: Closure) -> Comparison:
    """Solve (8.1) under a closure in the cells and to the times of an ensemble, and compare.

    >>> from attnflow.meanfield.bbgky import MolecularChaos, two_point
    >>> sampled = two_point(1.0, 4, [0.0, 3.0], replicates=32, cells=8)
    >>> compare(sampled, MolecularChaos()).w1.shape
    (2,)
    """
    cells = sampled.psi.shape[1]
    psi = solve_pairs(sampled.beta, sampled.n, closure, sampled.ts, cells=cells)
    return Comparison(sampled.ts, psi, _first(psi, sampled.psi), _total(psi, sampled.psi))


def _first(psi: np.ndarray, other: np.ndarray) -> np.ndarray:
    """W1 of even laws: that of |x| on [0, π], from the distribution functions at the edges."""
    half, width = psi.shape[1] // 2, 2 * np.pi / psi.shape[1]
    apart = (psi - other)[:, :half] * width
    apart[:, 1:] *= 2
    return np.abs(np.cumsum(apart, axis=1)).sum(axis=1) * width / (np.pi / 2)


def _total(psi: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.abs(psi - other).sum(axis=1) * (2 * np.pi / psi.shape[1])
