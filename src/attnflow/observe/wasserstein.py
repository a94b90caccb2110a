"""Wasserstein distances between tokens, and between tokens and a density."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike, Float, Real

from attnflow.checks import require_finite, require_nonnegative, require_state
from attnflow.errors import InputError
from attnflow.extras import import_optional
from attnflow.observe import circle_transport
from attnflow.randomness import RandomKey, as_key
from attnflow.retired import renamed_arguments
from attnflow.spaces import Circle, Euclidean, Space, Sphere, admit_unit_rows, require_angles

MAX_EXACT_PAIRS = 2**24
"""Up to this many pairs of tokens (4,096 against 4,096) the optimal plan is computed."""

DIRECTIONS = 64
"""The number of random directions (on the sphere: great circles) that tokens are projected to."""

BLOCK_ROWS = 512


class Cells(NamedTuple):
    """A density on the circle by its averages over N equal cells, the first from `start` on."""

    rho: Real[ArrayLike, " N"]
    start: float | int = 0.0


@dataclass(frozen=True)
class Wasserstein:
    """A distance, how it was computed, and how far it may be off.

    Attributes:
        distance: the distance.
        method: "exact" is W_p up to rounding. "sliced" is not W_p but its mean over projections to
            random lines or great circles, `(mean W_p^p)^{1/p}`: in R^d at most W_p, and usually far
            below it.
        error: 0 for "exact", the standard error over the projections for "sliced".
    """

    distance: float
    method: str
    error: float

    def __float__(self) -> float:
        return self.distance


@renamed_arguments(seed="key")
def wasserstein(
    x: Real[ArrayLike, "n d"] | Cells,
    y: Real[ArrayLike, "m d"] | Cells,
    p: int = 1,
    *,
    space: Space | None = None,
    masses: Real[ArrayLike, " n"] | None = None,
    other_masses: Real[ArrayLike, " m"] | None = None,
    key: RandomKey = 0,
) -> Wasserstein:
    """W1 or W2 between tokens x and y for the distance of a space; R^d without one.

        W_p(μ, ν)^p = min over plans of ∫ dist(x, y)^p

    On the circle (`Circle()` with angles `(n, 1)`, or `Sphere()` with d = 2) and on the line it is
    exact for any number of tokens. On `Sphere()`, with angles as distances, and in R^d it comes
    from POT (the extra `transport`): exact up to 4,096 tokens against as many (some 10 s), and
    sliced above; the result says which. Runs on the host.

    Args:
        x: tokens, shape (n, d), or a density on the circle as `Cells`.
        y: tokens, shape (m, d), or a density on the circle as `Cells`.
        p: 1 or 2.
        space: `Circle()`, `Sphere()` or `Euclidean()`, which is the default.
        masses: those of x, shape (n,), equal by default; only their shares count.
        other_masses: those of y, shape (m,), likewise.
        key: an integer or a JAX key, for the directions of a sliced distance. The default 0 takes
            the same directions in every call, so that distances can be compared.

    >>> x, y = np.array([[0.0], [1.0]]), np.array([[0.5], [3.5]])
    >>> wasserstein(x, y)
    Wasserstein(distance=1.5, method='exact', error=0.0)
    >>> uniform = Cells(np.ones(8))
    >>> round(wasserstein(np.array([[1.0]]), uniform, space=Circle()).distance, 6)
    1.570796
    """
    if p not in (1, 2):
        raise InputError(f"p must be 1 or 2, but it is {p!r}.")
    space = Euclidean() if space is None else space
    if not isinstance(space, (Circle, Sphere, Euclidean)):
        raise InputError(f"space must be Circle(), Sphere() or Euclidean(), not {space!r}.")
    if isinstance(x, Cells) or isinstance(y, Cells) or _is_circle(space, x, y):
        mu = _on_circle(x, masses, space, "x", "masses")
        nu = _on_circle(y, other_masses, space, "y", "other_masses")
        solve = circle_transport.first if p == 1 else circle_transport.second
        return Wasserstein(solve(mu, nu), "exact", 0.0)
    a, m = _tokens(x, masses, "x", "masses")
    b, w = _tokens(y, other_masses, "y", "other_masses")
    if a.shape[1] != b.shape[1]:
        raise InputError(
            f"x and y must have the same d, but they are in R^{a.shape[1]} and R^{b.shape[1]}."
        )
    return Wasserstein(*_cloud(space, p, a, b, m, w, key))


def _cloud(space: Space, p: int, a: Any, b: Any, m: Any, w: Any, key: RandomKey) -> Any:
    if space.unit:
        a, b = _unit(a, "x"), _unit(b, "y")
    if a.shape[1] == 1:
        return circle_transport.line(a[:, 0], b[:, 0], m, w, p), "exact", 0.0
    if len(a) * len(b) <= MAX_EXACT_PAIRS:
        return exact(a, b, m, w, p, space), "exact", 0.0
    mean, error = sliced(a, b, m, w, p, space, key)
    return mean, "sliced", error


def _is_circle(space: Space, x: Any, y: Any) -> bool:
    plane = all(np.ndim(z) == 2 and np.shape(z)[1] == 2 for z in (x, y))
    return space.round and (space.flat or plane)


def _on_circle(
    x: Any, masses: Any, space: Space, name: str, of_masses: str
) -> circle_transport.Pieces:
    if isinstance(x, Cells):
        return _cells(x, masses, space, name, of_masses)
    points, shares = _tokens(x, masses, name, of_masses)
    if space.unit and points.shape[1] == 2:
        points = _unit(points, name)
        return circle_transport.atoms(np.arctan2(points[:, 1], points[:, 0]), shares)
    require_angles(points, name)
    return circle_transport.atoms(points[:, 0], shares)


def _cells(
    x: Cells, masses: Any, space: Space, name: str, of_masses: str
) -> circle_transport.Pieces:
    if not space.round:
        raise InputError(f"{name} is a density on the circle: space must be Circle() or Sphere().")
    if masses is not None:
        raise InputError(f"{of_masses} must be None where {name} is a density.")
    rho: Float[np.ndarray, " N"] = np.asarray(x.rho, dtype=float)
    if rho.ndim != 1 or not len(rho):
        raise InputError(f"{name}.rho must be a vector of cell averages, not of shape {rho.shape}.")
    _require_mass(rho, f"{name}.rho")
    return circle_transport.cells(rho, x.start)


def _tokens(x: Any, masses: Any, name: str, of_masses: str) -> tuple[np.ndarray, np.ndarray]:
    """The tokens and their shares of the mass."""
    points = np.asarray(x, dtype=float)
    require_state(points, masses, name, of_masses)
    require_finite(points, name)
    if masses is None:
        return points, np.full(len(points), 1 / len(points))
    shares = np.asarray(masses, dtype=float)
    _require_mass(shares, of_masses)
    return points, shares / shares.sum()


def _unit(points: np.ndarray, name: str) -> np.ndarray:
    return np.asarray(admit_unit_rows(jnp.asarray(points), name))


def _require_mass(values: np.ndarray, name: str) -> None:
    require_nonnegative(values, name)
    if not values.sum() > 0:
        raise InputError(f"{name} must have an entry above 0, but all are 0.")


Points = Float[np.ndarray, "_ d"]
Shares = Float[np.ndarray, " _"]


def exact(a: Points, b: Points, m: Shares, w: Shares, p: int, space: Space) -> float:
    """W_p from the optimal plan, a linear programme.

    >>> from attnflow.spaces import Euclidean
    >>> half, a, b = np.full(2, 0.5), np.array([[0.0], [1.0]]), np.array([[2.0], [1.0]])
    >>> exact(a, b, half, half, 1, Euclidean())
    1.0
    """
    value, log = pot().emd2(m, w, costs(a, b, p, space), log=True, numItermax=10_000_000)
    if log["warning"] is not None:
        raise RuntimeError(f"the optimal plan was not found: {log['warning']}")
    return float(max(value, 0.0) ** (1 / p))


def sliced(
    a: Points, b: Points, m: Shares, w: Shares, p: int, space: Space, key: RandomKey
) -> tuple[float, float]:
    """`(mean W_p^p)^{1/p}` of projections to random lines, and its standard error over them.

    On the sphere projections are to great circles, along geodesics, and distances are angles
    (Bonet et al. 2023).

    >>> from attnflow.spaces import Euclidean
    >>> a, share = np.eye(3), np.full(3, 1 / 3)
    >>> sliced(a, a, share, share, 1, Euclidean(), key=0)
    (0.0, 0.0)
    """
    if space.unit:
        slicer, unit = pot().sliced_wasserstein_sphere, 2 * np.pi
    else:
        slicer, unit = pot().sliced_wasserstein_distance, 1.0
    seed = int(jax.random.bits(as_key(key), dtype=np.uint32))
    _, log = slicer(a, b, m, w, n_projections=DIRECTIONS, p=p, seed=seed, log=True)
    powers = np.asarray(log["projected_emds"], dtype=float) * unit**p
    mean, error = powers.mean(), powers.std(ddof=1) / np.sqrt(len(powers))
    return float(mean ** (1 / p)), float(error / (p * mean ** (1 - 1 / p))) if mean > 0 else 0.0


def costs(a: Points, b: Points, p: int, space: Space) -> Float[np.ndarray, "n m"]:
    """dist(a_i, b_j)^p in the space.

    >>> from attnflow.spaces import Euclidean
    >>> print(costs(np.zeros((1, 2)), np.array([[3.0, 4.0]]), 2, Euclidean()))
    [[25.]]
    """
    rows = []
    for i in range(0, len(a), BLOCK_ROWS):
        here, there = np.broadcast_arrays(a[i : i + BLOCK_ROWS, None, :], b[None, :, :])
        rows.append(np.asarray(space.distance(jnp.asarray(here), jnp.asarray(there))))
    return np.concatenate(rows) ** p


def pot() -> Any:
    """POT, which is an extra: it is imported only here."""
    return import_optional("ot", "transport", "distances on the sphere and in R^d need POT")
