"""[P] Fig. 3: the probability that two tokens are together, over time and temperature."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnflow.figures.perspective.sweeps import BETAS, DELTA, SPEC, TIMES, crossing, run_sweep
from attnflow.figures.recipe import Picture, Recipe, Size, by_size
from attnflow.plot.phase import Curve, phase_diagram
from attnflow.theory import transition_time
from attnflow.verdicts import Quantity

N = 32


def spec(size: Size) -> dict[str, Any]:
    """The sweep: three dimensions and few realisations, or all that the paper has."""
    grid = {
        "d": by_size(size, [2, 8, 128], [2, 8, 32, 128, 512, 1024]),
        "beta": BETAS | {"count": by_size(size, 12, 90)},
    }
    return SPEC | {
        "title": "Two tokens together",
        "realisations": by_size(size, 8, 512),
        "start": {"name": "sphere", "n": N, "reduced": True},
        "times": TIMES | {"count": by_size(size, 61, 200)},
        "axes": grid,
    }


def _make(size: Size) -> Picture:
    data = run_sweep(spec(size))
    data["together"].attrs["long_name"] = r"$P(\langle x_1, x_2\rangle \geq 1 - \delta)$"
    figure = phase_diagram(data, "together", curve=Curve(N, DELTA))
    beta, d = data["beta"].values, data["d"].values
    curve = np.asarray(transition_time(beta, N, DELTA))
    within = curve < data["time"].values[-1]
    half = np.array([crossing(data["time"].values, p) for p in data["together"].values])
    # a half time beyond the last one counts as that: it is at least so far off
    seen_until = np.minimum(half, data["time"].values[-1])
    off = np.abs(seen_until / curve - 1)[:, within].mean(axis=1)
    worse = np.diff(off).max()
    numbers = {
        "d": d,
        "β": beta,
        "half time": half,
        "curve (6.12)": curve,
        "mean |half time / curve − 1|": off,
        "realisations": by_size(size, 8, 512),
    }
    seen = (
        Quantity(f"mean |half time / curve − 1| at d = {d[-1]}", off[-1], "≤", 0.1),
        Quantity(f"mean |half time / curve − 1| at d = {d[0]}", off[0], "≥", 0.3),
        Quantity("growth of that from one dimension to the next", worse, "≤", 0.01),
    )
    return Picture(figure, numbers, seen)


RECIPE = Recipe(
    "P-fig3",
    "[P] Fig. 3",
    f"The probability that two of {N} tokens are together, <x_1, x_2> ≥ 1 − δ with δ = {DELTA:g}, "
    "over time and β: as d grows the transition comes to the curve (6.12), γ_β(t) = 1 − δ.",
    _make,
)
