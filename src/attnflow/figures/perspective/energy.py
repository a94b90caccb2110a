"""[P] §3.2: the energy climbs in steps while clusters merge, and falls when tokens repel."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec

from attnflow import initial, observe
from attnflow.figures.recipe import Picture, Recipe, Size, by_size
from attnflow.figures.scipy_solution import Head, compare_with_scipy, sphere
from attnflow.plot.runs import animate, view_of
from attnflow.plot.style import FAINT, PALETTE
from attnflow.plot.times import Plateau, draw_plateaus, plateaus
from attnflow.report import summarise
from attnflow.simulation import Coarsening, Trajectory, simulate
from attnflow.systems import SA
from attnflow.theory import dirac_energy, sharp
from attnflow.verdicts import Quantity

BETA, N, CLUSTER_TOL = 9.0, 32, 0.05
CLUSTER_ENERGY = dirac_energy(BETA)
MAX_PLATEAU_CLUSTERS = 8
"""A plateau has at most so many clusters: tokens that have not moved yet are none."""

ENERGY_ROUNDING = 1e-9
"""A step of E_β in the wrong direction that is smaller, in units of E_β, is one of rounding."""


SCIPY_UNTIL = 10.0
"""Until then runs are compared with SciPy's."""

END_TIMES = {1.0: 1e9, -1.0: 1e5}
"""When the runs end, for V = I and V = −I: neighbours of the polygon even out at a rate of 2e-4."""


def _run(V: float, saves: int) -> Trajectory:
    ts = np.concatenate([[0.0], np.geomspace(1e-2, END_TIMES[V], saves - 1)])
    return simulate(SA(BETA, V=V), initial.sphere(N, 2, key=1), ts, method=Coarsening())


def _energies(run: Trajectory) -> Float[np.ndarray, " T"]:
    return np.asarray(jax.lax.map(lambda x: observe.energy(x, BETA), run.xs))


def _make(size: Size) -> Picture:
    saves = by_size(size, 161, 481)
    attracted, repelled = _run(1.0, saves), _run(-1.0, saves)
    up, down = _energies(attracted), _energies(repelled)
    ts = np.asarray(attracted.ts)
    counts = observe.cluster_history(attracted, CLUSTER_TOL).counts
    found = [p for p in plateaus(ts, counts) if p.clusters <= MAX_PLATEAU_CLUSTERS]
    figure = Figure(figsize=(8.2, 4.9), layout="constrained")
    grid = figure.add_gridspec(2, 6, height_ratios=(1, 1.7))
    _moments(figure, grid, attracted, repelled, found)
    left, right = (figure.add_subplot(grid[1, part]) for part in (slice(0, 4), slice(4, 6)))
    _curve(left, ts, up, "$V = I$", (CLUSTER_ENERGY, "one cluster"))
    draw_plateaus(left, found)
    left.set_ylabel(r"energy $E_\beta$")
    polygon = float(observe.energy(sharp("polygon", n=N), BETA))
    _curve(right, np.asarray(repelled.ts), down, "$V = -I$", (polygon, f"regular {N}-gon"))
    figure.suptitle(rf"$n = {N}$, $d = 2$, $\beta = {BETA:g}$", fontsize=12)
    numbers = {"β": BETA, "n": N, "t": ts, "energy": up, "clusters": counts}
    numbers |= {"plateaus": found, "repelled": {"t": repelled.ts, "energy": down}}
    several = sum(plateau.clusters > 1 for plateau in found)
    seen = (
        Quantity(
            "least step of E_β, in units of it, V = I", _steps(up).min(), "≥", -ENERGY_ROUNDING
        ),
        Quantity(
            "largest step of E_β, in units of it, V = −I", _steps(down).max(), "≤", ENERGY_ROUNDING
        ),
        Quantity("plateaus of half a decade and more", several, "≥", 2),
        Quantity("clusters at the end, V = I", int(counts[-1]), "≤", 1),
        Quantity("|E_β / that of one cluster − 1|", abs(up[-1] / CLUSTER_ENERGY - 1), "≤", 1e-6),
        Quantity("|E_β / that of the polygon − 1|, V = −I", abs(down[-1] / polygon - 1), "≤", 1e-9),
        Quantity("largest gap / that of the polygon, V = −I", _gap(repelled.final), "≤", 1.01),
        *(_solves(run, V) for run, V in ((attracted, 1.0), (repelled, -1.0))),
    )
    return Picture(
        figure, numbers, seen, lambda path: animate(attracted, summarise(attracted), path=path)
    )


def _solves(run: Trajectory, V: float) -> Quantity:
    """Whether tokens go as (SA) says until they are in clusters."""
    field = sphere(Head(V=V), beta=BETA)
    return compare_with_scipy(f"(SA) with V = {V:g}", field, run.ts, run.xs, until=SCIPY_UNTIL)


def _moments(
    figure: Figure,
    grid: GridSpec,
    attracted: Trajectory,
    repelled: Trajectory,
    found: list[Plateau],
) -> None:
    """The tokens: at the start, on the last two plateaus and at the end; and when they repel."""
    ts = np.asarray(attracted.ts)
    middles = [int(np.searchsorted(ts, np.sqrt(p.begin * p.end))) for p in found if p.clusters > 1][
        -2:
    ]
    labels = observe.clusters(attracted.xs[middles[0] if middles else -1], CLUSTER_TOL).labels
    for column, i in enumerate([0, *middles, -1]):
        _tokens(figure.add_subplot(grid[0, column]), attracted, i, labels)
    for column, i in ((4, 0), (5, -1)):
        _tokens(figure.add_subplot(grid[0, column]), repelled, i, np.zeros(N, int))


def _steps(energies: Float[np.ndarray, " T"]) -> Float[np.ndarray, " S"]:
    return np.diff(energies) / energies[1:]


def _gap(x: Any) -> float:
    """The largest angle between neighbours, in units of 2π/n."""
    angles = np.sort(np.arctan2(*np.asarray(x).T))
    gaps = np.diff(angles, append=angles[0] + 2 * np.pi)
    return float(gaps.max() * N / (2 * np.pi))


def _tokens(ax: Axes, run: Trajectory, i: int, labels: Any) -> None:
    view = view_of(run)
    view.prepare(ax)
    view.draw(ax, i % len(run.ts), labels, size=16.0)
    t = float(run.ts[i])
    exponent = int(np.floor(np.log10(t))) if t else 0
    said = f"{t:.3g}" if exponent < 4 else rf"{t / 10**exponent:.1f}\cdot 10^{{{exponent}}}"
    ax.set_title(f"$t = {said}$", fontsize=10)


def _curve(
    ax: Axes,
    ts: Float[np.ndarray, " T"],
    energies: Float[np.ndarray, " T"],
    name: str,
    limit: tuple[float, str],
) -> None:
    """The energy against the logarithm of time, and the value that it tends to."""
    ax.plot(ts[1:], energies[1:], color=PALETTE[1])
    value, said = limit
    ax.axhline(value, color=FAINT, lw=0.9, ls="--", zorder=0)
    place = ax.get_yaxis_transform()
    ax.text(0.02, value, said, transform=place, color=FAINT, va="bottom", fontsize=9)
    ax.set(xscale="log", xlabel=f"time $t$, {name}")
    ax.margins(x=0)


RECIPE = Recipe(
    "P-energy",
    "[P] §3.2",
    "E_β increases along SA, in steps: it stands still on metastable plateaus (their numbers of "
    "clusters are written above) and jumps where clusters merge. With V = −I it decreases, and "
    "tokens end in a regular polygon.",
    _make,
)
