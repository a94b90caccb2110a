"""[S]: the master equation, attention frozen at its start, against the true flow."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnflow import initial, observe
from attnflow.figures.recipe import Picture, Recipe, Size, by_size
from attnflow.figures.scipy_solution import compare_with_scipy, pure
from attnflow.plot.style import PALETTE
from attnflow.simulation import Fixed, simulate
from attnflow.systems import PureAttention
from attnflow.theory import MasterEquation
from attnflow.verdicts import Quantity

SIDES = (1.0, 1.5, 2.0, 3.0, 4.0)
"""Sides of the cubes of starts; scores grow with their squares."""

SIDE_SHOWN = 2.0
GATHERED_TIME = 100.0
"""By then frozen attention has gathered its tokens: at the rate 1 − λ₂ of its matrix."""
TIMES = np.linspace(0.0, 6.0, 61)
PARTED_TOL = 0.1
"""Flow and prediction have parted when a token is off by this part of the largest."""


def _make(size: Size) -> Picture:
    n, draws = by_size(size, 12, 40), by_size(size, 6, 32)
    system = PureAttention()
    x0 = np.asarray(initial.cube(n, 2, side=1.0, key=0, batch=draws))
    away: dict[float, np.ndarray] = {}
    parted: dict[float, np.ndarray] = {}
    for side in SIDES:
        xs = np.asarray(simulate(system, side * x0, TIMES, method=Fixed(0.05)).xs)
        frozen = np.array([MasterEquation(system, side * x).tokens(TIMES) for x in x0])
        away[side] = _away(xs, frozen)
        parted[side] = _first_above(away[side])
        if side == SIDE_SHOWN:
            flow, predicted = xs[0], frozen[0]
    figure = Figure(figsize=(9.6, 3.4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    _draw_paths(left, flow, predicted)
    for side, colour in zip(SIDES, PALETTE, strict=False):
        middle.plot(TIMES, np.median(away[side], axis=0), color=colour, label=f"side {side:g}")
        middle.fill_between(
            TIMES, *np.quantile(away[side], (0.1, 0.9), axis=0), color=colour, alpha=0.2, lw=0
        )
    middle.set(xlabel="time $t$", ylabel="distance / largest token", ylim=(0, None))
    middle.legend(fontsize=9)
    mean = np.array([parted[side].mean() for side in SIDES])
    error = np.array([parted[side].std(ddof=1) / np.sqrt(draws) for side in SIDES])
    right.errorbar(SIDES, mean, 2 * error, fmt="o-", ms=4, capsize=3, color=PALETTE[0])
    right.set(
        xscale="log",
        yscale="log",
        xlabel="side of the start",
        ylabel=f"time to part by {PARTED_TOL:g}",
    )
    right.set_xticks(SIDES, [f"{side:g}" for side in SIDES])
    right.set_yticks([0.5, 1, 2, 4], ["0.5", "1", "2", "4"])
    right.minorticks_off()
    in_the_end = MasterEquation(system, SIDE_SHOWN * x0[0]).tokens(np.array([GATHERED_TIME]))[-1]
    groups = [_groups(x) for x in (flow[-1], in_the_end)]
    seen = (
        Quantity(
            "distance at the first step, at most",
            max(a[:, 1].max() for a in away.values()),
            "≤",
            PARTED_TOL,
        ),
        Quantity("clusters of the flow at the end", groups[0], "≥", 2),
        Quantity(f"clusters of the frozen prediction at t = {GATHERED_TIME:g}", groups[1], "≤", 1),
        Quantity("time to part, smallest start over largest", mean[0] / mean[-1], "≥", 2),
        compare_with_scipy("[E](1)", pure(), TIMES, flow, until=3.0),
    )
    numbers = {
        "side": SIDES,
        "time to part": parted,
        "mean": mean,
        "standard error": error,
        "clusters of flow and prediction": groups,
    }
    return Picture(figure, numbers, seen)


def _away(xs: np.ndarray, frozen: np.ndarray) -> Float[np.ndarray, "draws T"]:
    """The largest distance of a token from its prediction, relative to the largest token."""
    gaps = np.linalg.norm(xs - frozen, axis=-1).max(axis=-1)
    return gaps / np.linalg.norm(xs, axis=-1).max(axis=-1)


def _first_above(away: Float[np.ndarray, "draws T"]) -> Float[np.ndarray, " draws"]:
    """When each draw has parted, between save times by a line; NaN where it has not."""
    times = []
    for one in away:
        i = int(np.argmax(one > PARTED_TOL))
        parted = np.interp(PARTED_TOL, one[i - 1 : i + 1], TIMES[i - 1 : i + 1]) if i else np.nan
        times.append(parted)
    return np.array(times)


def _groups(x: Float[np.ndarray, "n d"]) -> int:
    """Clusters of tokens in units of the largest."""
    return observe.clusters(x / np.linalg.norm(x, axis=1).max(), 0.05).count


def _draw_paths(ax: Axes, flow: np.ndarray, predicted: np.ndarray) -> None:
    """Both flows, with their growth e^t taken out."""
    shrink = np.exp(-TIMES)[:, None, None]
    for xs, colour, style, name in (
        (predicted, PALETTE[1], "--", "frozen attention"),
        (flow, PALETTE[0], "-", "true flow"),
    ):
        z = xs * shrink
        ax.plot(z[..., 0], z[..., 1], style, color=colour, lw=1, alpha=0.6)
        ax.plot(*z[-1].T, "o", ms=5, color=colour, mec="white", mew=0.5, label=name)
    ax.plot(*flow[0].T, ".", ms=3, color="black")
    ax.set_aspect("equal")
    ax.set(xlabel="$e^{-t}x_i(t)$, first coordinate", ylabel="second coordinate")
    ax.legend(fontsize=9, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)


RECIPE = Recipe(
    "S-master",
    "[S] master equation",
    "Attention frozen at its start has a closed form. The flow follows it for a time that is the "
    "shorter the farther tokens are spread, and then goes elsewhere: the prediction gathers all "
    "tokens in one cluster in the end, the flow in several.",
    _make,
)
