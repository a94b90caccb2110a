"""[P] Fig. 4: on the circle two clusters live long at β = 4, and three at β = 9."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from matplotlib.figure import Figure, SubFigure

from attnflow import initial, observe
from attnflow.figures.perspective.sweeps import BETAS, DELTA, SPEC, TIMES, run_sweep
from attnflow.figures.recipe import Picture, Recipe, Size, by_size
from attnflow.figures.scipy_solution import compare_with_scipy, sphere
from attnflow.plot.phase import draw_counts, draw_phase
from attnflow.plot.runs import animate, view_of
from attnflow.plot.style import INK
from attnflow.report import summarise
from attnflow.simulation import Fixed, Trajectory, simulate
from attnflow.systems import SA
from attnflow.verdicts import Quantity

N, STARTS, CLUSTER_TOL = 32, 64, 0.05
CLUSTERS_BY_BETA = {9.0: 3, 4.0: 2}
"""The two temperatures that the paper shows, and how many clusters it sees there."""

MOMENTS = (2.5, 18.0, 30.0)


def spec(size: Size) -> dict[str, Any]:
    """The sweep of the phase diagram."""
    return SPEC | {
        "title": "SA on the circle, n = 32",
        "realisations": by_size(size, 16, 512),
        "start": {"name": "sphere", "n": N, "d": 2},
        "times": TIMES | {"count": by_size(size, 61, 200)},
        "axes": {"beta": BETAS | {"count": by_size(size, 24, 90)}},
        "keep": SPEC["keep"] | {"clusters": {"observable": "cluster_count", "tol": CLUSTER_TOL}},
    }


def _make(size: Size) -> Picture:
    data = run_sweep(spec(size))
    figure = Figure(figsize=(8.6, 3.9), layout="constrained")
    left, right = figure.subfigures(1, 2, squeeze=False, width_ratios=(1.25, 1.5)).ravel()
    ax = left.subplots()
    image = draw_phase(ax, data, "together")
    draw_counts(ax, data, "clusters")
    for level in ax.texts:
        # the dashed lines pass behind the labels of the contours
        level.set_bbox({"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.6})
        level.set_zorder(4)
    ax.set(xlabel="time $t$", ylabel=r"inverse temperature $\beta$")
    label = rf"$P(\langle x_1, x_2\rangle \geq 1 - \delta)$, $n = {N}$, $\delta = {DELTA:g}$"
    left.colorbar(image, ax=ax, location="top", shrink=0.8, label=label)
    rows = right.subfigures(2, 1)
    numbers: dict[str, Any] = {"starts": STARTS}
    seen, runs = [], {}
    for row, (beta, expected) in zip(rows, CLUSTERS_BY_BETA.items(), strict=True):
        x0 = initial.sphere(N, 2, key=0, batch=STARTS)
        runs[beta] = _typical(simulate(SA(beta), x0, np.linspace(0, 30, 61), method=Fixed(0.1)))
        run, usual, counts = runs[beta]
        ax.axhline(beta, color=INK, lw=1, ls="--")
        ax.plot(MOMENTS, [beta] * len(MOMENTS), "o", ms=4, color=INK, clip_on=False, zorder=5)
        _circles(row, beta, run)
        numbers[f"β = {beta:g}"] = {"starts by their clusters at t = 18": counts}
        name = f"clusters at t = 18 from most starts, β = {beta:g}"
        seen += [Quantity(name, usual, "≥", expected), Quantity(name, usual, "≤", expected)]
        equation = f"(SA) at β = {beta:g}"
        seen.append(compare_with_scipy(equation, sphere(beta=beta), run.ts, run.xs, until=10.0))
    film = runs[9.0][0]
    return Picture(
        figure, numbers, tuple(seen), lambda path: animate(film, summarise(film), path=path)
    )


def _typical(batch: Trajectory) -> tuple[Trajectory, int, dict[int, int]]:
    """The first run that has as many clusters at t = 18 as most have, and how many have which."""
    moment = int(np.searchsorted(np.asarray(batch.ts), MOMENTS[1]))
    counts = [observe.clusters(x, CLUSTER_TOL).count for x in np.asarray(batch.xs)[:, moment]]
    many = Counter(counts)
    usual = many.most_common(1)[0][0]
    k = counts.index(usual)
    run = Trajectory(
        batch.ts,
        batch.xs[k],
        batch.final[k],
        masses=None,
        steps=batch.steps[k],
        rejected=batch.rejected[k],
        system=batch.system,
        method=batch.method,
    )
    return run, usual, dict(sorted(many.items()))


def _circles(row: SubFigure, beta: float, run: Trajectory) -> None:
    """The tokens at the moments of the paper, coloured by their cluster at the second."""
    moments = [int(np.searchsorted(np.asarray(run.ts), t)) for t in MOMENTS]
    labels = observe.clusters(run.xs[moments[1]], CLUSTER_TOL).labels
    view = view_of(run)
    for ax, i in zip(row.subplots(1, len(moments)), moments, strict=True):
        view.prepare(ax)
        view.draw(ax, i, labels, size=18.0)
        ax.set_title(f"$t = {float(run.ts[i]):g}$", fontsize=10)
    row.suptitle(rf"$\beta = {beta:g}$", fontsize=11)


RECIPE = Recipe(
    "P-fig4",
    "[P] Fig. 4",
    f"The phase diagram of {N} tokens on the circle (δ = {DELTA:g}) with contours of the number of "
    "clusters, and a run that does what most do: two clusters live long at β = 4, three at β = 9. "
    "Dots on the map are the moments that are shown.",
    _make,
)
