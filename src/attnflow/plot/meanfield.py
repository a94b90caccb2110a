"""Pictures of the limit n → ∞: distances to it, closures, and which clusters appear first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Num
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

from attnflow.checks import require_count, require_positive
from attnflow.errors import InputError
from attnflow.meanfield import MeanFieldRun
from attnflow.meanfield.bbgky import Comparison, TwoPoint
from attnflow.plot.style import FAINT, INK, PALETTE, save, style
from attnflow.theory import fastest_mode, linear_growth

MAX_DISTANCE_SHOWN = 100.0
"""Upper end of the axis of distances."""


def convergence_diagram(runs: Mapping[str, MeanFieldRun], path: Path | None = None) -> Figure:
    """Draw W1(μ_n(t), μ(t)) against n at the last time, with Dobrushin's bound (dashed).

    Points are replicates, lines are their means, and grey lines have slope −1/2. No distance
    exceeds π (dotted); bounds far above it are outside the picture.

    Args:
        runs: the runs, by the name in the legend.
        path: also write the picture to this file.
    """
    with style():
        figure = Figure(figsize=(4.6, 3.6), layout="constrained")
        draw_distances(figure.subplots(), runs)
        if path is not None:
            save(figure, path)
    return figure


def draw_distances(
    ax: Axes, runs: Mapping[str, MeanFieldRun], top: float | int = MAX_DISTANCE_SHOWN
) -> None:
    """Draw the distances of `convergence_diagram`.

    Args:
        ax: the axes.
        runs: the runs, by the name in the legend.
        top: upper end of the axis of distances.
    """
    for (name, run), colour in zip(runs.items(), PALETTE, strict=False):
        n, w1 = run.sizes, run.w1[..., -1]
        ax.plot(np.repeat(n, w1.shape[1]), w1.ravel(), ".", ms=3, color=colour, alpha=0.4)
        ax.plot(n, w1.mean(axis=1), "o-", ms=4, color=colour, label=name)
        ax.plot(n, run.bound[..., -1].mean(axis=1), "--", lw=1, color=colour)
        ax.plot(n, w1[0].mean() * np.sqrt(n[0] / n), color=FAINT, lw=0.8, zorder=0)
    ax.set(xscale="log", yscale="log", xlabel="$n$", ylabel=r"$W_1(\mu_n(t), \mu(t))$")
    ax.axhline(np.pi, color=FAINT, lw=0.8, ls=":")
    said: Any = {"transform": ax.get_yaxis_transform(), "color": FAINT, "fontsize": 8}
    ax.text(0.99, np.pi, r"$\pi$, the largest distance", ha="right", va="bottom", **said)
    sizes = sorted({int(n) for run in runs.values() for n in run.sizes})
    ax.set_xticks(sizes, [_power_of_ten(n) for n in sizes])
    ax.xaxis.set_minor_locator(NullLocator())
    least = min(run.w1[..., -1].min() for run in runs.values())
    ax.set_ylim(least / 2, top)
    ax.legend(fontsize=9, loc="lower left")


def _power_of_ten(n: int) -> str:
    k = len(str(n)) - 1
    return f"$10^{{{k}}}$" if n == 10**k else str(n)


def closure_diagram(
    sampled: TwoPoint,
    closures: Mapping[str, Comparison],
    at: Sequence[float | int],
    path: Path | None = None,
) -> Figure:
    """Draw ψ of an ensemble and of closures at some times, and their distance over time.

    Args:
        sampled: the two-point function of the ensemble. The band is two standard errors.
        closures: the comparisons with closures, by the name in the legend.
        at: times at which to draw ψ; the nearest sampled ones are used.
        path: also write the picture to this file.
    """
    chosen = [int(np.argmin(np.abs(sampled.ts - t))) for t in at]
    half = sampled.psi.shape[1] // 2 + 1
    with style():
        width = 2.5 * len(chosen) + 3.4
        figure = Figure(figsize=(width, 3.3), layout="constrained")
        ratios = [*([1.0] * len(chosen)), 1.3]
        axes = figure.subplots(1, len(chosen) + 1, width_ratios=ratios)
        for ax, k in zip(axes[:-1], chosen, strict=True):
            _laws(ax, sampled, closures, k, half)
        axes[0].set_ylabel(r"$2\pi\psi$")
        last = axes[-1]
        for (name, found), colour in zip(closures.items(), PALETTE, strict=False):
            last.plot(found.ts, 100 * found.w1, color=colour, label=name)
        last.set(xlabel="time $t$", ylabel=r"$W_1$ to the ensemble (% of $\pi/2$)", ylim=(0, None))
        drawn = [*axes[0].lines[:1], *last.lines]
        names = ["ensemble", *closures]
        figure.legend(drawn, names, loc="outside lower center", ncols=len(names), fontsize=9)
        figure.suptitle(rf"$\beta = {sampled.beta:g}$, $n = {sampled.n}$")
        if path is not None:
            save(figure, path)
    return figure


def _laws(
    ax: Any, sampled: TwoPoint, closures: Mapping[str, Comparison], k: int, half: int
) -> None:
    x, unit = sampled.x[:half], 2 * np.pi
    psi, error = unit * sampled.psi[k, :half], 2 * unit * sampled.psi_error[k, :half]
    floor = 10.0**-2
    band = (np.maximum(psi - error, floor / 10), psi + error)
    ax.fill_between(x, *band, color=FAINT, alpha=0.6, lw=0)
    ax.plot(x, np.maximum(psi, floor / 10), color=INK, lw=1.0)
    for (_, found), colour in zip(closures.items(), PALETTE, strict=False):
        ax.plot(x, np.maximum(unit * found.psi[k, :half], floor / 10), color=colour, lw=1.1)
    ax.set(yscale="log", ylim=(floor, None), xlim=(0, np.pi), xlabel=r"$x = \theta_2 - \theta_1$")
    ax.set_title(f"$t = {sampled.ts[k]:.3g}$")
    ax.set_xticks([0, np.pi / 2, np.pi], ["0", r"$\pi/2$", r"$\pi$"])


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
