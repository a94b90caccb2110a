"""What the spectra of V and of QᵀK say about the hypotheses of [E] Table 1.

Entries are taken as exact, and everything is measured relative to the norm of the matrix, so that
neither a positive factor nor a rotation changes whether a hypothesis holds. One that is an
inequality holds if it does so for every matrix within `tol` of the given one; one that is an
equality holds if the matrix is within rounding of it, and fails if it is further than `tol` away.
Between these it cannot be decided.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class Hypothesis:
    """A hypothesis with the numbers, and whether it holds (None: undecided at this tolerance)."""

    holds: bool | None
    said: str


def equality(deviation: float, tol: float, rounding: float, said: str) -> Hypothesis:
    """A hypothesis that holds where `deviation` is 0."""
    if deviation <= min(tol, rounding):
        return Hypothesis(True, said)
    return Hypothesis(False if deviation > tol else None, said)


def inequality(margin: float, tol: float, said: str) -> Hypothesis:
    """A hypothesis that holds where `margin` is positive."""
    if margin > tol:
        return Hypothesis(True, said)
    return Hypothesis(False if margin <= -tol or margin == 0 else None, said)


def rounding(d: int) -> float:
    """How far rounding may have moved a matrix that was computed, relative to its norm."""
    return 64 * math.sqrt(d) * EPS


@dataclass(frozen=True)
class Form:
    """`M = QᵀK` over its norm.

    Attributes:
        M: the matrix, shape (d, d).
        asymmetry: how far it is from being symmetric.
        smallest: the smallest eigenvalue of its symmetric part.
        multiple: the mean c of its diagonal.
        from_multiple: how far it is from cI.
        rounding: what its entries may owe to rounding.
    """

    M: Float[np.ndarray, "d d"]
    asymmetry: float
    smallest: float
    multiple: float
    from_multiple: float
    rounding: float

    @classmethod
    def of(cls, M: Float[np.ndarray, "d d"], factors: float) -> Form:
        """The form M; `factors` is |Q| |K|, which sets the rounding of their product."""
        norm = float(np.linalg.norm(M, 2))
        M = M / norm if norm else M
        c = float(np.trace(M)) / len(M)
        return cls(
            M=M,
            asymmetry=float(np.linalg.norm(M - M.T, 2)),
            smallest=float(np.linalg.eigvalsh((M + M.T) / 2)[0]),
            multiple=c,
            from_multiple=float(np.linalg.norm(M - c * np.eye(len(M)), 2)),
            rounding=rounding(len(M)) * (factors / norm if norm else 1.0),
        )

    def symmetric(self, tol: float) -> Hypothesis:
        """QᵀK = KᵀQ."""
        said = f"QᵀK is symmetric (its asymmetry is {self.asymmetry:.1e} |QᵀK|)"
        return equality(self.asymmetry, tol, self.rounding, said)

    def definite(self, tol: float) -> Hypothesis:
        """The symmetric part of QᵀK is positive definite."""
        said = (
            "QᵀK is positive definite (the smallest eigenvalue of its symmetric part is "
            f"{self.smallest:.3g} |QᵀK|)"
        )
        return inequality(self.smallest, max(tol, self.rounding), said)

    def identity(self, tol: float) -> Hypothesis:
        """QᵀK = cI with c > 0."""
        said = (
            f"QᵀK = cI with c > 0 (it is {self.from_multiple:.1e} |QᵀK| away from "
            f"c = {self.multiple:.3g} |QᵀK|)"
        )
        if self.multiple <= 0:
            return Hypothesis(False, said)
        return equality(self.from_multiple, tol, self.rounding, said)


@dataclass(frozen=True)
class Leading:
    """The leading eigenvalue λ of V over its norm: its multiplicity, separation and eigenspace.

    V maps F, the span of the eigenvectors, and a complement G to themselves. Both come from one
    decomposition of V − λ, as its null space and its range.

    Attributes:
        value: the eigenvalue λ.
        multiplicity: the number m of eigenvalues that are λ.
        other: the largest modulus of the other eigenvalues.
        defect: the largest of the m smallest singular values of V − λ.
        condition: grows as the angle between F and G shrinks; infinite if V is defective at λ.
        separation: the least of the other singular values of V − λ.
        margin: a lower bound, to first order, for how far V is from a matrix in which another
            eigenvalue reaches the modulus of λ.
        right: a basis of F, shape (d, m).
        left: a basis of the normals of G, shape (d, m), with leftᵀ right = 1.
    """

    value: complex
    multiplicity: int
    other: float
    defect: float
    condition: float
    separation: float
    margin: float
    right: Float[np.ndarray, "d m"]
    left: Float[np.ndarray, "d m"]

    @classmethod
    def of(cls, V: Float[np.ndarray, "d d"], tol: float) -> Leading:
        """Eigenvalues within `tol` of the leading one are taken for the same."""
        d = len(V)
        values = np.linalg.eigvals(V)
        foremost = values[np.abs(values) >= np.abs(values).max() - tol]
        first = complex(foremost[np.argmax(foremost.real)])
        same = np.abs(values - first.real) <= tol
        other = float(np.abs(values[~same]).max(initial=0.0))
        if abs(first.imag) > tol or first.real <= tol:
            nothing = np.zeros((d, 0))
            return cls(first, 1, other, 0.0, math.inf, 0.0, 0.0, nothing, nothing)
        m, value = int(same.sum()), float(values[same].real.mean())
        U, s, Wt = np.linalg.svd(V - value * np.eye(d))
        right, left, complement = Wt[d - m :].T, U[:, d - m :], U[:, : d - m]
        angle = left.T @ right
        cosine = float(np.linalg.svd(angle, compute_uv=False)[-1])
        condition = 1 / cosine if cosine > EPS else math.inf
        radius = stability_radius(complement.T @ V @ complement / value, tol)
        if math.isfinite(condition):
            left = left @ np.linalg.inv(angle).T
        return cls(
            value=complex(value),
            multiplicity=m,
            other=other,
            defect=float(s[d - m]),
            condition=condition,
            separation=float(s[d - m - 1]) if m < d else math.inf,
            margin=value * radius / (2 * condition),
            right=right,
            left=left,
        )

    def positive(self, tol: float) -> Hypothesis:
        """λ is real and positive."""
        shown = f"{self.value.real:.6g}"
        if self.value.imag:
            shown += f" ± {abs(self.value.imag):.2g}i"
        said = f"the leading eigenvalue of V is real and positive (it is {shown} |V|)"
        if abs(self.value.imag) > tol:
            return Hypothesis(False, said)
        return inequality(self.value.real, tol, said)

    def simple(self) -> Hypothesis:
        """No other eigenvalue is λ."""
        said = f"the leading eigenvalue is simple (its multiplicity is {self.multiplicity})"
        return Hypothesis(self.multiplicity == 1, said)

    def semisimple(self, tol: float) -> Hypothesis:
        """V is λ times the identity on a subspace of two dimensions or more."""
        said = (
            "the leading eigenvalue is multiple, and V = λ₁I on its eigenspace "
            f"(its multiplicity is {self.multiplicity}, and V is {self.defect:.1e} |V| away)"
        )
        if self.multiplicity == 1:
            return Hypothesis(False, said)
        return equality(self.defect, tol, rounding(len(self.right)), said)

    def dominant(self, tol: float) -> Hypothesis:
        """All other eigenvalues are smaller than λ in modulus."""
        said = (
            f"all other eigenvalues are below λ₁ in modulus (the largest is {self.other:.6g} "
            f"|V|; changing V by {self.margin:.1e} |V| does not change that)"
        )
        if self.margin > max(tol, rounding(len(self.right))):
            return Hypothesis(True, said)
        reached = self.other >= self.value.real - rounding(len(self.right))
        return Hypothesis(False if reached else None, said)

    def along(self, form: Form) -> float:
        """`<Qφ₁, Kφ₁>` for a first eigenvector φ₁ of length 1."""
        return float(self.right[:, 0] @ form.M @ self.right[:, 0])

    def seen_by(self, form: Form, tol: float) -> Hypothesis:
        """`<Qφ₁, Kφ₁> > 0`. Within `tol` of V, φ₁ may turn by tol over its separation."""
        value, doubt = self.along(form), max(tol, form.rounding)
        if not form.definite(tol).holds:
            doubt += 2 * tol * self.condition / max(self.separation, EPS)
        return inequality(value, doubt, f"<Qφ₁, Kφ₁> > 0 (it is {value:.3g} |QᵀK|)")


def stability_radius(A: Float[np.ndarray, "m m"], least: float) -> float:
    """A lower bound for how far A is from a matrix with an eigenvalue of modulus ≥ 1.

    From the solution of `X − AᵀXA = 1`, summed by doubling: `(A+E)ᵀX(A+E) ≺ X` for every E below
    it. It is 1 − ρ(A) for normal A, and 0 if it would be below `least` or ρ(A) ≥ 1.

    >>> round(stability_radius(np.diag([0.9, -0.5]), 1e-9), 6)
    0.1
    """
    if not len(A):
        return 1.0
    X, power = np.eye(len(A)), A
    while np.linalg.norm(power) > 1e-9:
        X = X + power.T @ X @ power
        if not np.trace(X) <= len(A) / least:
            return 0.0
        power = power @ power
    across, size = np.linalg.norm(A.T @ X, 2), np.linalg.norm(X, 2)
    return float(1 / (across + np.sqrt(across**2 + size)))
