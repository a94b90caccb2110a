"""[P] §9.1: tokens that repel each other settle in configurations of known least energy."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnflow import observe
from attnflow.figures.recipe import Picture, Recipe, Size, by_size
from attnflow.plot.polytopes import coxeter_plane, draw_neighbours
from attnflow.plot.style import FAINT, PALETTE
from attnflow.plot.tokens import TokenView
from attnflow.theory import Configuration, known_sharp, optimal_configuration, sharp, uniform_energy
from attnflow.verdicts import Quantity

QUICK = ((12, 3, 8.0), (16, 5, 5.0))
PAPER = (
    (4, 3, 4.0),
    (6, 3, 4.0),
    *QUICK,
    (27, 6, 6.0),
    (56, 7, 8.0),
    (120, 4, 16.0),
    (240, 8, 12.0),
)
"""n, d and a β between the strength of the design and twice that, where energies tell apart."""


def _make(size: Size) -> Picture:
    rows, starts = by_size(size, (QUICK, 2), (PAPER, 32))
    found = [optimal_configuration(n, d, beta, starts=starts, key=0) for n, d, beta in rows]
    columns = len(found) if len(found) <= 4 else (len(found) + 1) // 2
    figure = Figure(figsize=(2.5 * columns, 4.6 * -(-len(found) // columns)), layout="constrained")
    parts = figure.subfigures(-(-len(found) // columns), columns, squeeze=False).ravel()
    for part, one in zip(parts, found, strict=False):
        above, below = part.subplots(2, 1, height_ratios=(1.3, 1))
        _points(above, one)
        _products(below, one)
    parts[0].axes[1].set_ylabel("pairs")
    numbers = {
        f"n = {n}, d = {d}": _numbers(one) for (n, d, _), one in zip(rows, found, strict=True)
    }
    seen = tuple(quantity for one in found for quantity in _seen(one))
    return Picture(figure, numbers, seen)


def _points(ax: Axes, one: Configuration) -> None:
    n, d = one.points.shape
    view = TokenView(
        one.points[None], on_sphere=True, plane=coxeter_plane(one.points) if d > 3 else None
    )
    view.prepare(ax)
    draw_neighbours(ax, view, one.points)
    view.draw(ax, 0, np.zeros(n, int), size=22.0 if n < 100 else 7.0)
    ax.set_title(f"{one.name or 'no known minimum'}\n$n = {n}$, $d = {d}$")


def _products(ax: Axes, one: Configuration) -> None:
    """How many pairs have which inner product: found (dots), and the known minimum's."""
    values, counts = observe.inner_products(_best(one))
    ax.vlines(values, 0, counts, color=FAINT, lw=5, alpha=0.6)
    ax.plot(*one.inner_products, "o", ms=5, color=PALETTE[0])
    ax.set(xlim=(-1.1, 1.0), ylim=(0, 1.15 * counts.max()))
    ax.set_xlabel(r"$\langle x_i, x_j\rangle$")


def _best(one: Configuration) -> np.ndarray:
    """The known minimum with as many points in this dimension."""
    n, d = one.points.shape
    row = known_sharp(n, d)
    if row is None:
        raise RuntimeError(f"no minimum of {n} points in R^{d} is known.")
    return sharp(row.name, n=n, d=d)


def _numbers(one: Configuration) -> dict[str, Any]:
    return {
        "β": one.beta,
        "name": one.name,
        "energy": one.energy,
        "energy of the known minimum": float(observe.energy(_best(one), one.beta)),
        "energy of the uniform measure": uniform_energy(one.beta, one.points.shape[1]),
        "energies of all starts": one.energies,
        "strength as a design": one.strength,
        "starts that found it": one.hits,
    }


def _seen(one: Configuration) -> tuple[Quantity, ...]:
    n, d = one.points.shape
    best = _best(one)
    off = abs(one.energy / float(observe.energy(best, one.beta)) - 1)
    which = f", n = {n}, d = {d}, the best of {len(one.energies)} starts"
    apart = _sorted(one.points) - _sorted(best)
    return (
        Quantity(f"|E_β / known minimum − 1|{which}", off, "≤", 1e-10),
        Quantity(f"inner products off the known ones{which}", abs(apart).max(), "≤", 1e-6),
    )


def _sorted(x: np.ndarray) -> np.ndarray:
    return np.sort((x @ x.T)[np.triu_indices(len(x), 1)])


RECIPE = Recipe(
    "P-repulsive",
    "[P] §9.1",
    "With V = −I the best of several starts settles where E_β is known to be least: in sharp "
    "configurations and, at paper size, in the 600-cell (n = 120, d = 4), which is optimal without "
    "being sharp. Nearest neighbours are joined; beyond d = 3 points are seen in the plane that a "
    "Coxeter element turns. Below, the inner products that were found (dots) on those of the known "
    "minimum (bars).",
    _make,
)
