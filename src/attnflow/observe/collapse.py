"""Neural collapse: classes shrink to their means, and the means to a simplex."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import ArrayLike, Float, Int, Real

from attnflow.checks import require_finite, require_state
from attnflow.errors import InputError

ROUNDING = 100 * np.finfo(float).eps
"""Class means that differ by less, in parts of the size of tokens, are equal."""


@dataclass(frozen=True)
class NeuralCollapse:
    """How far tokens with labels have collapsed; every class counts the same.

    The measures `nc…` of Papyan, Han and Donoho (2020) are all 0 after collapse; the other numbers
    are plainer ones of our own. Here μ_c are the C class means around their own mean, `Σ_W` is the
    covariance of tokens around their class mean and `Σ_B = Σ_c μ_c μ_cᵀ / C`, with the
    pseudo-inverse Σ_B†.

    Attributes:
        nc1: variability, `Tr(Σ_W Σ_B†) / C`.
        nc2_norms: equal norms: the standard deviation of |μ_c| over their mean.
        nc2_angles: equal angles: the standard deviation of `cos(μ_c, μ_c')` over c ≠ c'.
        nc2_simplex: the angles of a simplex: the mean of `|cos(μ_c, μ_c') + 1/(C − 1)|`.
        nc3: self-duality with the classifier W: `|Wᵀ/|W| − M/|M||` in Frobenius norms, with the
            μ_c as the columns of M; None without a classifier.
        nc4: the nearest class mean: the share of tokens to which the classifier gives another
            label than that of the nearest mean; None without a classifier.
        within: `Tr Σ_W`.
        between: `Tr Σ_B`.
        ratio: within / between.
        angle_error: the largest distance of a cosine from −1/(C − 1).
        cosines: `cos(μ_c, μ_c')`, shape (C, C), in the order of the sorted labels.
    """

    nc1: float
    nc2_norms: float
    nc2_angles: float
    nc2_simplex: float
    nc3: float | None
    nc4: float | None
    within: float
    between: float
    ratio: float
    angle_error: float
    cosines: Float[np.ndarray, "C C"]


def neural_collapse(
    x: Real[ArrayLike, "n d"],
    labels: Int[ArrayLike, " n"],
    *,
    classifier: Real[ArrayLike, "C d"] | None = None,
    bias: Real[ArrayLike, " C"] | None = None,
) -> NeuralCollapse:
    """The measures NC1 to NC4 of neural collapse (Papyan, Han and Donoho 2020).

    The classifier gives token h the label c of the largest `<w_c, h> + b_c`. A class mean that
    equals the mean of all has no direction: its cosines, and what follows from them, are NaN. NC1
    is NaN where all class means are one point.
    Runs on the host: the number of classes is data.

    Args:
        x: tokens, shape (n, d).
        labels: the class of each token, shape (n,), any integers; at least two classes.
        classifier: the rows w_c, shape (C, d), in the order of the sorted labels.
        bias: the b_c, shape (C,), 0 by default; only with a classifier.

    >>> corners = np.array([[1.0, 0.0], [-1.0, 0.0]])
    >>> x, labels = np.repeat(corners, 3, axis=0), np.array([0, 0, 0, 1, 1, 1])
    >>> found = neural_collapse(x, labels, classifier=2 * corners)
    >>> found.nc1, found.nc2_norms, found.nc2_simplex, found.nc3, found.nc4
    (0.0, 0.0, 0.0, 0.0, 0.0)
    """
    require_state(x)
    require_finite(x, "x")
    x = np.asarray(x, dtype=float)
    own, sizes = _classes(labels, len(x))
    C = len(sizes)
    means = np.zeros((C, x.shape[1]))
    np.add.at(means, own, x)
    means /= sizes[:, None]
    share = 1 / (C * sizes[own])
    apart = x - means[own]
    within = float(share @ np.sum(apart**2, axis=1))
    centred = means - means.mean(axis=0)
    rounding = ROUNDING * np.abs(x).max()
    centred[np.linalg.norm(centred, axis=1) <= rounding] = 0
    lengths = np.linalg.norm(centred, axis=1)
    between = float(np.mean(lengths**2))
    with np.errstate(divide="ignore", invalid="ignore"):
        directions = centred / lengths[:, None]
        ratio = float(np.divide(within, between))
        norms = float(np.std(lengths) / np.mean(lengths))
    cosines = directions @ directions.T
    pairs = cosines[np.triu_indices(C, 1)]
    from_simplex = np.abs(pairs + 1 / (C - 1))
    nc3, nc4 = _classified(x, means, centred, classifier, bias)
    return NeuralCollapse(
        nc1=_variability(share, apart, centred, rounding),
        nc2_norms=norms,
        nc2_angles=float(np.std(pairs)),
        nc2_simplex=float(np.mean(from_simplex)),
        nc3=nc3,
        nc4=nc4,
        within=within,
        between=between,
        ratio=ratio,
        angle_error=float(np.max(from_simplex)),
        cosines=cosines,
    )


def _variability(
    share: Float[np.ndarray, " n"],
    apart: Float[np.ndarray, "n d"],
    centred: Float[np.ndarray, "C d"],
    rounding: float,
) -> float:
    """NC1, as the mean of `|(h − μ_c) M†|²`: no d × d matrix is made."""
    _, s, Vt = np.linalg.svd(centred, full_matrices=False)
    there = s > rounding * np.sqrt(len(centred))
    if not there.any():
        return float("nan")
    return float(share @ np.sum((apart @ Vt[there].T / s[there]) ** 2, axis=1))


def _classified(
    x: Float[np.ndarray, "n d"],
    means: Float[np.ndarray, "C d"],
    centred: Float[np.ndarray, "C d"],
    classifier: ArrayLike | None,
    bias: ArrayLike | None,
) -> tuple[float | None, float | None]:
    """NC3 and NC4, where there is a classifier."""
    if classifier is None:
        if bias is not None:
            raise InputError("bias needs a classifier, which is None.")
        return None, None
    W = np.asarray(classifier, dtype=float)
    b = np.zeros(len(means)) if bias is None else np.asarray(bias, dtype=float)
    for name, given, shape in (("classifier", W, means.shape), ("bias", b, means.shape[:1])):
        if given.shape != shape:
            raise InputError(
                f"{name} must have shape {shape}, one row for each class in the order of the "
                f"labels, but its shape is {given.shape}."
            )
        require_finite(given, name)
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = np.linalg.norm(W / np.linalg.norm(W) - centred / np.linalg.norm(centred))
    nearest = np.argmin(np.linalg.norm(x[:, None] - means, axis=-1), axis=1)
    return float(gap), float(np.mean(np.argmax(x @ W.T + b, axis=1) != nearest))


def _classes(labels: ArrayLike, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The class of each token as 0, …, C − 1, and the sizes of the classes."""
    labels = np.asarray(labels)
    if labels.shape != (n,):
        raise InputError(
            f"labels must have shape ({n},), one for each token, but its shape is {labels.shape}."
        )
    names, own, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    if len(names) < 2:
        raise InputError(f"labels must name at least 2 classes, but all are {names[0]}.")
    return own, sizes
