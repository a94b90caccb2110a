"""[P] §9.3: the singular dynamics, its three branches from a tie, and its limit β → ∞."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnflow import initial
from attnflow.figures.recipe import Picture, Recipe, Size, by_size
from attnflow.figures.scipy_solution import Field, compare_with_scipy, rescaled, weights
from attnflow.plot.style import FAINT, INK, PALETTE
from attnflow.simulation import Adaptive, Filippov, simulate
from attnflow.systems import ConsensusAttention, Hardmax, RescaledAttention, System
from attnflow.verdicts import Quantity

TIES = np.array([[1.0, 1.0], [-1.0, 1.0], [0.0, 0.0]])
"""Example 9.3: token 3 ties with all."""

TIMES = np.linspace(0.0, 3.0, 31)
SCIPY_BETA = 10.0
"""The β at which flows are compared with SciPy's."""
MIN_SCORE_GAP = 0.05
"""The least distance of the largest score from the next, in the start without ties."""


def _make(size: Size) -> Picture:
    betas = np.logspace(0, 4, by_size(size, 9, 17))
    branches = _branches()
    start = _without_ties(by_size(size, 8, 40))
    flow = np.asarray(simulate(Hardmax(), start, TIMES).xs)
    ends = {
        "from the tie, (9.4)": [_gap(ConsensusAttention(beta=b), branches["mean"]) for b in betas],
        "tie-free start, (9.4)": [_gap(ConsensusAttention(beta=b), flow) for b in betas],
        "tie-free start, rescaled (4)": [_gap(RescaledAttention(beta=b), flow) for b in betas],
    }
    figure = Figure(figsize=(8.6, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_branches(left, branches)
    for (name, gaps), colour in zip(ends.items(), PALETTE, strict=False):
        right.loglog(betas, np.maximum(gaps, 1e-12), "o-", ms=4, color=colour, label=name)
    right.set(xlabel=r"inverse temperature $\beta$", ylabel="largest distance to hardmax")
    right.legend(fontsize=9, loc="lower left")
    exact = 1 - np.exp(-TIMES)[:, None]
    targets = {"first": TIES[0], "second": TIES[1], "mean": TIES[:2].mean(axis=0), "wait": TIES[2]}
    off = {name: np.abs(branches[name][:, 2] - exact * z).max() for name, z in targets.items()}
    fitted = betas >= 10
    slope = np.polyfit(np.log(betas[fitted]), np.log(ends["from the tie, (9.4)"])[fitted], 1)[0]
    seen = (
        *(
            Quantity(f"branch “{name}” from its closed form", e, "≤", 1e-8)
            for name, e in off.items()
        ),
        *(
            Quantity(
                f"{name}: β times the distance, at the largest β", betas[-1] * gaps[-1], "≤", 10
            )
            for name, gaps in ends.items()
        ),
        Quantity("from the tie: exponent of β", slope, "≤", -0.8),
        *_solve(start),
    )
    numbers = {"β": betas, "largest distance": ends, "branches of token 3": branches}
    return Picture(figure, numbers, seen)


def _branches() -> dict[str, Float[np.ndarray, "T n d"]]:
    """Four Filippov solutions from the tie: the paper's three, and the one that waits."""

    def run(rule: str, order: tuple[int, ...]) -> np.ndarray:
        xs = np.asarray(simulate(Hardmax(), TIES[list(order)], TIMES, method=Filippov(rule)).xs)
        return xs[:, list(order)]

    return {
        "first": run("first", (0, 1, 2)),
        "second": run("first", (1, 0, 2)),
        "mean": run("all", (0, 1, 2)),
        "wait": run("minimal-norm", (0, 1, 2)),
    }


def _without_ties(n: int) -> Float[np.ndarray, "n d"]:
    """The first draw of the cube whose largest scores are well apart."""
    for key in range(1000):
        x = np.asarray(initial.cube(n, 2, side=2.0, key=key))
        scores = np.sort(x @ x.T, axis=1)
        if (scores[:, -1] - scores[:, -2]).min() > MIN_SCORE_GAP * 8 / n:
            break
    return x


def _gap(system: System, flow: Float[np.ndarray, "T n d"]) -> float:
    """The largest distance of a token from the hardmax flow, over time."""
    run = simulate(system, flow[0], TIMES, method=Adaptive(1e-8, 1e-10))
    return float(np.linalg.norm(np.asarray(run.xs) - flow, axis=-1).max())


def _solve(start: Float[np.ndarray, "n d"]) -> tuple[Quantity, ...]:
    """Whether both flows at finite β are those that tend to the hard maximum."""
    b = SCIPY_BETA

    def differences(t: float, z: np.ndarray) -> np.ndarray:
        return weights(z, beta=b) @ z - z

    systems: dict[str, tuple[System, Field]] = {
        "[P](9.4)": (ConsensusAttention(beta=b), differences),
        "[E](4)": (RescaledAttention(beta=b), rescaled(beta=b)),
    }
    return tuple(
        compare_with_scipy(
            f"{equation} at β = {b:g}",
            field,
            TIMES,
            simulate(system, start, TIMES, method=Adaptive(1e-8, 1e-10)).xs,
        )
        for equation, (system, field) in systems.items()
    )


def _draw_branches(ax: Axes, branches: dict[str, np.ndarray]) -> None:
    for (name, xs), colour in zip(branches.items(), PALETTE, strict=False):
        path = xs[:, 2]
        ax.plot(*path.T, color=colour, lw=2, zorder=2)
        ax.plot(*path[-1], "o", color=colour, ms=6, label=name, zorder=3)
    ax.plot(*TIES[:2].T, "s", color=INK, ms=6, zorder=1)
    above: Any = {"xytext": (8, 4), "textcoords": "offset points"}
    below: Any = above | {"xytext": (-8, -14), "ha": "right"}
    for z, word, where in zip(
        TIES, ("$z_1$", "$z_2$", "$z_3(0)$"), (above, above, below), strict=True
    ):
        ax.annotate(word, tuple(z), **where)
    ax.axhline(0, color=FAINT, lw=0.5, zorder=0)
    ax.axvline(0, color=FAINT, lw=0.5, zorder=0)
    ax.set(xlim=(-1.35, 1.5), ylim=(-0.55, 1.3), title="Example 9.3: where $z_3$ may go")
    ax.set_aspect("equal")
    ax.legend(fontsize=9, loc="lower right", ncols=4, handletextpad=0.1, columnspacing=0.8)


RECIPE = Recipe(
    "P-hardmax",
    "[P] §9.3",
    "The singular dynamics. From the tie of Example 9.3 token 3 goes to one token, to the other, "
    "between them, or waits; (9.4) takes the mean. From a tie-free start (9.4) and rescaled "
    "attention tend to the hardmax flow as β grows: like 1/β if tokens change on their way whom "
    "they follow, and faster if none does.",
    _make,
)
