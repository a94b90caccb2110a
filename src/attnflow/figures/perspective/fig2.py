"""[P] Fig. 2: where convergence to one cluster is proven, and runs that go there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from scipy.integrate import quad

from attnflow import initial, observe
from attnflow.figures.recipe import Picture, Recipe, Size, by_size
from attnflow.figures.scipy_solution import DEFAULT_TOL, compare_with_scipy, sphere
from attnflow.plot.style import INK, PALETTE
from attnflow.simulation import Coarsening, simulate
from attnflow.systems import SA
from attnflow.theory import large_beta
from attnflow.verdicts import Quantity

N = 6
DIMS = tuple(range(2, N + 1))
BETAS = (0.1, 0.3, 1.0, 3.0, 6.0, 10.5, 14.0)
MAX_TIME = 1e14
"""The slowest merges are looked for until this time; later, rounding of the time would show."""

TIMES = np.array([0.0, 0.5, 1.0, 2.0, *np.geomspace(4.0, MAX_TIME, 48)])
SCIPY_UNTIL, METASTABLE_LIFE = 2.0, 1e3
"""Until when runs are compared with SciPy's, and from what life on two clusters are metastable."""

MIN_BETA_SHOWN, MAX_BETA_SHOWN = 0.06, 48.0


def proven(d: int, beta: float | int, n: int = N) -> bool:
    """Whether SA is proven to end in one cluster from almost every start.

    On the circle for β ≤ 1 (T4.3) and for `(n−1) τ*_β < π/2` (T5.1); for d ≥ 3 always (T6.1).

    >>> proven(2, 0.5), proven(2, 3.0), proven(3, 3.0)
    (True, False, True)
    """
    return d >= 3 or beta <= 1 or beta >= large_beta(n, d)


class Found(NamedTuple):
    """The runs at one β: when the last merge was, infinite if some tokens are left apart.

    `off` is how far early tokens are from SciPy's; `lives` are long lives of the last two clusters
    beside their quadrature.
    """

    times: Float[np.ndarray, "D S"]
    off: float
    lives: list[tuple[float, float]]


def runs_to_one(beta: float, starts: int) -> Found:
    """Run all dimensions and starts at one β.

    Tokens of every dimension are put in R^n by coordinates that are 0 and stay so.
    """
    x0 = np.zeros((len(DIMS), starts, N, N))
    for k, d in enumerate(DIMS):
        x0[k, :, :, :d] = initial.sphere(N, d, key=d, batch=starts)
    run = simulate(SA(beta), x0, TIMES, method=Coarsening())
    if run.merges is None:
        raise RuntimeError("a run with Coarsening has a merge tree.")
    times, joined = np.asarray(run.merges.time), np.asarray(run.merges.count)
    last = np.where(joined == N - 1, times[..., -1], np.inf)
    xs = np.asarray(run.xs)
    off = compare_with_scipy("", sphere(beta=beta), TIMES, xs, until=SCIPY_UNTIL).value
    members = [xs[place] for place in np.ndindex(*last.shape)]
    found = [_life(beta, one, end) for one, end in zip(members, last.ravel(), strict=True)]
    return Found(last, float(off), [pair for pair in found if pair is not None])


def _life(beta: float, xs: Float[np.ndarray, "T n d"], end: float) -> tuple[float, float] | None:
    """How long the last two clusters lived from a save on, measured and by quadrature."""
    k = int(np.sum(TIMES < end - METASTABLE_LIFE)) - 1 if np.isfinite(end) else -1  # noqa: SIM300
    pair = observe.clusters(xs[k], 1e-4)
    if k < 0 or pair.count != 2:
        return None
    angle = np.arccos(np.clip(pair.centers[0] @ pair.centers[1], -1, 1))
    return end - TIMES[k], life_of_two(beta, angle, np.asarray(pair.masses) / N)


def life_of_two(beta: float, angle: float, shares: Float[np.ndarray, " two"]) -> float:
    """The time in which two clusters with given shares of the tokens meet.

    Both go along their great circle, `θ' = −(w₁ + w₂) sin θ`, and attention to the other one is
    `w₁ = m₂ e^{β cos θ} / (m₁ e^β + m₂ e^{β cos θ})`. The last approach takes log(1/ε) and no more.

    >>> print(round(life_of_two(0.0, np.pi / 2, np.array([0.5, 0.5])), 6), round(np.log(2e6), 6))
    14.508658 14.508658
    """
    m, other = shares, shares[::-1]

    def slowness(log_angle: float) -> float:
        theta = np.exp(log_angle)
        pull = np.exp(-2 * beta * np.sin(theta / 2) ** 2)
        return theta / (np.sum(other * pull / (m + other * pull)) * np.sin(theta))

    return float(quad(slowness, np.log(1e-6), np.log(angle), epsrel=1e-9, limit=500)[0])


def _make(size: Size) -> Picture:
    starts = by_size(size, 12, 32)
    found = [runs_to_one(beta, starts) for beta in BETAS]
    times = np.stack([one.times for one in found])
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
        np.log10(np.minimum(typical, MAX_TIME)),
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
    lives = np.array([pair for one in found for pair in one.lives]).reshape(-1, 2)
    numbers["long lives of the last two clusters, measured and by quadrature"] = lives
    off_life = np.abs(lives[:, 0] / lives[:, 1] - 1).max(initial=0.0) if len(lives) else np.nan
    seen = (
        Quantity("share of one cluster where it is proven", ended[sure].mean(), "≥", 1.0),
        Quantity("|life of the last two clusters / its quadrature − 1|", off_life, "≤", 1e-2),
        Quantity(
            "off SciPy's solution of (SA), over the way",
            max(one.off for one in found),
            "≤",
            DEFAULT_TOL,
        ),
        Quantity(f"time at β = {BETAS[-1]:g} / at {BETAS[0]:g}, d = 2", slow, "≥", 100.0),
    )
    return Picture(figure, numbers, seen)


def _zones(ax: Axes) -> None:
    """The proven regimes as green columns, darker where the rate is exponential."""
    light, dark = "#D7EBDD", "#A9D5B8"
    high = float(large_beta(N, 2))
    for d in DIMS:
        spans = (
            [(MIN_BETA_SHOWN, MAX_BETA_SHOWN)]
            if d >= 3
            else [(MIN_BETA_SHOWN, 1.0), (high, MAX_BETA_SHOWN)]
        )
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
    ax.set(yscale="log", xlim=(DIMS[0] - 0.5, N + 0.5), ylim=(MIN_BETA_SHOWN, MAX_BETA_SHOWN))
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
