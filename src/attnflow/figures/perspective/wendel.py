"""[P] T6.7: how often uniform tokens share a hemisphere, by Wendel's formula and by counting."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from attnflow.figures.recipe import Picture, Recipe, Size, by_size
from attnflow.plot.style import FAINT, PALETTE
from attnflow.theory import in_hemisphere, wendel
from attnflow.theory.checks.probability import share_hemisphere
from attnflow.verdicts import Quantity

MAX_DIM_COUNTING = 4
"""Up to this dimension all hemispheres are tried; above, a linear program decides."""

TOKENS: dict[int, tuple[int, ...]] = {
    2: (2, 3, 4, 5, 6, 7, 8, 10, 12),
    3: (3, 4, 5, 6, 7, 8, 9, 10, 12, 14),
    4: (4, 5, 6, 7, 8, 9, 10, 12),
    8: (8, 10, 12, 14, 16, 18, 20, 24),
}
"""Numbers of tokens that are drawn, by dimension."""


def _make(size: Size) -> Picture:
    draws = {
        d: by_size(size, 2000, 20_000) if d <= MAX_DIM_COUNTING else by_size(size, 100, 4000)
        for d in TOKENS
    }
    figure = Figure(figsize=(5.2, 3.6), layout="constrained")
    ax = figure.subplots()
    ax.axhline(0.5, color=FAINT, lw=0.8, ls=":", zorder=0)
    numbers, worst = {}, 0.0
    for (d, sizes), colour in zip(TOKENS.items(), PALETTE, strict=False):
        line = np.arange(1, 31)
        ax.plot(line, [wendel(int(n), d) for n in line], color=colour, lw=1.2, label=f"$d = {d}$")
        shares = np.array([_share(n, d, draws[d]) for n in sizes])
        exact = np.array([wendel(n, d) for n in sizes])
        error = np.sqrt(exact * (1 - exact) / draws[d])
        ax.errorbar(sizes, shares, 2 * error, fmt="o", ms=3.5, color=colour, lw=1, capsize=2)
        ax.plot(2 * d, 0.5, "s", ms=7, mfc="none", mec=colour)
        sure = error == 0
        off = np.abs(shares - exact) / np.where(sure, 1.0, error)
        # where the probability is 1 a single draw outside a hemisphere is too many
        off = np.where(sure & (shares != exact), np.inf, off)
        worst = max(worst, float(off.max()))
        numbers[f"d = {d}"] = {
            "n": sizes,
            "counted": shares,
            "Wendel": exact,
            "standard error": error,
            "draws": draws[d],
        }
    ax.set(xlabel="tokens $n$", ylabel="probability of a hemisphere", xlim=(1, 30))
    ax.set_ylim(0, 1.03)
    ax.legend(title="dimension")
    seen = (Quantity("deviation from Wendel's probability, in standard errors", worst, "≤", 4.0),)
    return Picture(figure, numbers, seen)


def _share(n: int, d: int, count: int) -> float:
    """The share of draws of n uniform tokens that lie in a hemisphere."""
    x = np.random.default_rng([n, d]).normal(size=(count, n, d))
    found = share_hemisphere(x) if d <= MAX_DIM_COUNTING else in_hemisphere(x)
    return float(found.mean())


RECIPE = Recipe(
    "P-wendel",
    "[P] Theorem 6.7",
    "The probability that n uniform tokens lie in one hemisphere: drawn tokens (dots, two standard "
    "errors) beside Wendel's formula (lines), which is 1/2 at n = 2d (squares).",
    _make,
)
