"""[P] Fig. 2: where convergence to one cluster is proven, and runs that go there."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from attnflow import initial
from attnflow.figures.recipe import Picture, Recipe, Size, sized
from attnflow.plot.style import INK, PALETTE
from attnflow.simulate import Coarsening, simulate
from attnflow.systems import SA
from attnflow.theory import large_beta
from attnflow.theory.checks.base import Quantity

N = 6
DIMS = tuple(range(2, N + 1))
BETAS = (0.1, 0.3, 1.0, 3.0, 6.0, 10.5, 14.0)
LATEST = 1e14
"""The slowest merges are looked for until this time; later, rounding of the time would show."""

LOW, HIGH = 0.06, 48.0


def proven(d: int, beta: float | int, n: int = N) -> bool:
    """Whether SA is proven to end in one cluster from almost every start.

    On the circle for β ≤ 1 (T4.3) and for `(n−1) τ*_β < π/2` (T5.1); for d ≥ 3 always (T6.1).

    >>> proven(2, 0.5), proven(2, 3.0), proven(3, 3.0)
    (True, False, True)
    """
    return d >= 3 or beta <= 1 or beta >= large_beta(n, d)


def times_to_one(beta: float, starts: int) -> Float[np.ndarray, "D S"]:
    """When the last merge was, for each dimension and start; infinite if some are left apart.

    Tokens of every dimension are put in R^n by coordinates that are 0 and stay so.
    """
    x0 = np.zeros((len(DIMS), starts, N, N))
    for k, d in enumerate(DIMS):
        x0[k, :, :, :d] = initial.sphere(N, d, seed=d, batch=starts)
    run = simulate(SA(beta), x0, [0.0, LATEST], method=Coarsening())
    if run.merges is None:
        raise RuntimeError("a run with Coarsening has a merge tree.")
    times, joined = np.asarray(run.merges.time), np.asarray(run.merges.count)
    return np.where(joined == N - 1, times[..., -1], np.inf)


def _make(size: Size) -> Picture:
    starts = sized(size, 12, 32)
    times = np.stack([times_to_one(beta, starts) for beta in BETAS])
    ended = np.isfinite(times)
    sure = np.array([[proven(d, beta) for d in DIMS] for beta in BETAS])
    figure = Figure(figsize=(6.8, 4.4), layout="constrained")
    ax = figure.subplots()
    _zones(ax)
    ax.set_title(f"SA, $n = {N}$, {starts} uniform starts for each point")
    places = [(d, beta) for beta in BETAS for d in DIMS]
    across, up = np.array(places).T
    typical = np.median(times, axis=-1).ravel()
    dots = ax.scatter(
        across,
        up,
        70,
        np.log10(np.minimum(typical, LATEST)),
        cmap="cividis",
        edgecolors=np.where(ended.all(axis=-1).ravel(), "white", PALETTE[1]),
        linewidths=1.0,
        zorder=3,
    )
    figure.colorbar(dots, ax=ax, label=r"$\log_{10}$ of the time to one cluster (median)")
    numbers: dict[str, Any] = {"n": N, "d": DIMS, "β": BETAS, "starts": starts}
    numbers |= {"time to one cluster": times, "β of T5.1": [large_beta(N, d) for d in DIMS]}
    numbers["share of one cluster where nothing is proven"] = ended[~sure].mean()
    slow = np.median(times[-1, 0]) / np.median(times[0, 0])
    seen = (
        Quantity("share of one cluster where it is proven", ended[sure].mean(), "≥", 1.0),
        Quantity("points of the map where it is proven", int(sure.sum()), "≥", 20),
        Quantity(f"time at β = {BETAS[-1]:g} / at {BETAS[0]:g}, d = 2", slow, "≥", 100.0),
    )
    return Picture(figure, numbers, seen)


def _zones(ax: Axes) -> None:
    """The proven regimes as green columns, darker where the rate is exponential."""
    light, dark = "#D7EBDD", "#A9D5B8"
    high = float(large_beta(N, 2))
    for d in DIMS:
        spans = [(LOW, HIGH)] if d >= 3 else [(LOW, 1.0), (high, HIGH)]
        for begin, end in spans:
            colour = dark if d >= N else light
            ax.add_patch(
                Rectangle((d - 0.5, begin), 1, end - begin, fc=colour, ec="none", zorder=0)
            )
    ax.axhline(1.0, 0, 1 / len(DIMS), color=INK, lw=0.8, ls=":")
    ax.axhline(high, 0, 1 / len(DIMS), color=INK, lw=0.8, ls=":")
    for across, beta, said in (
        (2, 0.55, r"$\beta \leq 1$: T4.3"),
        (2, 28.0, "$(n-1)\\,\\tau^*_\\beta < \\pi/2$\n(T5.1)"),
        (2, 1.75, "open"),
        ((2 + N) / 2, 28.0, r"$d \geq 3$: T6.1"),
        (N, 28.0, r"$d \geq n$: T6.3"),
    ):
        ax.text(across, beta, said, ha="center", va="center", fontsize=9)
    ax.set(yscale="log", xlim=(DIMS[0] - 0.5, N + 0.5), ylim=(LOW, HIGH))
    ax.set_xticks(DIMS, [f"{d}" if d < N else f"${N} = n$" for d in DIMS])
    ax.set_yticks([0.1, 1, 10], ["0.1", "1", "10"])
    ax.set(xlabel="dimension $d$", ylabel=r"inverse temperature $\beta$")


RECIPE = Recipe(
    "P-fig2",
    "[P] Fig. 2",
    "Green: SA is proven to end in one cluster (darker: at an exponential rate). Points: runs from "
    "uniform starts, coloured by the time they took, which becomes very long for large β.",
    _make,
)
