"""[E] Figs. 1 and 5: tokens of rescaled attention gather at the vertices of a convex polytope."""

from __future__ import annotations

from functools import partial

import numpy as np
from matplotlib.figure import Figure

from attnflow import initial, observe
from attnflow.figures.emergence.rescaled import late
from attnflow.figures.recipe import Picture, Recipe, Size
from attnflow.figures.scipy_solution import Head, compare_with_scipy, rescaled
from attnflow.plot.polytopes import draw_hull
from attnflow.plot.runs import view_of
from attnflow.simulation import Trajectory, simulate
from attnflow.systems import RescaledAttention
from attnflow.verdicts import Quantity

TIMES = np.array([*np.linspace(0.0, 2.75, 12), 15.0])
"""Early ones are close enough together for trails to show the ways of tokens."""
SAVES_SHOWN = (0, 4, 8, 12)


def _run(V: float) -> Trajectory:
    return simulate(RescaledAttention(V=V), initial.cube(40, 3, key=0), TIMES, method=late())


def _polytope(size: Size, V: float) -> Picture:
    run = _run(V)
    view = view_of(run)
    polytope = observe.hull(run.final, 1e-3)
    figure = Figure(figsize=(4.2, 4.2), layout="constrained")
    ax = figure.subplots()
    view.prepare(ax)
    draw_hull(ax, view, polytope)
    view.draw(ax, len(TIMES) - 1, np.zeros(40, int))
    away = float(polytope.distance(run.final).max())
    return Picture(
        figure, {"t": TIMES[-1], "vertices": polytope.points}, _seen(run, V, polytope, away)
    )


def _snapshots(size: Size, V: float) -> Picture:
    run = _run(V)
    view, polytope = view_of(run), observe.hull(run.final, 1e-3)
    away = [float(polytope.distance(x).max()) for x in run.xs]
    figure = Figure(figsize=(3.0 * len(SAVES_SHOWN), 3.3), layout="constrained")
    for i, ax in zip(SAVES_SHOWN, figure.subplots(1, len(SAVES_SHOWN)), strict=True):
        view.prepare(ax)
        draw_hull(ax, view, polytope)
        view.draw(ax, i, np.zeros(40, int))
        ax.set_title(f"$t = {TIMES[i]:g}$")
    numbers = {"t": TIMES, "distance to the nearest vertex, at most": away}
    return Picture(figure, numbers, _seen(run, V, polytope, away[-1]))


def _seen(run: Trajectory, V: float, polytope: observe.Hull, away: float) -> tuple[Quantity, ...]:
    z = np.asarray(run.final)
    # T3.1: limits are points of K that no vertex of K outdoes in their own direction.
    most = np.einsum("nd,nd->n", z, z)
    outdone = np.max(z @ polytope.points.T, axis=1) / most - 1
    return (
        Quantity("largest <z, v_j> of any vertex / |z|², less 1 (T3.1)", outdone.max(), "≤", 1e-2),
        Quantity("vertices of the polytope", len(polytope.vertices), "≤", 20),
        Quantity("vertices of the polytope", len(polytope.vertices), "≥", 4),
        Quantity("distance of any token from its nearest vertex", away, "≤", 1e-2),
        compare_with_scipy("[E](4)", rescaled(Head(V=V)), run.ts, run.xs, until=TIMES[-2]),
    )


RECIPE = Recipe(
    "E-fig1",
    "[E] Fig. 1",
    "Rescaled attention with V = I in R³: at late times every token is at a vertex of a convex "
    "polytope, which is drawn with its facets.",
    partial(_polytope, V=1.0),
)
SNAPSHOTS = Recipe(
    "E-fig5",
    "[E] Fig. 5",
    "The same in time: tokens converge to the vertices.",
    partial(_snapshots, V=1.0),
)
