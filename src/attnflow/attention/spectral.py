"""Sums over tokens through harmonics: O(n) on the circle and on S²."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow.attention import harmonics
from attnflow.attention.blocked import Blocked
from attnflow.attention.task import Backend, Task
from attnflow.checks import require_count, require_positive
from attnflow.errors import InputError
from attnflow.retired import RenamedAttribute, renamed_arguments
from attnflow.spaces import unit_rows

CHUNK = 256
"""Tokens whose harmonics are in memory together."""

ROUNDING = 256
"""Units of rounding, of the total mass, in a sum: a chunk of equal terms rounds as often at most,
random ones about 5 times."""


class Harmonics(NamedTuple):
    """Harmonics on one sphere: their values, the degree of each row, and sizes of table."""

    values: Callable[[Array, int], Array]
    degrees: Callable[[int], np.ndarray]
    sizes: tuple[int, ...]


HARMONICS = {
    2: Harmonics(harmonics.circle, harmonics.circle_degrees, (32, 128, 512)),
    3: Harmonics(harmonics.sphere, harmonics.sphere_degrees, (24, 48, 96)),
}
"""The harmonics on the sphere of R^d, by d."""


class Spectral(Backend):
    """The kernel `e^{β<x,y>}` expanded in harmonics: one pass over keys, one over queries.

    For unit vectors in R² (Fourier modes and Bessel functions) and R³ (spherical harmonics),
    without a mask. Time and memory are O(n).

    The error of the sums is absolute, a few units of rounding of the total mass: it is small
    against the force of many tokens and not against that of a few (see `error_bound`). Where the
    bound exceeds `tol`, or β is beyond the largest number of degrees, the means are those of
    `Blocked`. float32 tokens are summed in float64, unless that is turned off.

    Args:
        degree: the number of degrees; by default β chooses among a few, so that the rest is below
            rounding.
        tol: the largest error bound that is accepted; by default half the digits (1.5e-8, in
            float32 3.5e-4).

    >>> from attnflow.attention import attend
    >>> x = unit_rows(jnp.arange(1.0, 13.0).reshape(6, 2) % 5 - 2)
    >>> means = attend(x, x, x, beta=4.0, unit=True, backend=Spectral(degree=32))
    >>> bool(jnp.allclose(means, attend(x, x, x, beta=4.0), atol=1e-13))
    True
    """

    degree: int | None = eqx.field(static=True, default=None)
    tol: float | None = eqx.field(static=True, default=None)

    tolerance = RenamedAttribute("tol")

    @renamed_arguments(tolerance="tol")
    def __init__(self, degree: int | None = None, tol: float | None = None):
        if degree is not None:
            require_count(degree, "degree", 4)
        if tol is not None:
            require_positive(tol, "tol")
        self.degree, self.tol = degree, tol

    @eqx.filter_jit
    def means(self, task: Task) -> Float[Array, "n d"]:
        """The means from the expansion, or from blocks where it would not be exact enough."""
        double = _in_double(task)
        sums, error = self._sums(double, task.q.dtype)
        bound = _bound(double, sums, error)

        def expanded(task: Task) -> Array:
            scale = double.kind.scale(double.beta)
            means = scale * sums[:, :-1] / double.denominator(sums[:, -1])[:, None]
            return means.astype(task.v.dtype)

        def blocked(task: Task) -> Array:
            return Blocked().means(task)

        return jax.lax.cond(bound <= self._accepted(task), expanded, blocked, task)

    @eqx.filter_jit
    def error_bound(self, task: Task) -> Float[Array, ""]:
        """A bound on the error of every mean, by truncation and rounding, of the expansion.

        It is infinite where the means come from blocks.
        """
        double = _in_double(task)
        bound = _bound(double, *self._sums(double, task.q.dtype))
        bound = jnp.where(bound <= self._accepted(task), bound, jnp.inf)
        return double.kind.scale(double.beta) * bound

    def scores_held(self, n: int) -> int:
        """Those of the blocks that it falls back to; it needs none itself."""
        return Blocked().scores_held(n)

    def _accepted(self, task: Task) -> float:
        if self.tol is not None:
            return self.tol
        return float(jnp.finfo(task.q.dtype).eps) ** 0.5

    def _sums(self, task: Task, wanted: Any) -> tuple[Float[Array, "n e"], Float[Array, ""]]:
        """`Σ_j m_j e^{s_ij − β} (v_j, 1)` and the error of it for unit values and total mass.

        What is left out is below the rounding of the dtype `wanted`.
        """
        n, d = task.q.shape
        if not task.unit or task.mask is not None or d not in HARMONICS:
            raise InputError(
                "backend: spectral sums are for scores β<x_i, x_j>, β ≥ 0, of unit vectors in R² "
                "or R³ without a mask (Q = K = I on the circle or on S²), here in "
                f'R^{d}: leave the backend out, or take "blocked".'
            )
        negative = task.beta < 0  # seen only where β is traced: harmonics are for attraction
        if self.degree is not None:
            return jax.lax.cond(negative, _beyond, partial(_expanded, self.degree), task)
        largest = max(n // 4, HARMONICS[d].sizes[0] ** (d - 1))
        sizes = [size for size in HARMONICS[d].sizes if size ** (d - 1) <= largest]
        rounding = float(jnp.finfo(wanted).eps) / 2
        reaches = [harmonics.reach(size, d, rounding) for size in sizes]
        which = jnp.searchsorted(jnp.asarray(reaches, task.beta.dtype), task.beta)
        which = jnp.where(negative, len(sizes), which)
        return jax.lax.switch(which, [*(partial(_expanded, s) for s in sizes), _beyond], task)


def _in_double(task: Task) -> Task:
    """The task in float64 where that is on: errors of sums are absolute, and O(n) is cheap."""
    return jax.tree.map(lambda leaf: leaf.astype(float), task)


def _bound(task: Task, sums: Float[Array, "n e"], error: Float[Array, ""]) -> Float[Array, ""]:
    """The largest error of a mean, in units of the scale of its kind.

    A row sum that rounding has taken below 0 counts as tiny, so that the bound is huge.
    """
    largest = jnp.max(jnp.linalg.norm(task.v, axis=1))
    row_sums = jnp.maximum(sums[:, -1], jnp.finfo(sums.dtype).tiny)
    smallest = jnp.min(task.denominator(row_sums))
    return jax.lax.stop_gradient((1 + largest) * error * task.total / smallest)


def _expanded(degree: int, task: Task) -> tuple[Array, Array]:
    """The sums with harmonics of degrees below `degree`.

    Chunks are added with compensation (Kahan), so that rounding does not grow with n.
    """
    n, d = task.q.shape
    values, degrees, _ = HARMONICS[d]
    a, rest = harmonics.coefficients(task.beta, degree, d)
    weighted = task.values() if task.masses is None else task.values() * task.masses[:, None]

    @jax.checkpoint
    def collect(carry: tuple[Array, Array], part: tuple[Array, Array]) -> tuple[Any, None]:
        (moments, lost), (keys, weighted) = carry, part
        more = values(keys.T, degree) @ weighted - lost
        total = moments + more
        return (total, (total - moments) - more), None

    rows = a[degrees(degree)][:, None]
    start = jnp.zeros((len(rows), weighted.shape[1]), weighted.dtype)
    parts = (_chunks(unit_rows(task.k)), _chunks(weighted))
    (moments, _), _ = jax.lax.scan(collect, (start, start), parts)
    moments = rows * moments

    @jax.checkpoint
    def spread(queries: Array) -> Array:
        return (moments.T @ values(queries.T, degree)).T

    sums = jax.lax.map(spread, _chunks(unit_rows(task.q)))
    rounding = ROUNDING * jnp.finfo(a.dtype).eps
    return sums.reshape(-1, weighted.shape[1])[:n], rest + rounding


def _beyond(task: Task) -> tuple[Array, Array]:
    """No size reaches this β: sums of which nothing is known."""
    return jnp.zeros_like(task.values()), jnp.full_like(task.beta, jnp.inf)


def _chunks(rows: Float[Array, "n e"]) -> Float[Array, "chunks chunk e"]:
    """Rows in chunks, padded with zeros."""
    n, width = rows.shape
    chunk = min(CHUNK, n)
    return jnp.pad(rows, ((0, -n % chunk), (0, 0))).reshape(-1, chunk, width)
