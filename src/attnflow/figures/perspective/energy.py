"""[P] §3.2: the energy climbs in steps while clusters merge, and falls when tokens repel."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnflow import initial, observe
from attnflow.figures.recipe import Picture, Recipe, Size, sized
from attnflow.plot.animation import animate
from attnflow.plot.overview import stage_of
from attnflow.plot.staircases import draw_plateaus, plateaus
from attnflow.plot.style import FAINT, PALETTE
from attnflow.report import summarise
from attnflow.simulate import Coarsening, Trajectory, simulate
from attnflow.systems import SA
from attnflow.theory import dirac_energy, sharp
from attnflow.theory.checks.base import Quantity

BETA, N, TOGETHER = 9.0, 32, 0.05
FEW = 8
"""A plateau has at most so many clusters: tokens that have not moved yet are none."""

ROUNDING = 1e-9
"""A step of E_β in the wrong direction that is smaller, in units of E_β, is one of rounding."""


def _run(V: float, end: float, saves: int) -> Trajectory:
    ts = np.concatenate([[0.0], np.geomspace(1e-2, end, saves - 1)])
    return simulate(SA(BETA, V=V), initial.sphere(N, 2, seed=1), ts, method=Coarsening())


def _energies(run: Trajectory) -> Float[np.ndarray, " T"]:
    return np.asarray(jax.lax.map(lambda x: observe.energy(x, BETA), run.xs))


def _make(size: Size) -> Picture:
    saves = sized(size, 161, 481)
    attracted, repelled = _run(1.0, 1e9, saves), _run(-1.0, 300.0, saves)
    up, down = _energies(attracted), _energies(repelled)
    ts = np.asarray(attracted.ts)
    counts = observe.cluster_history(attracted, TOGETHER).counts
    all_found = [p for p in plateaus(ts, counts) if p.clusters <= FEW]
    found = [p for p in all_found if p.clusters > 1]
    polygon = float(observe.energy(sharp("polygon", n=N), BETA))
    cluster = float(dirac_energy(BETA))
    figure = Figure(figsize=(8.2, 4.9), layout="constrained")
    below = figure.add_gridspec(2, 6, height_ratios=(1, 1.7))
    middles = [int(np.searchsorted(ts, np.sqrt(p.begin * p.end))) for p in found][-2:]
    labels = observe.clusters(attracted.xs[middles[0] if middles else -1], TOGETHER).labels
    for column, i in enumerate([0, *middles, -1][:4]):
        _tokens(figure.add_subplot(below[0, column]), attracted, i, labels)
    for column, i in ((4, 0), (5, -1)):
        _tokens(figure.add_subplot(below[0, column]), repelled, i, np.zeros(N, int))
    left, right = (figure.add_subplot(below[1, part]) for part in (slice(0, 4), slice(4, 6)))
    left.plot(ts[1:], up[1:], color=PALETTE[1])
    draw_plateaus(left, all_found)
    _limit(left, cluster, "one cluster")
    right.plot(np.asarray(repelled.ts)[1:], down[1:], color=PALETTE[1])
    _limit(right, polygon, f"regular {N}-gon")
    for ax, name in ((left, "$V = I$"), (right, "$V = -I$")):
        ax.set(xscale="log", xlabel=f"time $t$, {name}")
        ax.margins(x=0)
    left.set_ylabel(r"energy $E_\beta$")
    numbers = {"β": BETA, "n": N, "t": ts, "energy": up, "clusters": counts}
    numbers |= {"plateaus": found, "repelled": {"t": repelled.ts, "energy": down}}
    seen = (
        Quantity("least step of E_β, in units of it, V = I", _steps(up).min(), "≥", -ROUNDING),
        Quantity("largest step of E_β, in units of it, V = −I", _steps(down).max(), "≤", ROUNDING),
        Quantity("plateaus of half a decade and more", len(found), "≥", 2),
        Quantity("clusters at the end, V = I", counts[-1], "≤", 1),
        Quantity("|E_β / that of one cluster − 1|", abs(up[-1] / cluster - 1), "≤", 1e-6),
        Quantity("E_β / that of the polygon − 1, V = −I", abs(down[-1] / polygon - 1), "≤", 1e-4),
    )
    return Picture(
        figure, numbers, seen, lambda path: animate(attracted, summarise(attracted), path=path)
    )


def _steps(energies: Float[np.ndarray, " T"]) -> Float[np.ndarray, " S"]:
    return np.diff(energies) / energies[1:]


def _tokens(ax: Axes, run: Trajectory, i: int, labels: Any) -> None:
    stage = stage_of(run)
    stage.set(ax)
    stage.draw(ax, i % len(run.ts), labels, size=16)
    t = float(run.ts[i])
    exponent = int(np.floor(np.log10(t))) if t else 0
    said = f"{t:.3g}" if exponent < 4 else rf"{t / 10**exponent:.1f}\cdot 10^{{{exponent}}}"
    ax.set_title(f"$t = {said}$", fontsize=10)


def _limit(ax: Axes, value: float, name: str) -> None:
    ax.axhline(value, color=FAINT, lw=0.9, ls="--", zorder=0)
    right = ax.get_yaxis_transform()
    ax.text(0.02, value, name, transform=right, color=FAINT, va="bottom", fontsize=9)


RECIPE = Recipe(
    "P-energy",
    "[P] §3.2",
    "E_β increases along SA, in steps: it stands still on metastable plateaus (their numbers of "
    "clusters are written above) and jumps where clusters merge. With V = −I it decreases.",
    _make,
)
