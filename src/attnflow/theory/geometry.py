"""Where rescaled tokens go, decided from the spectra of the weights: [E] Table 1."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from attnflow.checks import require_positive
from attnflow.errors import InputError
from attnflow.retired import RenamedAttribute
from attnflow.theory.hypotheses import Form, Hypothesis, Leading, equality, rounding
from attnflow.weights import Heads, Weight

Kind = Literal["origin", "polytope", "polytope x subspace", "hyperplanes", "none proven"]


@dataclass(frozen=True, eq=False)
class LimitGeometry:
    """What is proven about the limit of the tokens, and why.

    Attributes:
        kind: the shape of the limit, or "none proven".
        theorem: the theorem of [E] that says so, or None.
        why: the reasons in words: the hypotheses that hold, or those that do not.
        tol: the closeness at which inequalities were decided.
        quantities: the numbers that decided, relative to |V| and |QᵀK|.
        leading: the leading eigenvalue of V where it is real.
        direction: for hyperplanes, its eigenvector φ₁ of length 1, shape (d,).
        functional: for hyperplanes, the dual φ₁* with φ₁*(φ₁) = 1, shape (d,): its values at the
            tokens converge.
        projection: for a polytope × subspace, the projection onto the eigenspace F along G, shape
            (d, d).
    """

    kind: Kind
    theorem: str | None
    why: str
    tol: float
    quantities: dict[str, float] = field(default_factory=dict)
    leading: float | None = None
    direction: Float[np.ndarray, " d"] | None = None
    functional: Float[np.ndarray, " d"] | None = None
    projection: Float[np.ndarray, "d d"] | None = None

    tolerance = RenamedAttribute("tol")


def limit_geometry(
    Q: Weight = None, K: Weight = None, V: Weight = None, tol: float | int = 1e-9
) -> LimitGeometry:
    """The row of [E] Table 1 that applies to one head; the most specific one where several do.

    | kind | theorem | hypotheses (c > 0) |
    | --- | --- | --- |
    | origin | TC.5 | V = −cI, QᵀK a positive multiple of I (unscaled tokens) |
    | polytope | T3.1 | V = cI, QᵀK ≻ 0 (symmetric) |
    | polytope x subspace | T5.1 | QᵀK ≻ 0, λ₁ real, positive, multiple, semisimple, dominant |
    | hyperplanes | T4.1 | λ₁ real, positive, simple, dominant, <Qφ₁, Kφ₁> > 0 |

    Equalities must hold to rounding, inequalities for all matrices within `tol` of the given ones,
    relative to their norms; what lies between is "none proven". Entries count as exact, so pass
    float64. Runs on the host.

    Args:
        Q: query matrix, k × d, or a number c for c times the identity, which is the default.
        K: key matrix, like Q.
        V: value matrix, d × d, like Q.
        tol: how close matrices count as indistinguishable, relative to their norms.

    >>> limit_geometry().kind, limit_geometry(V=-1.0).kind
    ('polytope', 'origin')
    >>> found = limit_geometry(V=np.array([[1.0, 1.0], [0.0, 0.5]]))
    >>> found.kind, found.theorem, found.functional.tolist()
    ('hyperplanes', 'T4.1', [1.0, 2.0])
    >>> print(limit_geometry(V=np.diag([1.0, 1.0, -0.5])).kind)
    polytope x subspace
    """
    require_positive(tol, "tol")
    tol = float(tol)
    Q, K, V = _one_head(Q, K, V)
    d = len(V)
    form = Form.of(Q.T @ K, float(np.linalg.norm(Q, 2) * np.linalg.norm(K, 2)))
    norm = float(np.linalg.norm(V, 2))
    unit = V / norm if norm else V
    c = float(np.trace(unit)) / d
    scalar = float(np.linalg.norm(unit - c * np.eye(d), 2))
    lead = Leading.of(unit, tol)
    rows: list[tuple[Kind, str, list[Hypothesis]]] = [
        ("origin", "TC.5", [_multiple("V = −cI", -c, scalar, d, tol), form.identity(tol)]),
        (
            "polytope",
            "T3.1",
            [_multiple("V = cI", c, scalar, d, tol), *_positive_definite(form, tol)],
        ),
        ("polytope x subspace", "T5.1", [*_paranormal(lead, tol), *_positive_definite(form, tol)]),
        ("hyperplanes", "T4.1", good_triple(lead, form, tol)),
    ]
    quantities = _quantities(lead, form, scalar)
    value = None if abs(lead.value.imag) > tol else norm * lead.value.real
    for kind, theorem, hypotheses in rows:
        if all(hypothesis.holds for hypothesis in hypotheses):
            why = "; ".join(hypothesis.said for hypothesis in hypotheses) + f" ({theorem})."
            where = _where(kind, lead)
            return LimitGeometry(kind, theorem, why, tol, quantities, value, **where)
    return LimitGeometry("none proven", None, _why_not(rows, tol), tol, quantities, value)


def _one_head(Q: Weight, K: Weight, V: Weight) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The three matrices of a single head that does not change in time."""
    Heads(Q, K, V)  # refuses what no head can be made of
    if any(callable(W) for W in (Q, K, V)):
        raise InputError("limit_geometry is about weights that do not depend on time.")
    arrays = [np.asarray(1.0 if W is None else W, float) for W in (Q, K, V)]
    count = next((len(W) for W in arrays if W.ndim == 3), None)
    if count is not None:
        raise InputError(
            f"limit_geometry is about one head, but there is an axis of {count} heads: pass the "
            "matrices of one of them."
        )
    d = next((W.shape[1] for W in arrays if W.ndim), 1)
    Q, K, V = (W if W.ndim else W * np.eye(d) for W in arrays)
    return Q, K, V


