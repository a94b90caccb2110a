"""How many clusters appear first, against β: the fastest mode, and counts from runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int, Num
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from attnflow.checks import require_count, require_positive
from attnflow.errors import InputError
from attnflow.plot.style import FAINT, INK, PALETTE, save, style
from attnflow.theory import fastest_mode, linear_growth

Counts = Mapping[float, Num[np.ndarray, " runs"] | list[int]]
"""The counts of several runs, by β."""


def emergence_diagram(
    beta: Float[np.ndarray, " B"],
    *,
    modes: int = 8,
    sigma: float | int = 0.0,
    measured: Counts | None = None,
    path: str | Path | None = None,
) -> Figure:
    """Draw growth rates of the first modes of SA on the circle, and the fastest mode, against β.

    Measured counts are dots, one for each β and count. The area of a dot is the number of runs.

    Args:
        beta: values of β, all positive, shape (B,).
        modes: number of modes to draw.
        sigma: strength of the noise.
        measured: the first cluster counts of several runs for each β, as
            `meanfield.first_clusters` returns them.
        path: also write the picture to this file.
    """
    for extreme in (beta.min(initial=np.inf), beta.max(initial=0.0)):
        require_positive(float(extreme), "every beta")
    with style():
        figure = Figure(figsize=(5.6, 5.6), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True)
        growth_rates(above, beta, require_count(modes, "modes"), sigma)
        first_counts(below, beta, sigma)
        if measured:
            counted(below, measured)
        below.legend(loc="upper left")
        below.set_xlabel(r"inverse temperature $\beta$")
        if path is not None:
            save(figure, path)
    return figure


def growth_rates(
    ax: Axes, beta: Float[np.ndarray, " B"], modes: int, sigma: float | int = 0.0
) -> Float[np.ndarray, "B k"]:
    """Draw the growth rate of each mode against β, and return the rates.

    Args:
        ax: the axes.
        beta: values of β, shape (B,).
        modes: draw the modes 1, …, modes.
        sigma: strength of the noise.
    """
    k = np.arange(1, modes + 1)
    rates = linear_growth(beta[:, None], 2, k, True, sigma)
    for i in range(modes):
        colour = PALETTE[i % len(PALETTE)]
        ax.plot(beta, rates[:, i], color=colour)
        top = int(np.argmax(rates[:, i]))
        ax.annotate(
            f"{i + 1}",
            (beta[top], rates[top, i]),
            (0 if top else 6, 3),
            textcoords="offset points",
            color=colour,
            ha="center",
        )
    ax.axhline(0, color=FAINT, lw=0.6, zorder=0)
    ax.set(ylabel="growth rate of mode $k$ (SA)", xscale="log", xlim=(beta.min(), beta.max()))
    return rates


def first_counts(
    ax: Axes, beta: Float[np.ndarray, " B"], sigma: float | int = 0.0
) -> Int[np.ndarray, " B"]:
    """Draw the fastest mode against β, which is a staircase, and return it.

    Args:
        ax: the axes.
        beta: values of β, shape (B,).
        sigma: strength of the noise.
    """
    fastest = fastest_mode(beta, 2, True, sigma)
    ax.step(beta, fastest, where="post", color=INK, label="fastest mode")
    ax.plot(beta, np.sqrt(2 * beta), color=FAINT, ls=":", label=r"$\sqrt{2\beta}$")
    ax.set(ylabel="clusters that first appear", ylim=(0, None))
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    return fastest


def counted(ax: Axes, measured: Counts) -> None:
    """Draw a dot for each β and count, with the number of runs as its area."""
    label = "runs"
    for beta, counts in measured.items():
        values, runs = np.unique(np.asarray(counts), return_counts=True)
        if not len(values):
            raise InputError(f"measured has no counts for β = {beta:g}.")
        at, areas = np.full(len(values), float(beta)), 90 * runs / runs.sum()
        ax.scatter(at, values, s=areas, color=PALETTE[1], label=label, zorder=3)
        label = "_"
