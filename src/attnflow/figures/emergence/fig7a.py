"""[E] Fig. 7a: two growing directions, two clustered coordinates, divergence along two lines."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from matplotlib.figure import Figure

from attnflow import observe
from attnflow.figures.emergence.rescaled import Levels, levels, rescaled_run, solves
from attnflow.figures.recipe import Picture, Recipe, Size
from attnflow.plot.space import box_of, draw_line, draw_space_tokens, eye_before, set_space
from attnflow.plot.style import PALETTE
from attnflow.plot.times import draw_coordinate
from attnflow.verdicts import Quantity

V = np.array(
    [
        [0.92761287, 0.94333073, 0.3827744],
        [0.94333073, 0.59991396, 0.47825472],
        [0.3827744, 0.47825472, 0.46668605],
    ]
)
END, SAVES_SHOWN = 15.0, (0, 4, 16, 60)
"""Later φ₁* differs by rounding alone within a cluster (λ₁t > 36), and the leader is lost."""


def _make(size: Size, V: Any) -> Picture:
    run = rescaled_run(V, 3, END)
    ts, zs = np.asarray(run.ts), np.asarray(run.xs)
    basis = observe.eigenbasis(V)
    along = np.moveaxis(np.asarray(run.along(basis.dual)), -1, 0)
    found = levels(V, run)
    leaders = _leaders(found)
    lines = zs[-1, leaders]
    figure = Figure(figsize=(11.0, 4.9), layout="constrained")
    parts: Any = figure.subfigures(2, 1, height_ratios=(1.25, 1.0))
    above, below = parts
    for column, i in enumerate(SAVES_SHOWN):
        ax = above.add_subplot(1, len(SAVES_SHOWN), column + 1, projection="3d")
        box = box_of(zs[i])
        set_space(ax, box, eye_before(basis.vectors[:, 0], basis.vectors[:, -1], box))
        for number, point in enumerate(lines):
            draw_line(ax, point, basis.vectors[:, -1], box, PALETTE[number % len(PALETTE)])
        draw_space_tokens(ax, zs[i], found.labels)
        ax.set_title(f"$t = {ts[i]:.3g}$", y=1.0)
    for j, ax in enumerate(below.subplots(1, 3)):
        draw_coordinate(ax, ts, along[j], found.labels)
        ax.set_title(rf"$\varphi_{j + 1}^*(z_i(t))$, $\lambda_{j + 1} = {basis.values[j]:.2f}$")
    before, after = _spreads(along, found.labels)
    numbers = {
        "t": ts[-1],
        "V": V,
        "eigenvalues": basis.values,
        "tokens on each line": np.bincount(found.labels),
        "φ* of the leaders": along[:, -1, leaders].T,
        "largest spread of φ_j* within a cluster, at the start": before,
        "largest spread of φ_j* within a cluster, at the end": after,
    }
    seen = (
        Quantity("clusters of φ₁*(z)", len(found.levels), "≤", 3),
        Quantity("clusters of φ₁*(z)", len(found.levels), "≥", 2),
        *(
            Quantity(f"spread of φ_{j + 1}* in a cluster / its first value", share, "≤", 0.1)
            for j, share in enumerate(after[:2] / before[:2])
        ),
        Quantity("spread of φ_3* in a cluster / its first value", after[2] / before[2], "≥", 10.0),
        solves(V, run, END / 3),
    )
    return Picture(figure, numbers, seen)


def _leaders(found: Levels) -> Int[np.ndarray, " k"]:
    """The token of each cluster that is farthest out at the start: φ₁* of others tends to its."""
    out = np.abs(found.along[0])
    clusters = range(len(found.levels))
    return np.array([np.argmax(np.where(found.labels == k, out, -1.0)) for k in clusters])


def _spreads(
    along: Float[np.ndarray, "d T n"], labels: Int[np.ndarray, " n"]
) -> Float[np.ndarray, "2 d"]:
    """The largest range of each coordinate within a cluster, at the start and at the end."""
    ranges = [np.ptp(along[:, [0, -1]][..., labels == k], axis=-1) for k in np.unique(labels)]
    return np.max(ranges, axis=0).T


RECIPE = Recipe(
    "E-fig7a",
    "[E] Fig. 7a",
    "V symmetric with eigenvalues 1.96, 0.25 and −0.22: the two growing coordinates cluster, and "
    "tokens diverge along two lines in the third direction. Scales differ.",
    partial(_make, V=V),
)
