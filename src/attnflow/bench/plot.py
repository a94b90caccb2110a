"""The picture of a benchmark: time against the number of tokens, for every method."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnflow.bench.result import Curve
from attnflow.plot.style import FAINT, INK, PALETTE, save, style


def growth(curves: list[Curve], path: Path) -> Figure:
    """Draw the curves on logarithmic axes, with their exponents in the legend.

    attnflow's curves are solid, the others are dashed. The slowest one is first in the legend.
    """
    with style():
        figure = Figure(figsize=(8.6, 4.8), layout="constrained")
        ax = figure.add_subplot()
        ax.set(xscale="log", yscale="log", xlabel="tokens $n$", ylabel="seconds for one drift")
        ax.grid(which="major", color=FAINT, lw=0.4, alpha=0.4)
        colours = iter((*PALETTE, INK) * len(curves))
        for curve in sorted(curves, key=lambda curve: not _ours(curve)):
            _line(ax, curve, next(colours))
        _slopes(ax, curves)
        _names(ax, curves)
        save(figure, path)
    return figure


def _ours(curve: Curve) -> bool:
    return curve.contender.startswith("attnflow")


def _label(curve: Curve) -> str:
    slope = "" if curve.exponent is None else f":  $n^{{{curve.exponent:.2f}}}$"
    return f"{curve.contender}, {curve.label.replace('S²', '$S^2$')}{slope}"


def _line(ax: Axes, curve: Curve, colour: str) -> None:
    look: dict[str, Any] = {"lw": 2.0, "marker": "o", "ms": 4.0, "zorder": 3.0}
    if not _ours(curve):
        look = {"lw": 1.2, "ls": "--", "marker": "s", "ms": 3.0, "zorder": 2.0}
    ax.plot(curve.sizes, curve.seconds, color=colour, label=_label(curve), **look)


def _slopes(ax: Axes, curves: list[Curve]) -> None:
    """Faint lines of slope 1 and 2 in the lower right corner, for comparison."""
    low = 0.5 * min(min(curve.seconds) for curve in curves)
    first, last = min(c.sizes[0] for c in curves), max(c.sizes[-1] for c in curves)
    for power, end in ((1, 0.9), (2, 0.75)):
        n = first * (last / first) ** np.array([0.5, end])
        times = low * (n / n[0]) ** power
        ax.plot(n, times, color=FAINT, lw=0.9, ls=":", zorder=1)
        name = "slope 1" if power == 1 else "slope 2"
        ax.annotate(name, (n[1], times[1]), (3, 0), textcoords="offset points", color=FAINT)


def _names(ax: Axes, curves: list[Curve]) -> None:
    """The legend at the right, in the order of the curves at the largest common size."""
    common = min(curve.sizes[-1] for curve in curves)
    at_common = {_label(c): np.interp(common, c.sizes, c.seconds) for c in curves}
    handles, labels = ax.get_legend_handles_labels()
    order = sorted(range(len(labels)), key=lambda i: -at_common[labels[i]])
    ax.legend(
        [handles[i] for i in order],
        [labels[i] for i in order],
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
        fontsize=10,
        labelspacing=0.8,
    )
