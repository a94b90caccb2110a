"""Optimal transport on the circle, exactly: measures that are atoms or constant on cells.

Nothing but sorting and sums, so it serves any number of tokens; the line is a special case.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

FULL_TURN = 2 * np.pi
HALVINGS = 64
"""How often the bracket of the median is halved: a float has no more digits."""

GOLDEN_RATIO = (np.sqrt(5) - 1) / 2
SHIFT_TOL = 1e-14
"""The accuracy of the best shift, as a part of a whole turn."""


class Pieces(NamedTuple):
    """A probability on [0, 2π] as pieces in order, each spread evenly from `left` to `right`.

    An atom is a piece with left = right.
    """

    left: Float[np.ndarray, " k"]
    right: Float[np.ndarray, " k"]
    mass: Float[np.ndarray, " k"]


def atoms(theta: Float[np.ndarray, " n"], masses: Float[np.ndarray, " n"]) -> Pieces:
    """Tokens at the angles θ with their shares of the mass.

    >>> print(atoms(np.array([4.0, -6.0]), np.array([1.0, 3.0])).mass)
    [0.75 0.25]
    """
    kept = masses > 0
    theta, masses = np.mod(theta[kept], FULL_TURN), masses[kept]
    order = np.argsort(theta)
    return Pieces(theta[order], theta[order], masses[order] / masses.sum())


def cells(rho: Float[np.ndarray, " N"], start: float | int) -> Pieces:
    """The density that is ρ_i between `start + iΔ` and `start + (i+1)Δ`, Δ = 2π/N.

    >>> cells(np.ones(4), 0.1).left.round(3).tolist()
    [0.0, 0.1, 1.671, 3.242, 4.812]
    """
    width = FULL_TURN / len(rho)
    left = np.mod(start + width * np.arange(len(rho)), FULL_TURN)
    order = np.argsort(left)
    left, rho = left[order], rho[order]
    edges = np.concatenate([left, [FULL_TURN]])
    values = rho
    if left[0] > 0:  # The last cell goes on beyond a full turn.
        edges, values = np.concatenate([[0.0], edges]), np.concatenate([rho[-1:], rho])
    mass = values * np.diff(edges)
    kept = mass > 0
    return Pieces(edges[:-1][kept], edges[1:][kept], mass[kept] / mass.sum())


def first(mu: Pieces, nu: Pieces) -> float:
    """W1 along the circle: the least `∫ |F − G − s| dx` over s, F and G the distribution functions.

    The best s is the median of F − G on the circle.

    >>> one, half = np.ones(1), np.full(2, 0.5)
    >>> round(first(atoms(np.array([0.1]), one), atoms(np.array([0.0, 6.0]), half)), 4)
    0.2416
    """
    ends = np.unique(np.concatenate([[0.0, FULL_TURN], *mu[:2], *nu[:2]]))
    at_left = _below(mu, ends[:-1], "right") - _below(nu, ends[:-1], "right")
    at_right = _below(mu, ends[1:], "left") - _below(nu, ends[1:], "left")
    width = np.diff(ends)
    s = _median(np.minimum(at_left, at_right), np.maximum(at_left, at_right), width)
    a, b = np.abs(at_left - s), np.abs(at_right - s)
    same = (at_left - s) * (at_right - s) >= 0
    mean = np.where(same, (a + b) / 2, (a**2 + b**2) / np.where(same, 1, 2 * (a + b)))
    return float(np.sum(width * mean))


def second(mu: Pieces, nu: Pieces) -> float:
    """W2 along the circle: quantile q of μ goes to quantile q + α of ν, for the best shift α.

    The cost is convex in α (Delon, Salomon and Sobolevski 2010), and integrals between quantiles
    are exact.

    >>> one, half = np.ones(1), np.full(2, 0.5)
    >>> round(second(atoms(np.array([0.1]), one), atoms(np.array([0.0, 6.0]), half)), 4)
    0.28
    """
    a, b = -1.0, 1.0
    c, d = b - GOLDEN_RATIO * (b - a), a + GOLDEN_RATIO * (b - a)
    at_c, at_d = _shifted(mu, nu, c), _shifted(mu, nu, d)
    # SciPy's bounded search stops at √ε, where a minimum in a corner, as atoms have, is not near.
    while b - a > SHIFT_TOL:
        if at_c <= at_d:
            b, d, at_d = d, c, at_c
            c = b - GOLDEN_RATIO * (b - a)
            at_c = _shifted(mu, nu, c)
        else:
            a, c, at_c = c, d, at_d
            d = a + GOLDEN_RATIO * (b - a)
            at_d = _shifted(mu, nu, d)
    return float(np.sqrt(min(at_c, at_d, _shifted(mu, nu, 0.0))))


def line(
    x: Float[np.ndarray, " _"],
    y: Float[np.ndarray, " _"],
    m: Float[np.ndarray, " _"],
    w: Float[np.ndarray, " _"],
    p: int,
) -> float:
    """W_p on the line, from the quantiles of x and y with shares m and w.

    >>> half = np.full(2, 0.5)
    >>> line(np.array([0.0, 1.0]), np.array([5.0, 1.0]), half, half, 2) ** 2
    8.5
    """
    mu, nu = (
        Pieces(z[order], z[order], share[order])
        for z, share in ((x[m > 0], m[m > 0]), (y[w > 0], w[w > 0]))
        for order in [np.argsort(z)]
    )
    q = np.unique(np.clip(np.concatenate([[0.0, 1.0], mu.mass.cumsum(), nu.mass.cumsum()]), 0, 1))
    middle = (q[:-1] + q[1:]) / 2
    apart = np.abs(_quantile(mu, middle, middle) - _quantile(nu, middle, middle))
    return float(np.sum(np.diff(q) * apart**p) ** (1 / p))


def _below(mu: Pieces, x: np.ndarray, side: str) -> np.ndarray:
    """The mass of μ below x, with (`side="right"`) or without the atoms at x."""
    total = np.concatenate([[0.0], np.cumsum(mu.mass)])
    i = np.searchsorted(mu.left, x, side="right" if side == "right" else "left")
    last = np.maximum(i - 1, 0)
    length = mu.right[last] - mu.left[last]
    part = np.where(length > 0, (x - mu.left[last]) / np.where(length > 0, length, 1), 1.0)
    return np.where(i > 0, total[last] + mu.mass[last] * np.clip(part, 0, 1), 0.0)


def _median(low: np.ndarray, high: np.ndarray, width: np.ndarray) -> float:
    """The median of a function that is linear between low and high on intervals of these widths."""
    a, b = float(low.min()), float(high.max())
    rise = np.where(high > low, high - low, 1)
    for _ in range(HALVINGS):
        s = (a + b) / 2
        part = np.where(high > low, np.clip((s - low) / rise, 0, 1), low <= s)
        a, b = (a, s) if np.sum(width * part) >= np.pi else (s, b)
    return b


def _shifted(mu: Pieces, nu: Pieces, shift: float) -> float:
    """`∫ (F⁻¹(q) − G⁻¹(q + α))² dq`, with one turn more for each time that q + α passes 1."""
    inner = [np.cumsum(mu.mass)[:-1], np.mod(np.cumsum(nu.mass) - shift, 1.0)]
    q = np.unique(np.concatenate([[0.0, 1.0], *inner]))
    q = q[(q >= 0) & (q <= 1)]
    middle = (q[:-1] + q[1:]) / 2
    turns = np.floor(middle + shift)
    a, b = (
        _quantile(mu, ends, middle)
        - _quantile(nu, ends + shift - turns, middle + shift - turns)
        - FULL_TURN * turns
        for ends in (q[:-1], q[1:])
    )
    return float(np.sum(np.diff(q) * (a**2 + a * b + b**2) / 3))


def _quantile(mu: Pieces, q: np.ndarray, within: np.ndarray) -> np.ndarray:
    """F⁻¹(q), continued from the piece that holds the quantile `within`."""
    total = np.concatenate([[0.0], np.cumsum(mu.mass)])
    i = np.clip(np.searchsorted(total, within, side="right") - 1, 0, len(mu.mass) - 1)
    return mu.left[i] + (q - total[i]) / mu.mass[i] * (mu.right[i] - mu.left[i])