def _multiple(form: str, c: float, deviation: float, d: int, tol: float) -> Hypothesis:
    said = f"{form} with c > 0 (it is {deviation:.1e} |V| away from c = {c:.3g} |V|)"
    return equality(deviation, tol, rounding(d), said) if c > 0 else Hypothesis(False, said)


def _positive_definite(form: Form, tol: float) -> list[Hypothesis]:
    return [form.symmetric(tol), form.definite(tol)]


def _paranormal(lead: Leading, tol: float) -> list[Hypothesis]:
    positive = lead.positive(tol)
    return [positive, lead.semisimple(tol), lead.dominant(tol)] if positive.holds else [positive]


def good_triple(lead: Leading, form: Form, tol: float) -> list[Hypothesis]:
    """The hypotheses of T4.1; only the first where that one fails, as φ₁ is then not defined.

    Args:
        lead: the leading eigenvalue of V.
        form: QᵀK.
        tol: how close matrices count as indistinguishable, relative to their norms.
    """
    positive = lead.positive(tol)
    if not positive.holds:
        return [positive]
    return [positive, lead.simple(), lead.dominant(tol), lead.seen_by(form, tol)]


def _where(kind: Kind, lead: Leading) -> dict[str, Any]:
    """What measures the limit."""
    if kind == "hyperplanes":
        phi, dual = lead.right[:, 0], lead.left[:, 0]
        sign = np.sign(phi[np.argmax(np.abs(phi))])
        return {"direction": sign * phi, "functional": sign * dual}
    if kind == "polytope x subspace":
        return {"projection": lead.right @ lead.left.T}
    return {}


def _quantities(lead: Leading, form: Form, scalar: float) -> dict[str, float]:
    numbers = {
        "distance of V from a multiple of the identity": scalar,
        "leading eigenvalue of V": lead.value.real,
        "imaginary part of the leading eigenvalue": abs(lead.value.imag),
        "multiplicity": float(lead.multiplicity),
        "defect": lead.defect,
        "largest other modulus": lead.other,
        "condition of the leading eigenvectors": lead.condition,
        "margin of the leading eigenvalue": lead.margin,
        "asymmetry of QᵀK": form.asymmetry,
        "smallest eigenvalue of the symmetric part of QᵀK": form.smallest,
        "distance of QᵀK from a multiple of the identity": form.from_multiple,
    }
    if lead.right.size:
        numbers["<Qφ₁, Kφ₁>"] = lead.along(form)
    return numbers


def _why_not(rows: list[tuple[Kind, str, list[Hypothesis]]], tol: float) -> str:
    def reason(kind: str, theorem: str, hypotheses: list[Hypothesis]) -> str:
        first = next(hypothesis for hypothesis in hypotheses if not hypothesis.holds)
        undecided = f", which cannot be decided at this tolerance ({tol:.0e})"
        return f"{kind} ({theorem}) needs that {first.said}{undecided * (first.holds is None)}"

    return "No row of Table 1 is proven to apply: " + "; ".join(reason(*row) for row in rows) + "."
