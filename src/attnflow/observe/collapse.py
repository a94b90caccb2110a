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

    `within` is the mean variance inside a class and `between` the variance of the C class means
    around their own mean; `ratio` is within / between, 0 after collapse. `cosines` (C, C) are those
    of the centred class means, in the order of the labels, and `angle_error` the largest distance
    of one from −1/(C − 1), that of a regular simplex.
    """

    within: float
    between: float
    ratio: float
    angle_error: float
    cosines: Float[np.ndarray, "C C"]


def neural_collapse(x: Real[ArrayLike, "n d"], labels: Int[ArrayLike, " n"]) -> NeuralCollapse:
    """The measures of neural collapse (Papyan, Han and Donoho 2020) for tokens with labels.

    A class mean that is at the mean of all has no direction: its cosines are NaN. Runs on the
    host: the number of classes is data.

    >>> corners = np.array([[1.0, 0.0], [-1.0, 0.0]])
    >>> found = neural_collapse(np.repeat(corners, 3, axis=0), np.array([0, 0, 0, 1, 1, 1]))
    >>> found.ratio, found.angle_error
    (0.0, 0.0)
    """
    require_state(x)
    require_finite(x, "x")
    x = np.asarray(x, dtype=float)
    own, sizes = _classes(labels, len(x))
    means = np.zeros((len(sizes), x.shape[1]))
    np.add.at(means, own, x)
    means /= sizes[:, None]
    squared = np.sum((x - means[own]) ** 2, axis=1)
    within = float(np.mean(np.bincount(own, squared) / sizes))
    centred = means - means.mean(axis=0)
    centred[np.linalg.norm(centred, axis=1) <= ROUNDING * np.abs(x).max()] = 0
    lengths = np.linalg.norm(centred, axis=1)
    between = float(np.mean(lengths**2))
    with np.errstate(divide="ignore", invalid="ignore"):
        directions = centred / lengths[:, None]
        ratio = float(np.divide(within, between))
    cosines = directions @ directions.T
    pairs = cosines[np.triu_indices(len(sizes), 1)]
    angle_error = float(np.max(np.abs(pairs + 1 / (len(sizes) - 1))))
    return NeuralCollapse(within, between, ratio, angle_error, cosines)


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
