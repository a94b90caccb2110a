"""[S]: several heads. Where tokens end, how fast, and what the eigenvalues of ΣV_h say."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnflow import initial, observe, weights
from attnflow.figures.recipe import Picture, Recipe, Size, by_size
from attnflow.figures.scipy_solution import COARSE_TOL, Head, compare_with_scipy, pure
from attnflow.figures.slides.vertices import filled, vertices
from attnflow.plot.polytopes import draw_hull
from attnflow.plot.style import FAINT, INK, PALETTE
from attnflow.plot.tokens import TokenView
from attnflow.simulation import Fixed, simulate
from attnflow.systems import PureAttention
from attnflow.verdicts import Quantity

MAX_HEADS = 16
"""The largest number of heads; fewer are repeated until there are so many."""

TIMES = np.linspace(0.0, 12.0, 31)
STEP = 0.2
FITTED = (TIMES >= 5.0) & (TIMES <= 8.5)
"""When distances to the end fall exponentially."""

SCIPY_UNTIL = 0.8
"""Until then runs are compared with SciPy's: later x is so large that steps do not resolve it."""

RANDOM_V_TOL = 5e-2
"""How far steps of 0.2 may be off with random V_h, in units of the way: a few per cent."""

MAX_TIME_SHOWN = 10.0
"""Distances are drawn up to here: later the last state is no longer the end."""

Runs = dict[int, dict[str, np.ndarray]]
"""Rescaled tokens (draws, T, n, d) for each number of heads and each kind of start."""


@jax.jit
@jax.vmap
def _flow(
    scores: Float[Array, "H d d"],
    V: Float[Array, "H d d"],
    x0: Float[Array, "n d"],
    masses: Float[Array, " n"],
) -> Float[Array, "T n d"]:
    """Pure attention with MAX_HEADS heads: the one program that all runs of this figure are."""
    system = PureAttention(Q=scores, V=V)
    return simulate(system, x0, TIMES, method=Fixed(STEP), masses=masses).xs


