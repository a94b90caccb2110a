"""Sharp configurations: points on the sphere that no repulsive energy can improve (T9.2).

They are the minimisers of `Σ_{i≠j} e^{β <x_i,x_j>}` for every β > 0, and of every completely
monotonic function of the distance: Cohn and Kumar, *Universally optimal distribution of points on
spheres* (2007), Table 1. The 600-cell is not sharp in their sense and has the same property.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import ArrayLike, Float, Real

from attnflow.checks import require_count, require_finite, require_state
from attnflow.errors import InputError, unknown
from attnflow.observe import inner_products

GOLDEN = (1 + math.sqrt(5)) / 2


class Sharp(NamedTuple):
    """A sharp configuration of n points in R^d.

    Attributes:
        name: its name, as `sharp` takes it.
        n: the number of points.
        d: the dimension of the space around the sphere.
        inner_products: the distinct inner products of different points, increasing.
        strength: the largest t for which they are a spherical t-design.
    """

    name: str
    n: int
    d: int
    inner_products: tuple[float, ...]
    strength: int


def sharp(name: str, *, n: int | None = None, d: int | None = None) -> Float[np.ndarray, "n d"]:
    """The points of a sharp configuration.

    Args:
        name: "polygon", "simplex", "cross-polytope", "icosahedron", "600-cell", "Clebsch",
            "Schläfli", "Gosset" or "E8".
        n: the number of points: needed for a polygon; a simplex has d + 1 unless n asks for fewer.
        d: the dimension: needed for a simplex and a cross-polytope.

    >>> sharp("600-cell").shape, sharp("simplex", d=5).shape
    ((120, 4), (6, 5))
    """
    if name in FAMILIES:
        row = FAMILIES[name](*_sizes(name, n, d))
        return POINTS[name](row)
    if name not in SINGLE:
        raise unknown("configuration", name, POINTS)
    row = SINGLE[name]
    for size, given, right in (("n", n, row.n), ("d", d, row.d)):
        if given not in (None, right):
            raise InputError(f"{size} must be {right} for the {name}, or left out, not {given!r}.")
    return POINTS[name](row)


def known_sharp(n: int, d: int) -> Sharp | None:
    """The sharp configuration of n points in R^d, where there is one in the table.

    >>> known_sharp(240, 8)
    Sharp(name='E8', n=240, d=8, inner_products=(-1.0, -0.5, 0.0, 0.5), strength=7)
    """
    n, d = require_count(n, "n", least=2), require_count(d, "d", least=2)
    if n <= d + 1:
        return _simplex(n, d)
    if d == 2:
        return _polygon(n, d)
    if n == 2 * d:
        return _cross_polytope(n, d)
    return next((row for row in SINGLE.values() if (row.n, row.d) == (n, d)), None)


def recognised(x: Real[ArrayLike, "n d"], tol: float | int = 1e-6) -> str | None:
    """The name of the sharp configuration that has the inner products of x, or None.

    Values must agree to `tol`. The order of points and a rotation do not matter. Runs on the host.

    >>> recognised(np.vstack([np.eye(3), -np.eye(3)]))
    'cross-polytope'
    """
    require_state(x)
    require_finite(x, "x")
    n, d = np.shape(x)
    row = known_sharp(n, d) if min(n, d) > 1 else None
    if row is None:
        return None
    values = inner_products(x, tol).values
    same = len(values) == len(row.inner_products) and np.allclose(
        values, row.inner_products, rtol=0, atol=tol
    )
    return row.name if same else None


def _sizes(name: str, n: int | None, d: int | None) -> tuple[int, int]:
    """How many points in which dimension, from whichever of the two is given."""
    wanted = "n" if name == "polygon" else "d"
    if (n if name == "polygon" else d) is None:
        raise InputError(f"{wanted} must be given for a {name}: it exists for every {wanted}.")
    if name == "polygon":
        return _agreeing(name, require_count(n, "n", least=2), 2, "d", d)
    dim = require_count(d, "d", least=2)
    if name == "cross-polytope":
        return _agreeing(name, 2 * dim, dim, "n", n)
    points = dim + 1 if n is None else require_count(n, "n", least=2)
    if points > dim + 1:
        raise InputError(f"n must be at most d + 1 = {dim + 1} for a simplex, not {n!r}.")
    return points, dim


def _agreeing(name: str, n: int, d: int, size: str, given: int | None) -> tuple[int, int]:
    right = n if size == "n" else d
    if given not in (None, right):
        raise InputError(f"{size} must be {right} for this {name}, or left out, not {given!r}.")
    return n, d


def _polygon(n: int, d: int) -> Sharp:
    values = [math.cos(2 * math.pi * k / n) for k in range(n // 2, 0, -1)]
    return Sharp("polygon", n, d, tuple(values), n - 1)


def _simplex(n: int, d: int) -> Sharp:
    return Sharp("simplex", n, d, (-1 / (n - 1),), 2 if n == d + 1 else 1)


def _cross_polytope(n: int, d: int) -> Sharp:
    return Sharp("cross-polytope", n, d, (-1.0, 0.0), 3)


FAMILIES: dict[str, Callable[[int, int], Sharp]] = {
    "polygon": _polygon,
    "simplex": _simplex,
    "cross-polytope": _cross_polytope,
}
"""Configurations that exist in every dimension, or for every n."""

SINGLE: dict[str, Sharp] = {
    row.name: row
    for row in (
        Sharp("icosahedron", 12, 3, (-1.0, -math.sqrt(0.2), math.sqrt(0.2)), 5),
        Sharp(
            "600-cell",
            120,
            4,
            (-1.0, -GOLDEN / 2, -0.5, -0.5 / GOLDEN, 0.0, 0.5 / GOLDEN, 0.5, GOLDEN / 2),
            11,
        ),
        Sharp("Clebsch", 16, 5, (-3 / 5, 1 / 5), 3),
        Sharp("Schläfli", 27, 6, (-1 / 2, 1 / 4), 4),
        Sharp("Gosset", 56, 7, (-1.0, -1 / 3, 1 / 3), 5),
        Sharp("E8", 240, 8, (-1.0, -0.5, 0.0, 0.5), 7),
    )
}
"""The other rows of the table up to d = 8, by name."""


def _polygon_points(row: Sharp) -> Float[np.ndarray, "n d"]:
    angles = 2 * math.pi * np.arange(row.n) / row.n
    return np.column_stack([np.cos(angles), np.sin(angles)])


def _simplex_points(row: Sharp) -> Float[np.ndarray, "n d"]:
    """Coordinate by coordinate: each new point is over the centre of the earlier ones."""
    n, cosine = row.n, -1 / (row.n - 1)
    x = np.zeros((n, row.d))
    for k in range(n - 1):
        x[k, k] = math.sqrt(1 - x[k, :k] @ x[k, :k])
        x[k + 1 :, k] = (cosine - x[k, :k] @ x[k, :k]) / x[k, k]
    return x


def _cross_polytope_points(row: Sharp) -> Float[np.ndarray, "n d"]:
    return np.vstack([np.eye(row.d), -np.eye(row.d)])


def _icosahedron_points(row: Sharp) -> Float[np.ndarray, "n d"]:
    points = [s for k in range(3) for s in _signed(np.roll([0, 1, GOLDEN], k))]
    return np.array(points) / math.hypot(1, GOLDEN)


def _icosians(row: Sharp) -> Float[np.ndarray, "n d"]:
    """The unit icosians: axes, halves, and even permutations of (φ, 1, 1/φ, 0) / 2."""
    even = [p for p in itertools.permutations(range(4)) if np.linalg.det(np.eye(4)[list(p)]) > 0]
    base = np.array([GOLDEN, 1, 1 / GOLDEN, 0]) / 2
    golden = [s for p in even for s in _signed(base[list(p)])]
    return np.array([*np.eye(4), *-np.eye(4), *_signed(np.full(4, 0.5)), *golden])


def _roots(row: Sharp) -> Float[np.ndarray, "n d"]:
    """The roots of E8 at unit length."""
    axes = np.eye(8)
    pairs = [s for i, j in itertools.combinations(range(8), 2) for s in _signed(axes[i] + axes[j])]
    halves = [s for s in _signed(np.full(8, 0.5)) if np.prod(s) > 0]
    return np.array([*pairs, *halves]) / math.sqrt(2)


def _neighbours(row: Sharp) -> Float[np.ndarray, "n d"]:
    """The nearest neighbours of a point of the configuration one dimension above, seen from it."""
    above = next(other for other in SINGLE.values() if other.d == row.d + 1)
    x = POINTS[above.name](above)
    nearest = above.inner_products[-1]
    around = x[np.abs(x @ x[0] - nearest) < 1e-9] - nearest * x[0]
    # the reflection that takes x_0 to the last axis leaves only the coordinates before it
    w = x[0] - np.eye(above.d)[-1]
    if w @ w > 0:
        around = around - 2 * np.outer(around @ w, w) / (w @ w)
    return around[:, :-1] / math.sqrt(1 - nearest**2)


def _signed(v: Float[np.ndarray, " d"]) -> Iterator[Float[np.ndarray, " d"]]:
    """The vector v with every choice of signs of the entries that are not 0."""
    for signs in itertools.product(*((1, -1) if entry else (1,) for entry in v)):
        yield v * np.array(signs)


POINTS: dict[str, Callable[[Sharp], Float[np.ndarray, "n d"]]] = {
    "polygon": _polygon_points,
    "simplex": _simplex_points,
    "cross-polytope": _cross_polytope_points,
    "icosahedron": _icosahedron_points,
    "600-cell": _icosians,
    "Clebsch": _neighbours,
    "Schläfli": _neighbours,
    "Gosset": _neighbours,
    "E8": _roots,
}
"""How the points of each are made."""
