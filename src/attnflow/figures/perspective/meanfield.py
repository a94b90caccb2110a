"""[P] Remark 3.3: many tokens follow their density, the closer the more there are."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnflow import meanfield, observe
from attnflow.figures.recipe import Picture, Recipe, Size, by_size
from attnflow.figures.scipy_solution import solution, sphere
from attnflow.meanfield import MeanFieldRun
from attnflow.plot.meanfield import draw_distances
from attnflow.plot.style import PALETTE
from attnflow.simulation import Fixed
from attnflow.spaces import Sphere
from attnflow.systems import SA
from attnflow.verdicts import Quantity

BETAS = (1.0, 2.0)
TIMES = (0.0, 1.0, 2.0)
QUANTILES = 400
MAX_DISTANCE_SHOWN = 5.0
"""The picture ends a little above π, the largest distance; Dobrushin's bound is farther up."""


def _start(theta: np.ndarray) -> np.ndarray:
    return 1 + 0.6 * np.cos(theta) + 0.4 * np.sin(2 * theta)


def _make(size: Size) -> Picture:
    start = meanfield.density(_start, by_size(size, 64, 512))
    runs = {
        rf"$\beta = {beta:g}$": meanfield.mean_field_run(
            SA(beta),
            start,
            TIMES,
            sizes=by_size(size, (50, 200, 800), (100, 1000, 10_000, 100_000)),
            replicates=by_size(size, 6, 8),
            method=Fixed(0.1),
        )
        for beta in BETAS
    }
    figure = Figure(figsize=(8.6, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    _densities(left, list(runs.values())[-1])
    left.set_title(f"the density, {list(runs)[-1]}")
    draw_distances(right, runs, MAX_DISTANCE_SHOWN)
    right.set_title(f"tokens and density at $t = {TIMES[-1]:g}$")
    numbers = {
        name: {"n": run.sizes, "t": TIMES, "W1": run.w1, "log of Dobrushin's factor": run.exponent}
        for name, run in runs.items()
    }
    plain = {name: _plain(beta, run) for (name, run), beta in zip(runs.items(), BETAS, strict=True)}
    return Picture(figure, numbers, (*seen(runs), *(_same(name, w1) for name, w1 in plain.items())))


def _plain(beta: float, run: MeanFieldRun) -> float:
    """W1 between the density at the end and SciPy's tokens that started at its quantiles.

    Quantiles of a smooth density stand for it up to 1/n; sums over them are sums by rectangles.
    """
    N = run.rho.shape[1]
    edges = np.linspace(0, 2 * np.pi, N + 1)
    below = np.concatenate([[0.0], np.cumsum(run.rho[0] / run.rho[0].sum())])
    theta = np.interp((np.arange(QUANTILES) + 0.5) / QUANTILES, below, edges)
    x0 = np.stack([np.cos(theta), np.sin(theta)], axis=1)
    x = solution(sphere(beta=beta), x0, run.ts[[0, -1]])[-1]
    return float(observe.wasserstein(x, observe.Cells(run.rho[-1]), space=Sphere()).distance)


def _same(name: str, w1: float) -> Quantity:
    """The density's cells are 2π/N wide, and tokens within one are not told apart."""
    label = name.strip("$").replace(r"\beta", "β")
    return Quantity(f"{label}: W1 of the density and SciPy's {QUANTILES} tokens", w1, "≤", 0.02)


def seen(runs: dict[str, MeanFieldRun]) -> list[Quantity]:
    """Distances fall like the inverse root of n, and stay below their bound."""
    found = []
    for name, run in runs.items():
        label = name.strip("$").replace(r"\beta", "β")
        rate = run.rate().rate
        over = (run.w1 / run.bound)[..., 1:]
        found += [
            Quantity(f"{label}: −d log W1 / d log n", rate, "≥", 0.35),
            Quantity(f"{label}: −d log W1 / d log n", rate, "≤", 0.65),
            Quantity(f"{label}: W1 over its bound for t > 0, at most", over.max(), "≤", 1),
        ]
    return found


def _densities(ax: Axes, run: MeanFieldRun) -> None:
    """ρ at each time."""
    N = run.rho.shape[1]
    theta = (np.arange(N) + 0.5) * 2 * np.pi / N
    for t, rho, colour in zip(run.ts, run.rho, PALETTE[2:], strict=False):
        ax.plot(theta, rho, color=colour, label=f"$t = {t:g}$")
    ax.set(xlabel=r"$\theta$", ylabel=r"$\rho(t, \theta)$", xlim=(0, 2 * np.pi), ylim=(0, None))
    ax.set_xticks([0, np.pi, 2 * np.pi], ["0", r"$\pi$", r"$2\pi$"])
    ax.legend(fontsize=9)


RECIPE = Recipe(
    "P-meanfield",
    "[P] Remark 3.3",
    "W1 between n tokens of SA on the circle and the density that solves the mean-field equation: "
    "it falls like the inverse root of n (grey). Dobrushin's bound is far above the picture.",
    _make,
)
