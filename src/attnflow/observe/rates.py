"""How fast something decays: rates with their error bars, by least squares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from jaxtyping import ArrayLike, Float, Real

from attnflow.checks import require_finite, require_positive
from attnflow.errors import InputError


@dataclass(frozen=True)
class Rate:
    """A fitted rate with its error, and the prefactor of the fit.

    With few values the standard error is itself uncertain. An error bar that holds the true rate
    with a given probability is an `interval`, which is wider than two standard errors.

    Attributes:
        rate: the rate.
        error: its standard error, of least squares.
        prefactor: the constant in front of the exponential.
        points: the number of values that were fitted.
    """

    rate: float
    error: float
    prefactor: float
    points: int

    def interval(self, confidence: float | int = 0.95) -> tuple[float, float]:
        """The ends of the interval that holds the true rate with probability `confidence`.

        It reaches t standard errors to each side, t being the quantile of Student's distribution
        with points − 2 degrees of freedom: at 95% 12.7 for 3 points, 3.18 for 5, 2.02 for 40.

        >>> low, high = Rate(rate=2.0, error=0.1, prefactor=1.0, points=5).interval()
        >>> round(low, 3), round(high, 3)
        (1.682, 2.318)
        """
        require_positive(confidence, "confidence")
        if confidence >= 1:
            raise InputError(f"confidence must be below 1, but it is {confidence!r}.")
        reach = float(scipy.special.stdtrit(self.points - 2, (1 + confidence) / 2)) * self.error
        return self.rate - reach, self.rate + reach


def exponential_rate(ts: Real[ArrayLike, " T"], values: Real[ArrayLike, " T"]) -> Rate:
    """The rate of `values ≈ prefactor · e^{−rate t}`, from a line through log values.

    The error is the standard error of least squares, and `interval()` the error bar of 95%: both
    assume that the logarithms scatter independently about a line, and mean nothing where they
    follow a curve. Fit the part of a decay that is exponential. Runs on the host.

    >>> ts = np.array([0.0, 1.0, 2.0, 3.0])
    >>> fit = exponential_rate(ts, 5 * np.exp(-2 * ts))
    >>> round(fit.rate, 6), round(fit.prefactor, 6)
    (2.0, 5.0)
    """
    ts, values = _data(ts, values)
    slope, error, intercept = _line(ts, np.log(values))
    return Rate(-slope, error, float(np.exp(intercept)), len(ts))


def doubly_exponential_rate(ts: Real[ArrayLike, " T"], values: Real[ArrayLike, " T"]) -> Rate:
    """The rate of `values ≈ exp(−c e^{rate t})`, from a line through log(−log values).

    The prefactor is c. This is how rows of P converge in T2.1. Values lie between 0 and 1. The
    error is that of `exponential_rate`. Runs on the host.

    >>> ts = np.array([0.0, 0.5, 1.0])
    >>> fit = doubly_exponential_rate(ts, np.exp(-3 * np.exp(2 * ts)))
    >>> round(fit.rate, 6), round(fit.prefactor, 6)
    (2.0, 3.0)
    """
    ts, values = _data(ts, values)
    if np.any(values >= 1):
        raise InputError(
            f"values must be below 1 for a doubly exponential decay, but the largest is "
            f"{values.max():g}: leave out the times before the decay."
        )
    slope, error, intercept = _line(ts, np.log(-np.log(values)))
    return Rate(slope, error, float(np.exp(intercept)), len(ts))


def _data(ts: ArrayLike, values: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    t, v = np.asarray(ts, dtype=float), np.asarray(values, dtype=float)
    if t.ndim != 1 or t.shape != v.shape:
        raise InputError(
            f"ts and values must be vectors of one length, but their shapes are {t.shape} and "
            f"{v.shape}."
        )
    require_finite(t, "ts")
    require_finite(v, "values")
    if len(np.unique(t)) < 3:
        raise InputError(f"ts must hold at least 3 times to fit a rate, but it holds {len(t)}.")
    if np.any(v <= 0):
        raise InputError(
            f"values must be positive to have a rate of decay, but the smallest is {v.min():g}: "
            "leave out the times at which it has come down to rounding."
        )
    return t, v


def _line(t: Float[np.ndarray, " T"], y: Float[np.ndarray, " T"]) -> tuple[float, float, float]:
    """Slope, its standard error, and the value at t = 0 of the line of least squares."""
    centre = t.mean()
    slope, middle = np.polyfit(t - centre, y, 1)
    scatter = np.sum((y - middle - slope * (t - centre)) ** 2) / (len(t) - 2)
    error = np.sqrt(scatter / np.sum((t - centre) ** 2))
    return float(slope), float(error), float(middle - slope * centre)