def _slots(W: Float[np.ndarray, "*b H d d"]) -> Float[np.ndarray, "*b S d d"]:
    """Heads repeated until there are MAX_HEADS of them."""
    return np.repeat(W, MAX_HEADS // W.shape[-3], axis=-3)


def _make(size: Size) -> Picture:
    n, draws = by_size(size, 20, 40), by_size(size, 3, 64)
    heads = by_size(size, (1, 4, MAX_HEADS), (1, 2, 4, 8, MAX_HEADS))
    starts = _starts(n, draws)
    runs = {H: _settled(H, starts, n) for H in heads}
    counts = {s: {H: np.array([vertices(z) for z in runs[H][s]]) for H in heads} for s in starts}
    plane = next(iter(starts))
    away = {H: _away(runs[H][plane]) for H in heads}
    rates = {H: float(np.median([_rate(one) for one in away[H]])) for H in heads}
    growing = {H: _growth(H, len(starts) * draws, n) for H in heads}
    grown = {H: growing[H][0] for H in heads}
    off = np.concatenate([np.diff(grown[H], axis=1) for H in heads])
    places = [counts[plane][H].mean() for H in heads]
    apart = max(abs(rate - 1) for rate in rates.values())
    solved = [_off(H, zs) for H in heads for zs in runs[H].values()]
    random = max(growing[H][1] for H in heads)
    seen = (
        Quantity("places in the plane, least mean", min(places), "≥", 1.5),
        Quantity("places over tokens in the plane, largest mean", max(places) / n, "≤", 0.3),
        Quantity("rate of convergence, from 1 at most", apart, "≤", 0.1),
        Quantity("growth of tokens less Re λ₁(ΣV_h), median", np.median(np.abs(off)), "≤", 0.05),
        Quantity(
            "off SciPy's solution of [E](1), over the way, V_h = I/H", max(solved), "≤", COARSE_TOL
        ),
        Quantity(
            "off SciPy's solution of [E](1), over the way, V_h random", random, "≤", RANDOM_V_TOL
        ),
    )
    numbers = {
        "places where tokens end": counts,
        "rate of convergence, median of draws": rates,
        "Re λ₁(ΣV_h) and growth rate": grown,
    }
    return Picture(_drawn(runs, counts, away, grown), numbers, seen)


def _starts(n: int, draws: int) -> dict[str, np.ndarray]:
    few: Any = {"key": 1, "batch": draws}
    return {
        f"plane, {n} tokens": np.asarray(initial.cube(n, 2, side=4.0, **few)),
        f"plane, {n // 2} tokens": np.asarray(initial.cube(n // 2, 2, side=4.0, **few)),
        "unit circle": np.asarray(initial.sphere(n, 2, **few)),
        "space": np.asarray(initial.cube(n, 3, side=4.0, **few)),
    }


def _settled(H: int, starts: dict[str, np.ndarray], n: int) -> dict[str, np.ndarray]:
    """Tokens z = e^{−t} x for H heads whose scores are positive definite, with V_h = I/H."""
    scores = _slots(_scores(H))
    wide, masses = zip(*(filled(x0, n, 3) for x0 in starts.values()), strict=True)
    x0, m = np.concatenate(wide), np.repeat(np.stack(masses), len(wide[0]), axis=0)
    V = np.broadcast_to(np.eye(3) / MAX_HEADS, (len(x0), MAX_HEADS, 3, 3))
    xs = _flow(np.broadcast_to(scores, V.shape), V, x0, m)
    each = np.split(np.exp(-TIMES)[:, None, None] * np.asarray(xs), len(starts))
    return {
        start: zs[..., : own.shape[1], : own.shape[2]]
        for (start, own), zs in zip(starts.items(), each, strict=True)
    }


def _scores(H: int) -> Float[np.ndarray, "H d d"]:
    """Random and positive definite."""
    G = np.asarray(weights.ginibre(3, heads=H, key=jax.random.key(H)))
    return (G @ np.swapaxes(G, -1, -2) / 3 + np.eye(3)) / 2


def _off(H: int, zs: Float[np.ndarray, "draws T n d"]) -> float:
    """How far tokens x = e^t z of one start are from SciPy's, without slots, copies and zeros."""
    d = zs.shape[-1]
    field = pure(*(Head(Q[:d, :d], None, 1 / H) for Q in _scores(H)))
    xs = np.exp(TIMES)[:, None, None] * zs[0]
    return float(compare_with_scipy("", field, TIMES, xs, until=SCIPY_UNTIL).value)


def _growth(H: int, draws: int, n: int) -> tuple[Float[np.ndarray, "draws 2"], float]:
    """Re λ₁(ΣV_h) and the rate at which tokens grow in the second half, for random V_h.

    With them how far the first draw is from SciPy's.
    """
    V = np.asarray(weights.ginibre(3, heads=H * draws, key=jax.random.key(100 + H)))
    V = V.reshape(draws, H, 3, 3) / np.sqrt(3 * H)
    own = _slots(V) * (H / MAX_HEADS)
    x0 = np.asarray(initial.gaussian(n, 3, key=0, batch=draws))
    xs = _flow(np.broadcast_to(np.eye(3), own.shape), own, x0, np.ones((draws, n)))
    size = np.linalg.norm(np.asarray(xs), axis=-1).max(axis=-1)
    middle = len(TIMES) // 2
    rate = np.log(size[:, -1] / size[:, middle]) / (TIMES[-1] - TIMES[middle])
    field = pure(*(Head(V=V_h) for V_h in V[0]))
    off = compare_with_scipy("", field, TIMES, np.asarray(xs)[0], until=SCIPY_UNTIL).value
    leading = np.linalg.eigvals(V.sum(axis=1)).real.max(axis=-1)
    return np.column_stack([leading, rate]), float(off)


def _away(zs: Float[np.ndarray, "draws T n d"]) -> Float[np.ndarray, "draws T"]:
    """How far the farthest token is from where it ends, in units of the cloud's size."""
    size = np.linalg.norm(zs[:, 0], axis=-1).max(axis=-1)
    return np.linalg.norm(zs - zs[:, -1:], axis=-1).max(axis=-1) / size[:, None]


def _rate(away: Float[np.ndarray, " T"]) -> float:
    return observe.exponential_rate(TIMES[FITTED], np.maximum(away[FITTED], 1e-15)).rate


def _drawn(runs: Runs, counts: Any, away: Any, grown: Any) -> Figure:
    figure = Figure(figsize=(10.6, 6.0), layout="constrained")
    rows: Any = figure.subfigures(2, 1, height_ratios=(1, 1.05))
    above, below = rows
    plane = next(iter(counts))
    shown = [(plane, 1), (plane, 4), (plane, 16), ("unit circle", 4), ("space", 4)]
    for ax, (start, H) in zip(above.subplots(1, len(shown)), shown, strict=True):
        _draw_end(ax, runs[H][start][0])
        ax.set_title(f"$H = {H}$, {start}")
    left, middle, right = below.subplots(1, 3)
    for start, colour in zip(counts, PALETTE, strict=False):
        _bars(left, counts[start], colour, start)
    left.set(ylabel="places where tokens end", ylim=(0, 1.4 * left.get_ylim()[1]))
    left.legend(fontsize=9, ncols=2, loc="upper center", columnspacing=0.8, handlelength=1.2)
    early = TIMES <= MAX_TIME_SHOWN
    for H, colour in zip(away, PALETTE, strict=False):
        middle.semilogy(
            TIMES[early], np.median(away[H], axis=0)[early], color=colour, label=f"$H = {H}$"
        )
        right.plot(*grown[H].T, "o", ms=3.5, color=colour, label=f"$H = {H}$", alpha=0.8)
    middle.semilogy(TIMES[early], 2 * np.exp(-TIMES[early]), color=INK, ls=":", label="$2e^{-t}$")
    middle.set(xlabel="time $t$", ylabel="distance to the end", xlim=(0, MAX_TIME_SHOWN))
    middle.legend(fontsize=9, loc="lower left")
    ends = [min(right.get_xlim()[0], 0.0), right.get_xlim()[1]]
    right.plot(ends, ends, color=FAINT, lw=0.8, zorder=0)
    right.set(xlabel=r"leading Re $\lambda$ of $\sum_h V_h$", ylabel="growth rate of tokens")
    right.legend(fontsize=9, handletextpad=0.1)
    return figure


def _draw_end(ax: Axes, zs: Float[np.ndarray, "T n d"]) -> None:
    """Paths of the tokens, where they end, and the hull of these places."""
    view = TokenView(zs, False)
    view.prepare(ax)
    ax.axis("off")
    draw_hull(ax, view, observe.hull(zs[-1], 1e-2))
    paths = np.array([view.project(z)[0] for z in zs])
    ax.plot(paths[..., 0], paths[..., 1], color=PALETTE[0], lw=0.6, alpha=0.35)
    ax.plot(*paths[0].T, ".", color=FAINT, ms=3)
    ax.plot(*paths[-1].T, "o", color=PALETTE[0], ms=5, mec="white", mew=0.5)


def _bars(ax: Axes, found: dict[int, np.ndarray], colour: str, label: str) -> None:
    """Means over draws with two standard errors, against H."""
    mean = [v.mean() for v in found.values()]
    error = [2 * v.std(ddof=1) / np.sqrt(len(v)) for v in found.values()]
    ax.errorbar(list(found), mean, error, fmt="o-", ms=4, capsize=3, color=colour, label=label)
    ax.set_xscale("log", base=2)
    ax.set_xticks(list(found), [str(H) for H in found])
    ax.set_xlabel("heads $H$")


RECIPE = Recipe(
    "S-multihead",
    "[S] multi-head",
    "H = 1 … 16 heads. Above, where tokens end in the plane, from the unit circle and in space "
    "(V_h = I/H, positive definite scores). Below, how many places these are; that tokens get "
    "there like e^{−t} whatever H; and, for random V_h, that tokens grow like the "
    "leading eigenvalue of ΣV_h where it has a positive real part.",
    _make,
)
