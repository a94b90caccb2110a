"""How fast something decays: rates with their error bars, by least squares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import ArrayLike, Float, Real

from attnflow.checks import require_finite
from attnflow.errors import InputError


@dataclass(frozen=True)
class Rate:
    """A fitted rate, the standard error of it, and the prefactor of the fit."""

    rate: float
    error: float
    prefactor: float


def exponential_rate(ts: Real[ArrayLike, " T"], values: Real[ArrayLike, " T"]) -> Rate:
    """The rate of `values ≈ prefactor · e^{−rate t}`, from a line through log values.

    The error is the standard error of least squares: it believes that the logarithms scatter
    independently about a line, and says nothing where they follow a curve. Fit the part of a
    decay that is exponential. Runs on the host.

    >>> ts = np.array([0.0, 1.0, 2.0, 3.0])
    >>> fit = exponential_rate(ts, 5 * np.exp(-2 * ts))
    >>> round(fit.rate, 6), round(fit.prefactor, 6)
    (2.0, 5.0)
    """
    ts, values = _data(ts, values)
    slope, error, intercept = _line(ts, np.log(values))
    return Rate(-slope, error, float(np.exp(intercept)))


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
    return Rate(slope, error, float(np.exp(intercept)))


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
