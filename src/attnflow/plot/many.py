"""Pictures of the limit n → ∞: distances to it, and closures of the two-point function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from attnflow.meanfield import MeanFieldRun
from attnflow.meanfield.bbgky import Comparison, TwoPoint
from attnflow.plot.style import FAINT, INK, PALETTE, save, style

TALLEST = 100.0
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


def draw_distances(ax: Axes, runs: Mapping[str, MeanFieldRun], top: float | int = TALLEST) -> None:
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
