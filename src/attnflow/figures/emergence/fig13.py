"""[E] Figs. 13 and 14: hyperplanes in R³, for V with positive entries."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from attnflow.figures.emergence.rescaled import levels, rescaled_run, solves
from attnflow.figures.recipe import Picture, Recipe, Size
from attnflow.plot.space import box_of, draw_plane, draw_space_tokens, eye_along, set_space
from attnflow.plot.style import PALETTE
from attnflow.plot.times import draw_coordinate

NEGATIVE = np.array(
    [
        [0.2362413, 0.0599536, 0.40506019],
        [0.81321448, 0.49948705, 0.33754772],
        [0.2160645, 0.38505272, 0.14588075],
    ]
)
POSITIVE = np.array(
    [
        [0.18608476, 0.34391026, 0.13905949],
        [0.35244288, 0.6694859, 0.39992145],
        [0.46685606, 0.17094454, 0.42092308],
    ]
)
"""V of Fig. 13 and of Fig. 14; the signs are those of the real parts of the other eigenvalues."""

END, SAVES_SHOWN = 15.0, (0, 8, 20, 60)


def _make(size: Size, V: Any) -> Picture:
    run = rescaled_run(V, 3, END)
    ts, zs = np.asarray(run.ts), np.asarray(run.xs)
    found = levels(V, run)
    figure = Figure(figsize=(13.0, 2.9), layout="constrained")
    grid = figure.add_gridspec(
        1, len(SAVES_SHOWN) + 1, width_ratios=[1.0] * len(SAVES_SHOWN) + [0.9]
    )
    for column, i in enumerate(SAVES_SHOWN):
        ax = figure.add_subplot(grid[column], projection="3d")
        box = box_of(zs[i])
        set_space(ax, box, eye_along(found.functional, box))
        for number, level in enumerate(found.levels):
            draw_plane(ax, found.functional, level, box, PALETTE[number % len(PALETTE)])
        draw_space_tokens(ax, zs[i], found.labels)
        ax.set_title(f"$t = {ts[i]:g}$", y=1.0)
    beside = figure.add_subplot(grid[-1])
    draw_coordinate(beside, ts, found.along, found.labels)
    beside.set_title(r"$\varphi_1^*(z_i(t))$")
    values = np.linalg.eigvals(V)
    numbers = {
        "t": ts[-1],
        "V": V,
        "eigenvalues, real parts": values.real,
        "eigenvalues, imaginary parts": values.imag,
    }
    seen = (*found.seen, solves(V, run, END / 3))
    return Picture(figure, numbers | found.numbers, seen)


RECIPE = Recipe(
    "E-fig13",
    "[E] Fig. 13",
    "V in R³ with positive entries and other eigenvalues −0.05 ± 0.25i: tokens gather on two "
    "parallel planes, the level sets of φ₁*, and spread along them.",
    partial(_make, V=NEGATIVE),
)
GROWING = Recipe(
    "E-fig14",
    "[E] Fig. 14",
    "The same with other eigenvalues 0.10 ± 0.08i: tokens gather on two parallel planes, along "
    "which they slowly draw together.",
    partial(_make, V=POSITIVE),
)
