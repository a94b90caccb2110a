"""Spectra of a trained layer: eigenvalues of V_h, good triples, the form QᵀK."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Complex, Float

from attnflow.models.extracting import layer_heads
from attnflow.models.model import Model
from attnflow.theory.geometry import good_triple
from attnflow.theory.hypotheses import Form, Hypothesis, Leading

TOLERANCE = 1e-9
"""Tolerance of the good-triple test, as in `theory.limit_geometry`."""


@dataclass(frozen=True, eq=False)
class HeadSpectrum:
    """One head, [E] Fig. 10: the value matrix V (output matrix folded in) and the form M = QᵀK.

    S is the symmetric part of M. Its signature is (k, k) if the k rows of Q and the k rows of K
    are linearly independent, by Sylvester's law of inertia, so it does not tell heads apart;
    `balance` does.

    Attributes:
        eigenvalues: the k eigenvalues of V that need not vanish, where k is the number of rows of
            a head; the largest modulus first.
        radius: the spectral radius of V.
        good: whether (Q, K, V) is a good triple ([E] T4.1); None if that cannot be decided.
        why: the hypotheses that decided it.
        symmetric: the share `|S|²/|M|²` of S in the squared Frobenius norm of M: about ½ for
            random matrices, 1 for symmetric ones.
        positive: number of positive eigenvalues of S.
        negative: number of negative eigenvalues of S.
        balance: tr S over the sum of |λ| for its eigenvalues λ: from −1 (S ≼ 0, tokens attend to
            what is unlike them) to 1 (S ≽ 0).
    """

    eigenvalues: Complex[np.ndarray, " k"]
    radius: float
    good: bool | None
    why: str
    symmetric: float
    positive: int
    negative: int
    balance: float


@dataclass(frozen=True, eq=False)
class LayerSpectrum:
    """The spectra of a layer.

    Attributes:
        layer: the layer, from 0.
        heads: the spectrum of each head.
        total: the d eigenvalues of ΣV_h, the largest modulus first.
        total_radius: the spectral radius of ΣV_h.
    """

    layer: int
    heads: tuple[HeadSpectrum, ...]
    total: Complex[np.ndarray, " d"]
    total_radius: float


def spectra(model: Model, layer: int) -> LayerSpectrum:
    """The spectra of the heads of a layer, computed in float64 on the host.

    The rank of V_h is at most the number of rows of a head. All matrices are therefore restricted
    to the span of the rows and columns of V_h, Q_h and K_h: this only drops zero eigenvalues.
    """
    Q, K, V, O = head_matrices(model, layer)
    V_sum = np.einsum("hdk,hke->de", O, V)
    total = _sorted(np.linalg.eigvals(V_sum))
    heads = tuple(head_spectrum(*four) for four in zip(Q, K, V, O, strict=True))
    return LayerSpectrum(layer, heads, total, float(np.abs(total).max()))


def head_matrices(model: Model, layer: int) -> tuple[Float[np.ndarray, "H rows columns"], ...]:
    """Q, K, V and O of a layer in float64, without biases; heads are on the first axis."""
    own = layer_heads(model, layer)
    H, d = own.count or 1, own.dim
    shapes = {"Q": (H, -1, d), "K": (H, -1, d), "V": (H, -1, d), "O": (H, d, -1)}
    return tuple(_stack(getattr(own, name), shape) for name, shape in shapes.items())


def head_spectrum(
    Q: Float[np.ndarray, "k d"],
    K: Float[np.ndarray, "k d"],
    V: Float[np.ndarray, "v d"],
    O: Float[np.ndarray, "d v"],
) -> HeadSpectrum:
    """The spectrum of one head with value matrix O V and form QᵀK.

    Args:
        Q: queries, shape (k, d).
        K: keys, shape (k, d).
        V: values, shape (v, d).
        O: output matrix, shape (d, v).

    >>> found = head_spectrum(np.eye(2), np.eye(2), np.eye(2), np.diag([1.0, 0.5]))
    >>> found.eigenvalues.real.tolist(), found.good, found.symmetric, found.balance
    ([1.0, 0.5], True, 1.0, 1.0)
    """
    basis = _common_span(Q.T, K.T, V.T, O)
    Q, K, V, O = Q @ basis, K @ basis, V @ basis, basis.T @ O
    values = _sorted(np.linalg.eigvals(V @ O if len(V) < len(basis.T) else O @ V))
    M, W = Q.T @ K, O @ V
    hypotheses = _good_triple(Q, K, W)
    S = (M + M.T) / 2
    signs = np.linalg.eigvalsh(S)
    zero = 1e-9 * np.abs(signs).max(initial=0.0)
    return HeadSpectrum(
        eigenvalues=values,
        radius=float(np.abs(values).max()),
        good=_all_hold(hypotheses),
        why="; ".join(_said(hypothesis) for hypothesis in hypotheses),
        symmetric=float(np.sum(S * S) / np.sum(M * M)),
        positive=int(np.sum(signs > zero)),
        negative=int(np.sum(signs < -zero)),
        balance=float(np.sum(signs) / np.sum(np.abs(signs))),
    )


def _good_triple(Q: np.ndarray, K: np.ndarray, V: np.ndarray) -> list[Hypothesis]:
    """The hypotheses of T4.1, in units of |V| and |QᵀK|."""
    form = Form.of(Q.T @ K, float(np.linalg.norm(Q, 2) * np.linalg.norm(K, 2)))
    norm = float(np.linalg.norm(V, 2))
    return good_triple(Leading.of(V / norm if norm else V, TOLERANCE), form, TOLERANCE)


def _all_hold(hypotheses: list[Hypothesis]) -> bool | None:
    """True if all hold, False if one fails, else None: undecided."""
    found = [hypothesis.holds for hypothesis in hypotheses]
    return False if False in found else None if None in found else True


def _said(hypothesis: Hypothesis) -> str:
    word = {True: "holds", False: "fails", None: "cannot be decided"}[hypothesis.holds]
    return f"{hypothesis.said}: {word}"


def _stack(W: Any, shape: tuple[int, int, int]) -> np.ndarray:
    """A weight of each head in float64."""
    H, rows, columns = shape
    W = np.asarray(1.0 if W is None else W, float)
    W = W if W.ndim else W * np.eye(max(rows, columns))
    return np.broadcast_to(W, (H, *W.shape[-2:]))


def _common_span(*columns: Float[np.ndarray, "d k"]) -> Float[np.ndarray, "d r"]:
    """An orthonormal basis of the span of all columns, plus one more direction if there is one.

    The extra direction keeps a zero among the eigenvalues: a form that is definite only on the
    span is not definite.
    """
    together = np.concatenate(columns, axis=1)
    d, r = len(together), together.shape[1]
    if r >= d:
        return np.eye(d)
    more = np.random.default_rng(0).normal(size=(d, 1))
    return np.linalg.qr(np.concatenate([together, more], axis=1))[0]


def _sorted(values: np.ndarray) -> Complex[np.ndarray, " k"]:
    """The largest modulus first; conjugate pairs with the positive imaginary part first."""
    values = values.astype(complex)
    return values[np.lexsort((-values.imag, -values.real, -np.abs(values).round(12)))]
