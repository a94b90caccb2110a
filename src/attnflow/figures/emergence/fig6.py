"""[E] Fig. 6: along the leading eigenvector tokens of the plane gather on two parallel lines."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from attnflow.figures.emergence.rescaled import levels, rescaled_run, solves
from attnflow.figures.recipe import Picture, Recipe, Size
from attnflow.plot.runs import view_of
from attnflow.plot.space import draw_direction, draw_level
from attnflow.plot.times import draw_coordinate

V = np.array([[0.64709742, 0.81911926], [0.61210449, 0.63263484]])
END, SAVES_SHOWN = 10.0, (0, 12, 30, 60)
"""The last time, and which of the saves are drawn."""


def _make(size: Size, V: Any) -> Picture:
    run = rescaled_run(V, 2, END)
    ts = np.asarray(run.ts)
    found, view = levels(V, run), view_of(run)
    figure = Figure(figsize=(13.0, 3.0), layout="constrained")
    axes = figure.subplots(1, len(SAVES_SHOWN) + 1, width_ratios=[1.0] * len(SAVES_SHOWN) + [1.15])
    for ax, i in zip(axes, SAVES_SHOWN, strict=False):
        view.prepare(ax)
        for level in found.levels:
            draw_level(ax, found.functional, level)
        view.draw(ax, i, found.labels, size=20.0)
        draw_direction(ax, found.direction, 0.45 * view.reach)
        ax.set_title(f"$t = {ts[i]:g}$")
    draw_coordinate(axes[-1], ts, found.along, found.labels)
    axes[-1].set_title(r"$\varphi_1^*(z_i(t))$")
    numbers = {
        "t": ts[-1],
        "V": V,
        "eigenvalues": np.sort(np.linalg.eigvals(V).real)[::-1],
    }
    seen = (*found.seen, solves(V, run, END / 3))
    return Picture(figure, numbers | found.numbers, seen)


RECIPE = Recipe(
    "E-fig6",
    "[E] Fig. 6",
    "V in the plane with eigenvalues 1.35 and −0.07: coordinates along φ₁ (arrow) cluster, and "
    "tokens gather on two level sets of φ₁* (dashed). V is not symmetric, so that these are not "
    "perpendicular to φ₁.",
    partial(_make, V=V),
)
