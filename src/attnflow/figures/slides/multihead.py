"""[S]: several heads. Where tokens end, how fast, and what the eigenvalues of ΣV_h say."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnflow import initial, observe, weights
from attnflow.figures.recipe import Picture, Recipe, Size, sized
from attnflow.figures.slides.vertices import filled, vertices
from attnflow.observe import exponential_rate
from attnflow.plot.hulls import draw_hull
from attnflow.plot.style import FAINT, PALETTE
from attnflow.plot.tokens import Stage
from attnflow.simulate import Fixed, simulate
from attnflow.systems import PureAttention, RescaledAttention
from attnflow.theory.checks.base import Quantity

HEADS = (1, 2, 4, 8, 16)
SLOTS = HEADS[-1]
TIMES = np.linspace(0.0, 16.0, 65)
FITTED = (TIMES >= 5.0) & (TIMES <= 10.0)
"""When distances to the end fall exponentially."""

LATE = 12.0


def _starts(n: int, draws: int) -> dict[str, np.ndarray]:
    few = {"seed": 1, "batch": draws}
    return {
        f"plane, {n} tokens": np.asarray(initial.cube(n, 2, side=4.0, **few)),
        f"plane, {n // 2} tokens": np.asarray(initial.cube(n // 2, 2, side=4.0, **few)),
        "unit circle": np.asarray(initial.sphere(n, 2, **few)),
        "space": np.asarray(initial.cube(n, 3, side=4.0, **few)),
    }


def _make(size: Size) -> Picture:
    n, draws = sized(size, 24, 40), sized(size, 4, 64)
    starts = _starts(n, draws)
    runs = {(start, H): _run(H, x0, n) for H in HEADS for start, x0 in starts.items()}
    counts = {key: np.array([vertices(z) for z in zs]) for key, zs in runs.items()}
    rates = {H: np.array([_rate(z) for z in runs[next(iter(starts)), H]]) for H in HEADS}
    grown = {H: _growth(H, sized(size, 8, 64)) for H in HEADS}
    figure = Figure(figsize=(11.0, 5.8), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=(1.1, 1))
    plane = next(iter(starts))
    shown = [(plane, 1), (plane, 4), (plane, 16), ("unit circle", 4), ("space", 4)]
    for ax, (start, H) in zip(above.subplots(1, len(shown)), shown, strict=True):
        _draw_end(ax, runs[start, H][0])
        ax.set_title(f"$H = {H}$, {start}", fontsize=10)
    left, middle, right = below.subplots(1, 3)
    for start, colour in zip(starts, PALETTE, strict=False):
        _bars(left, {H: counts[start, H] for H in HEADS}, colour, start)
    left.set(ylabel="places where tokens end", ylim=(0, None))
    left.legend(fontsize=8)
    _bars(middle, rates, PALETTE[0], None)
    middle.axhline(1.0, color=FAINT, lw=0.8, ls=":")
    middle.set(ylabel="rate of convergence", ylim=(0, None))
    _draw_growth(right, grown)
    one = np.abs(np.diff(grown[1], axis=1))
    seen = (
        Quantity("H = 1: rate of convergence, from 1", np.abs(rates[1] - 1).max(), "≤", 0.1),
        Quantity("H = 1: places where tokens end", counts[plane, 1].max(), "≤", n // 2),
        Quantity(
            "H = 16 over H = 1: places where tokens end",
            counts[plane, 16].mean() / counts[plane, 1].mean(),
            "≤",
            1,
        ),
        Quantity("H = 1: growth of tokens less Re λ₁(V), median", np.median(one), "≤", 0.1),
    )
    numbers = {
        "places where tokens end": {f"{s}, H = {H}": c for (s, H), c in counts.items()},
        "rate of convergence": rates,
        "Re λ₁(ΣV_h) and growth rate": grown,
    }
    return Picture(figure, numbers, seen)


def _keys(H: int, stream: int) -> Any:
    return jax.random.fold_in(jax.random.key(stream), H)


def _run(H: int, x0: np.ndarray, longest: int) -> Float[np.ndarray, "draws T n d"]:
    """Rescaled attention with H heads whose scores are positive definite, and ΣV_h = I.

    Each head is there 16/H times with V = I/16, so that one compiled program runs any number.
    """
    G = np.asarray(weights.ginibre(3, heads=H, key=_keys(H, 0)))
    scores = np.repeat(G @ np.swapaxes(G, -1, -2) / 3 + 0.2 * np.eye(3), SLOTS // H, axis=0)
    system = RescaledAttention(np.broadcast_to(np.eye(3), scores.shape), scores, 1 / SLOTS)
    wide, masses = filled(x0, longest, 3)
    runs = simulate(system, wide, TIMES, method=Fixed(0.1), masses=masses)
    return np.asarray(runs.xs)[..., : x0.shape[1], : x0.shape[2]]


def _rate(zs: Float[np.ndarray, "T n d"]) -> float:
    """How fast the farthest token comes to where it ends."""
    away = np.linalg.norm(zs - zs[-1], axis=-1).max(axis=-1)
    return exponential_rate(TIMES[FITTED], np.maximum(away[FITTED], 1e-15)).rate


def _growth(H: int, draws: int) -> Float[np.ndarray, "draws 2"]:
    """Re λ₁(ΣV_h), and the rate at which tokens of pure attention grow late, for random V_h."""
    found = []
    for key in jax.random.split(_keys(H, 1), draws):
        V = np.asarray(weights.ginibre(3, heads=H, key=key)) / np.sqrt(3 * H)
        system = PureAttention(V=np.repeat(V, SLOTS // H, axis=0) * (H / SLOTS))
        ts = np.array([0.0, LATE / 2, LATE])
        xs = simulate(system, initial.gaussian(12, 3, seed=H), ts, method=Fixed(0.05)).xs
        size = np.linalg.norm(np.asarray(xs), axis=-1).max(axis=-1)
        found.append(
            (np.linalg.eigvals(V.sum(axis=0)).real.max(), np.log(size[2] / size[1]) / (LATE / 2))
        )
    return np.array(found)


def _draw_end(ax: Axes, zs: Float[np.ndarray, "T n d"]) -> None:
    stage = Stage(zs, False)
    stage.set(ax)
    ax.axis("off")
    hull = observe.hull(zs[-1], 1e-2)
    draw_hull(ax, stage, hull)
    start, end = stage.view(zs[0])[0], stage.view(zs[-1])[0]
    paths = np.array([stage.view(z)[0] for z in zs])
    ax.plot(paths[..., 0], paths[..., 1], color=PALETTE[0], lw=0.6, alpha=0.35)
    ax.plot(*start.T, ".", color=FAINT, ms=3)
    ax.plot(*end.T, "o", color=PALETTE[0], ms=5, mec="white", mew=0.5)


def _bars(ax: Axes, found: dict[int, np.ndarray], colour: str, label: str | None) -> None:
    """Means over draws with two standard errors, against H."""
    mean = [v.mean() for v in found.values()]
    error = [2 * v.std(ddof=1) / np.sqrt(len(v)) for v in found.values()]
    ax.errorbar(list(found), mean, error, fmt="o-", ms=4, capsize=3, color=colour, label=label)
    ax.set_xscale("log", base=2)
    ax.set_xticks(list(found), [str(H) for H in found])
    ax.set_xlabel("heads $H$")


def _draw_growth(ax: Axes, grown: dict[int, np.ndarray]) -> None:
    both = np.concatenate(list(grown.values()))
    ends = [both.min(), both.max()]
    ax.plot(ends, ends, color=FAINT, lw=0.8)
    for (H, pairs), colour in zip(grown.items(), PALETTE, strict=False):
        ax.plot(*pairs.T, "o", ms=4, color=colour, label=f"$H = {H}$", alpha=0.8)
    ax.set(xlabel=r"Re $\lambda_1(\sum_h V_h)$", ylabel="growth rate of tokens")
    ax.legend(fontsize=8)


RECIPE = Recipe(
    "S-multihead",
    "[S] multi-head",
    "H = 1 … 16 heads. Above, where tokens end in the plane, from the unit circle and in space "
    "(ΣV_h = I, positive definite scores); below, how many places these are, how fast tokens "
    "get there, and for random V_h the growth of tokens against the leading eigenvalue of ΣV_h.",
    _make,
)
