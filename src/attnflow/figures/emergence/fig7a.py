"""[E] Fig. 7a: two growing directions, two clustered coordinates, divergence along two lines."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from attnflow import observe
from attnflow.figures.emergence.rescaled import rescaled_run
from attnflow.figures.recipe import Picture, Recipe, Size
from attnflow.plot.coordinates import draw_coordinate
from attnflow.plot.space import box_of, draw_line, draw_space_tokens, set_space
from attnflow.plot.style import PALETTE
from attnflow.theory.checks.base import Quantity
from attnflow.theory.limits import growing_points
from attnflow.theory.limits import size as size_of

V = np.array(
    [
        [0.92761287, 0.94333073, 0.3827744],
        [0.94333073, 0.59991396, 0.47825472],
        [0.3827744, 0.47825472, 0.46668605],
    ]
)
END, SHOWN = 20.0, (0, 4, 15, 60)


def _make(size: Size, V: Any) -> Picture:
    run = rescaled_run(V, 3, END)
    ts, zs = np.asarray(run.ts), np.asarray(run.xs)
    basis = observe.eigenbasis(V)
    along = np.moveaxis(zs @ basis.dual.T, -1, 0)
    growing = basis.values > 0
    ends = np.moveaxis(along[growing], 0, -1)
    found = observe.clusters(ends[-1], 1e-2 * size_of(ends))
    lines = found.centers @ basis.vectors[:, growing].T
    figure = Figure(figsize=(10.5, 5.6), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=(1.35, 1.0))
    for column, i in enumerate(SHOWN):
        ax = above.add_subplot(1, len(SHOWN), column + 1, projection="3d")
        box = box_of(zs[i])
        set_space(ax, box, (22.0, -25.0))
        for number, point in enumerate(lines):
            draw_line(ax, point, basis.vectors[:, -1], box, PALETTE[number % len(PALETTE)])
        draw_space_tokens(ax, zs[i], found.labels)
        ax.set_title(f"$t = {ts[i]:.3g}$", y=1.0)
    for j, ax in enumerate(below.subplots(1, 3)):
        draw_coordinate(ax, ts, along[j], found.labels)
        ax.set_title(rf"$\varphi_{j + 1}^*(z_i(t))$, $\lambda_{j + 1} = {basis.values[j]:.2f}$")
    numbers = {
        "t": ts[-1],
        "V": V,
        "eigenvalues": basis.values,
        "points of the growing coordinates": found.centers,
        "tokens at each": np.bincount(found.labels),
        "range of φ_j*(z), at the start and at the end": _ranges(along),
    }
    return Picture(figure, numbers, _seen(V, zs, along, basis.values))


def _ranges(along: Float[np.ndarray, "d T n"]) -> Float[np.ndarray, "d 2"]:
    return np.ptp(along, axis=-1)[:, [0, -1]]


def _seen(
    V: Any, zs: np.ndarray, along: Float[np.ndarray, "d T n"], values: Float[np.ndarray, " d"]
) -> tuple[Quantity, ...]:
    points, _ = growing_points(V, zs)
    before, after = _ranges(along)[-1]
    return (
        Quantity("eigenvalues with positive real part", np.sum(values > 0), "≥", 2),
        Quantity("points of the two growing coordinates", points, "≤", 3),
        Quantity("points of the two growing coordinates", points, "≥", 2),
        Quantity("growth of the range of the third coordinate", after / before, "≥", 10.0),
    )


RECIPE = Recipe(
    "E-fig7a",
    "[E] Fig. 7a",
    "V symmetric with eigenvalues 1.96, 0.25 and −0.22: the two growing coordinates cluster at two "
    "points, and tokens diverge along two lines in the third direction. Scales differ.",
    partial(_make, V=V),
)
