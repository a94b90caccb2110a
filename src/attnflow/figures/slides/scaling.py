"""[S]: at how many places tokens end, and when, against their number, dimension and start."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnflow import initial
from attnflow.figures.recipe import Picture, Recipe, Size, by_size
from attnflow.figures.scipy_solution import COARSE_TOL, compare_with_scipy, rescaled
from attnflow.figures.slides.vertices import arrival, filled, vertices
from attnflow.plot.style import FAINT, PALETTE
from attnflow.simulation import Fixed, simulate
from attnflow.systems import RescaledAttention
from attnflow.verdicts import Quantity

END, SAVES, SCIPY_UNTIL = 12.0, 61, 1.0
"""Runs are compared with SciPy's early: without the copies and zeros that fill them up."""
STARTS: dict[str, Any] = {
    "cube": lambda n, d, **more: initial.cube(n, d, side=4.0, **more),
    "Gaussian": lambda n, d, **more: initial.gaussian(n, d, **more),
    "sphere": lambda n, d, **more: 2 * initial.sphere(n, d, **more),
    "clustered": lambda n, d, **more: 2 * initial.clustered(n, d, clusters=5, spread=0.2, **more),
}


def _make(size: Size) -> Picture:
    numbers_n = by_size(size, (8, 16, 32, 64), (10, 20, 40, 80, 160, 320))
    numbers_d = by_size(size, (1, 2, 3, 4, 6), (1, 2, 3, 4, 6, 8, 12))
    middle, draws = by_size(size, 32, 40), by_size(size, 6, 64)
    # Small runs share one shape, which is compiled once; large ones cost more than compiling.
    shape = by_size(size, (max(numbers_n), max(numbers_d)), None)
    by_n = {n: _measured("cube", n, 2, draws, shape) for n in numbers_n}
    by_d = {d: _measured("cube", middle, d, draws, shape) for d in numbers_d}
    by_start = {s: _measured(s, middle, 2, draws, shape) for s in STARTS}
    figure = Figure(figsize=(9.6, 5.0), layout="constrained")
    axes = figure.subplots(2, 3, sharex="col")
    settings = (("tokens $n$", by_n), ("dimension $d$", by_d), ("start", by_start))
    fixed = ("cube, $d = 2$", f"cube, $n = {middle}$", f"$n = {middle}$, $d = 2$")
    for column, (label, found) in enumerate(settings):
        for row, name in enumerate(("places where tokens end", "time to arrive")):
            _draw(axes[row, column], found, row)
            axes[row, 0].set_ylabel(name)
        axes[0, column].set_title(fixed[column])
        axes[1, column].set_xlabel(label)
    _mark_values(axes, numbers_n, numbers_d, middle)
    ends = {n: found.places.mean() for n, found in by_n.items()}
    # Who arrives at the very end had not settled.
    latest = max(one.times.max() for _, found in settings for one in found.values())
    off = max(one.off for _, found in settings for one in found.values())
    seen = (
        Quantity("places in the plane for any n, largest mean", max(ends.values()), "≤", 8),
        Quantity("places over tokens, largest n", ends[numbers_n[-1]] / numbers_n[-1], "≤", 0.5),
        Quantity("latest arrival, in parts of the run", latest / END, "≤", 0.9),
        Quantity("places on the line, at most", by_d[1].places.max(), "≤", 3),
        Quantity(
            "places, highest dimension over lowest",
            by_d[numbers_d[-1]].places.mean() / by_d[1].places.mean(),
            "≥",
            2,
        ),
        Quantity("off SciPy's solution of [E](4), over the way, in any run", off, "≤", COARSE_TOL),
    )
    numbers = {
        f"{label}: {held}": {
            key: {"places": one.places, "time to arrive": one.times} for key, one in found.items()
        }
        for (label, found), held in zip(settings, fixed, strict=True)
    }
    return Picture(figure, numbers, seen)


def _mark_values(axes: Any, numbers_n: tuple[int, ...], numbers_d: tuple[int, ...], n: int) -> None:
    """Ticks at the values that were run, and n where the dimension varies: no more places."""
    for ax in axes[:, 0]:
        ax.set_xscale("log", base=2)
        ax.set_xticks(numbers_n, [str(value) for value in numbers_n])
        ax.minorticks_off()
    for ax in axes[:, 1]:
        ax.set_xticks(numbers_d, [str(d) for d in numbers_d])
    among = axes[0, 1]
    among.axhline(n, color=FAINT, lw=0.9, ls=":")
    among.text(numbers_d[0], n, f"$n = {n}$", color=FAINT, va="bottom", fontsize=9)
    among.set_ylim(0, 1.2 * n)


class Measured(NamedTuple):
    """Places and times of arrival of several draws, and how far runs are from SciPy's."""

    places: Float[np.ndarray, " draws"]
    times: Float[np.ndarray, " draws"]
    off: float


def _measured(start: str, n: int, d: int, draws: int, shape: tuple[int, int] | None) -> Measured:
    """Places and times of arrival of several draws, in states that are filled up to a shape."""
    x0 = np.asarray(STARTS[start](n, d, key=n + d, batch=draws))
    wide, masses = filled(x0, *(shape or (n, d)))
    ts = np.linspace(0.0, END, SAVES)
    runs = simulate(RescaledAttention(), wide, ts, method=Fixed(0.1), masses=masses)
    zs = np.asarray(runs.xs)[..., :n, :d]
    off = compare_with_scipy("", rescaled(), ts, zs[0], until=SCIPY_UNTIL, most=4).value
    return Measured(
        np.array([float(vertices(z)) for z in zs]),
        np.array([arrival(ts, z) for z in zs]),
        float(off),
    )


def _draw(ax: Axes, found: dict[Any, Measured], which: int) -> None:
    """Means over draws with two standard errors."""
    values = [(one.places, one.times)[which] for one in found.values()]
    mean = [v.mean() for v in values]
    error = [2 * v.std(ddof=1) / np.sqrt(len(v)) for v in values]
    words = isinstance(next(iter(found)), str)
    ax.errorbar(
        list(found), mean, error, fmt="o" if words else "o-", ms=4, capsize=3, color=PALETTE[which]
    )
    ax.set_ylim(0, None)


RECIPE = Recipe(
    "S-scaling",
    "[S] outlook",
    "Rescaled attention with V = I: the number of places where tokens end, and the time they "
    "take, against the number of tokens, the dimension and the kind of start. A "
    "square has four corners: the many tokens that fill one end at about four places. "
    "For large d nearly every token is a vertex of the cloud, and places saturate at n (dotted). "
    "Bars are two standard errors.",
    _make,
)
