"""[E] Figs. 1 and 5: tokens of rescaled attention gather at the vertices of a convex polytope."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from attnflow import initial, observe
from attnflow.figures.recipe import Picture, Recipe, Size
from attnflow.plot.hulls import draw_hull
from attnflow.plot.overview import stage_of
from attnflow.simulate import Trajectory, simulate
from attnflow.systems import RescaledAttention
from attnflow.theory.checks.base import Quantity

END = 15.0


def _run(ts: np.ndarray) -> Trajectory:
    return simulate(RescaledAttention(), initial.cube(40, 3, seed=0), ts)


def _polytope(size: Size) -> Picture:
    run = _run(np.array([0.0, END]))
    stage = stage_of(run)
    polytope = observe.hull(run.final, 1e-3)
    figure = Figure(figsize=(4.2, 4.2), layout="constrained")
    ax = figure.subplots()
    stage.set(ax)
    draw_hull(ax, stage, polytope)
    stage.draw(ax, 1, np.zeros(40, int))
    away = float(polytope.distance(run.final).max())
    numbers = {"t": END, "vertices": polytope.points, "distance": polytope.distance(run.final)}
    return Picture(figure, numbers, _seen(polytope, away))


def _snapshots(size: Size) -> Picture:
    ts = np.array([0.0, 1.0, 2.0, END])
    run = _run(ts)
    stage, polytope = stage_of(run), observe.hull(run.final, 1e-3)
    away = [float(polytope.distance(x).max()) for x in run.xs]
    figure = Figure(figsize=(3.0 * len(ts), 3.2), layout="constrained")
    for i, ax in enumerate(figure.subplots(1, len(ts))):
        stage.set(ax)
        draw_hull(ax, stage, polytope)
        stage.draw(ax, i, np.zeros(40, int))
        ax.set_title(f"$t = {ts[i]:g}$")
    numbers = {"t": ts, "distance to the nearest vertex, at most": away}
    return Picture(figure, numbers, _seen(polytope, away[-1]))


def _seen(polytope: observe.Hull, away: float) -> tuple[Quantity, ...]:
    return (
        Quantity("vertices of the polytope", len(polytope.vertices), "≤", 39),
        Quantity("vertices of the polytope", len(polytope.vertices), "≥", 4),
        Quantity("distance of any token from its nearest vertex", away, "≤", 1e-2),
    )


RECIPE = Recipe(
    "E-fig1",
    "[E] Fig. 1",
    "Rescaled attention with V = I in R³: at late times every token is at a vertex of a convex "
    "polytope, which is drawn with its facets.",
    _polytope,
)
SNAPSHOTS = Recipe(
    "E-fig5",
    "[E] Fig. 5",
    "The same in time: tokens converge to the vertices.",
    _snapshots,
)
