"""[P] §8: the two-point function of tokens on the circle, sampled and by closures of (8.1)."""

from __future__ import annotations

import numpy as np

from attnflow.figures.recipe import Picture, Recipe, Size, by_size
from attnflow.figures.scipy_solution import compare_with_scipy, solution, sphere
from attnflow.meanfield import bbgky
from attnflow.meanfield.bbgky import Comparison
from attnflow.plot.meanfield import closure_diagram
from attnflow.simulation import simulate
from attnflow.systems import AngularUSA
from attnflow.verdicts import Quantity

BETA, N, END = 1.0, 16, 6.0
SCIPY_STARTS = 256
"""Starts that SciPy follows."""
UNIT = ", in units of π/2"
PROPER_NAMES = {"kirkwood": "Kirkwood", "gaussian": "Gaussian"}
"""Closures that bear a name; the others are called as they are in the library."""


def _make(size: Size) -> Picture:
    ts = np.linspace(0.0, END, by_size(size, 13, 25))
    sampled = bbgky.two_point(
        BETA, N, ts, replicates=by_size(size, 256, 8192), cells=by_size(size, 32, 128)
    )
    drawn = by_size(size, ("chaos", "kirkwood", "companions"), tuple(bbgky.CLOSURES))
    found = {name: bbgky.compare(sampled, bbgky.CLOSURES[name]) for name in drawn}
    # The equation itself is right if it follows the ensemble once it is told the truth.
    truth = bbgky.compare(sampled, bbgky.Measured(sampled))
    named = {PROPER_NAMES.get(name, name): one for name, one in found.items()}
    figure = closure_diagram(sampled, named, (END / 4, END / 2, END))
    numbers = {
        "t": ts,
        f"W1 to the ensemble{UNIT}": {name: one.w1 for name, one in found.items()},
        f"with the third token as sampled{UNIT}": truth.w1,
    }
    return Picture(figure, numbers, (*seen(found, truth), *_same_ensemble(sampled)))


def _same_ensemble(sampled: bbgky.TwoPoint) -> tuple[Quantity, ...]:
    """The mean cosine of pairs beside that of other starts, which SciPy followed; and one run."""
    angles = np.random.default_rng(0).uniform(0, 2 * np.pi, (SCIPY_STARTS, N))
    x0 = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    xs = solution(sphere(beta=BETA, normalised=False), x0, sampled.ts)
    cosines = (np.sum(xs.sum(axis=-2) ** 2, axis=-1) - N) / (N * (N - 1))
    theirs = sampled.psi @ np.cos(sampled.x) * (2 * np.pi / len(sampled.x))
    error = cosines.std(axis=1) * np.sqrt(1 / SCIPY_STARTS + 1 / sampled.replicates)
    off = np.abs(theirs - cosines.mean(axis=1)) / error
    # mypy takes the fields of an equinox module for its arguments.
    system = AngularUSA(BETA)
    theta = simulate(system, angles[0, :, None], sampled.ts).xs[..., 0]
    xs = np.stack([np.cos(theta), np.sin(theta)], axis=-1)
    return (
        Quantity("mean cosine off SciPy's ensemble, in standard errors", off.max(), "≤", 4.0),
        compare_with_scipy("(USA)", sphere(beta=BETA, normalised=False), sampled.ts, xs),
    )


def seen(found: dict[str, Comparison], truth: Comparison) -> tuple[Quantity, ...]:
    """What each closure must show, and (8.1) itself with the third token as it was sampled."""
    worst = {name: float(one.w1.max()) for name, one in found.items()}
    best = min(worst, key=lambda name: worst[name])
    said = PROPER_NAMES.get(best, best)
    return (
        Quantity(f"(8.1) with the third token as sampled: W1{UNIT}", truth.w1.max(), "≤", 0.04),
        Quantity(f"molecular chaos: W1 at the end{UNIT}", found["chaos"].w1[-1], "≥", 0.3),
        Quantity(f"best closure ({said}): W1 at any time{UNIT}", worst[best], "≤", 0.15),
    )


RECIPE = Recipe(
    "P-bbgky",
    "[P] §8",
    "The law of the angle between two tokens of USA on the circle: sampled, and by equation (8.1) "
    "with each closure for the third token. Molecular chaos misses the clusters; a closure "
    "that knows of them follows the ensemble.",
    _make,
)
