"""[E] Figs. 7b and 15: in high dimension growing coordinates cluster, and decaying ones diverge."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Int
from matplotlib.figure import Figure

from attnflow import initial, observe, weights
from attnflow.figures.emergence.rescaled import SAVES, late
from attnflow.figures.recipe import Picture, Recipe, Size, by_size
from attnflow.figures.scipy_solution import Head, compare_with_scipy, rescaled
from attnflow.plot.style import FAINT, PALETTE
from attnflow.plot.times import draw_band
from attnflow.simulation import Trajectory, simulate
from attnflow.systems import RescaledAttention
from attnflow.verdicts import Quantity

END, CURVES_SHOWN = 10.0, 5
MIN_EIGENVALUE = 0.3
"""Coordinates whose eigenvalue is smaller in size have hardly moved at the end."""


def _run(n: int, d: int, end: float) -> tuple[Head, Trajectory]:
    """Q and K Ginibre, V symmetric with eigenvalues in about [−2, 2], tokens in [−½, ½]^d."""
    values, queries, keys, tokens = jax.random.split(jax.random.key(0), 4)
    Q, K = (weights.ginibre(d, scale=d**-0.5, key=key) for key in (queries, keys))
    V = weights.goe(d, scale=d**-0.5, key=values)
    x0 = initial.cube(n, d, side=1.0, key=tokens)
    ts = np.linspace(0.0, end, SAVES)
    run = simulate(RescaledAttention(Q=Q, K=K, V=V), x0, ts, method=late())
    return Head(*(np.asarray(W) for W in (Q, K, V))), run


def _make(size: Size, end: float) -> Picture:
    n, d = by_size(size, (48, 24), (256, 128))
    head, run = _run(n, d, end)
    basis = observe.eigenbasis(head.V)
    ts, along = np.asarray(run.ts), np.asarray(run.along(basis.dual))
    values = basis.values
    spread = along.std(axis=1)
    rates = np.log(spread[SAVES // 4] / spread[SAVES // 2]) / (ts[SAVES // 2] - ts[SAVES // 4])
    figure = _drawn(ts, along, values, rates)
    figure.suptitle(f"$n = {n}$, $d = {d}$, $V$ symmetric", fontsize=12)
    shares = spread[-1] / spread[0]
    numbers = {
        "t": end,
        "n": n,
        "d": d,
        "eigenvalues": values,
        "mean of φ_j*(z), at the end": along[-1].mean(axis=0),
        "spread of φ_j*(z), at the start": spread[0],
        "spread of φ_j*(z), at the end": spread[-1],
        "rate at which the spread falls": rates,
    }
    grows, decays = shares[values >= MIN_EIGENVALUE].max(), shares[values <= -MIN_EIGENVALUE].min()
    seen = (
        Quantity("spread at the end / at the start, for λ ≥ 0.3, at most", grows, "≤", 0.1),
        Quantity(
            "spread at the end / at the start, for any λ > 0", shares[values > 0].max(), "≤", 1
        ),
        Quantity("spread at the end / at the start, for λ ≤ −0.3, at least", decays, "≥", 10.0),
        compare_with_scipy("[E](4)", rescaled(head), ts, run.xs, until=end / 3, along=basis.dual),
    )
    return Picture(figure, numbers, seen)


def _drawn(
    ts: Float[np.ndarray, " T"],
    along: Float[np.ndarray, "T n d"],
    values: Float[np.ndarray, " d"],
    rates: Float[np.ndarray, " d"],
) -> Figure:
    figure = Figure(figsize=(11.5, 4.6), layout="constrained")
    grid = figure.add_gridspec(2, 3, width_ratios=(1.25, 1.25, 1.0))
    chosen = _chosen(along[-1].mean(axis=0), values)
    titles = ("limit above 0", "limit below 0", r"$\lambda_j < 0$")
    places: tuple[Any, ...] = (grid[0, 0], grid[1, 0], grid[:, 1])
    for which, title, place in zip(chosen, titles, places, strict=True):
        ax = figure.add_subplot(place)
        for j, colour in zip(which, PALETTE, strict=False):
            draw_band(ax, ts, along[..., j], colour, rf"$\lambda_j = {values[j]:.2f}$")
        ax.set_title(rf"$\varphi_j^*(z_i)$, {title}")
        corner = "lower right" if place is places[0] else "upper right"
        ax.legend(fontsize=8, loc=corner, ncols=2 if place is not places[-1] else 1)
    figure.axes[-1].set_yscale("symlog", linthresh=1.0)
    figure.axes[-1].legend(fontsize=8, loc="upper left")
    ax = figure.add_subplot(grid[:, 2])
    reach = np.array([values.min(), values.max()])
    ax.plot(reach, reach, color=FAINT, lw=0.9, zorder=0, label=r"rate $= \lambda_j$")
    ax.scatter(values, rates, 14, PALETTE[0], linewidths=0)
    ax.set(xlabel=r"eigenvalue $\lambda_j$", ylabel="rate", title="rate at which the spread falls")
    ax.legend(fontsize=9, loc="upper left")
    return figure


def _chosen(
    means: Float[np.ndarray, " d"], values: Float[np.ndarray, " d"]
) -> tuple[Int[np.ndarray, " k"], ...]:
    """Growing coordinates with the largest and the smallest limits, and some decaying ones."""
    order = np.argsort(means)
    clear = order[values[order] >= MIN_EIGENVALUE]
    above, below = clear[means[clear] > 0][::-1], clear[means[clear] < 0]
    fading = np.argsort(values)
    fading = fading[values[fading] < 0]
    some = fading[
        np.linspace(0, len(fading) - 1, min(CURVES_SHOWN, len(fading))).round().astype(int)
    ]
    return above[:CURVES_SHOWN], below[:CURVES_SHOWN], some


RECIPE = Recipe(
    "E-fig7b",
    "[E] Figs. 7b and 15",
    "Random Q, K and symmetric V in high dimension: the standard deviation (band) of every "
    "coordinate with λ_j > 0 tends to 0 while the mean (line) tends to a value above or below 0; "
    "coordinates with λ_j < 0 diverge. On the right the rate −d log(spread)/dt against λ_j.",
    partial(_make, end=END),
)
