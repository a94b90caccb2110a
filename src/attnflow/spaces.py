"""Where tokens live: R^d, the unit sphere, an ellipsoid, the circle as angles.

A space knows its tangent directions and how to come back to itself. It knows no dynamics.
"""

from __future__ import annotations

import abc
import functools
import operator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Real

from attnflow.checks import are_numpys, as_floats, is_traced, on_host
from attnflow.errors import InputError

__all__ = ["Circle", "Ellipsoid", "Euclidean", "Space", "Sphere"]

MAX_UNROLLED_DIMS = 8
"""Up to this many coordinates a sum over them is written out."""


def inner(x: Float[Array, "*n d"], y: Float[Array, "*n d"]) -> Float[Array, "*n 1"]:
    """<x, y> row by row. Compiled, a reduction over a short last axis is slower than its sum.

    >>> print(inner(jnp.array([[1.0, 2.0]]), jnp.array([[3.0, 4.0]])))
    [[11.]]
    """
    d = x.shape[-1]
    if d > MAX_UNROLLED_DIMS:
        return jnp.sum(x * y, axis=-1, keepdims=True)
    products = [x[..., c, None] * y[..., c, None] for c in range(d)]
    return functools.reduce(operator.add, products)


def unit_rows(x: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
    """Divide each row by its length.

    A row is first divided by its largest entry, so that no square overflows or underflows.
    """
    largest = jax.lax.stop_gradient(jnp.max(jnp.abs(x), axis=-1, keepdims=True))
    x = x / jnp.where(largest > 0, largest, 1)
    return x / jnp.sqrt(inner(x, x))


def normalised(x: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
    """`unit_rows` of a start: nothing is compiled for values that are known."""
    return on_host(_unit_rows_by_numpy, x) if are_numpys(x) else unit_rows(x)


def _unit_rows_by_numpy(x: np.ndarray) -> np.ndarray:
    """`unit_rows` to the last digit.

    Compiled, a division by one number for each row is a product with its inverse, and many terms
    are added in an order that NumPy does not have.
    """
    one = x.dtype.type(1)
    largest = np.max(np.abs(x), axis=-1, keepdims=True)
    with np.errstate(all="ignore"):
        x = x * (one / np.where(largest > 0, largest, one))
        return x * (one / _lengths(x))


def _lengths(x: np.ndarray) -> np.ndarray:
    squares, d = x * x, x.shape[-1]
    if d > MAX_UNROLLED_DIMS:
        with jax.ensure_compile_time_eval():
            return np.sqrt(jnp.sum(jax.device_put(squares), axis=-1, keepdims=True))
    return np.sqrt(functools.reduce(operator.add, np.split(squares, d, axis=-1)))


class Space(eqx.Module):
    """A subset of R^d that tokens do not leave. It declares what other code may rely on."""

    @property
    @abc.abstractmethod
    def unit(self) -> bool:
        """Whether every point has length 1."""

    @property
    @abc.abstractmethod
    def rotations(self) -> bool:
        """Whether every rotation of R^d maps the space to itself."""

    @property
    @abc.abstractmethod
    def flat(self) -> bool:
        """Whether the tangent space is R^d everywhere."""

    @property
    @abc.abstractmethod
    def round(self) -> bool:
        """Whether its points are, or stand for, points of the unit sphere."""

    @abc.abstractmethod
    def normal(self, x: Float[Array, "*n d"]) -> Float[Array, "*n d"] | None:
        """A vector across the tangent space at each x; None where all of R^d is tangential."""

    @abc.abstractmethod
    def project(self, x: Float[Array, "*n d"], v: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        """The tangential part at x of the vectors v."""

    @abc.abstractmethod
    def retract(self, y: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        """The point of the space that stands for y."""

    @abc.abstractmethod
    def distance(self, x: Float[Array, "*n d"], y: Float[Array, "*n d"]) -> Float[Array, "*n"]:
        """How far x and y are apart, row by row."""

    @abc.abstractmethod
    def brownian_rate(self, d: int) -> Any:
        """The rate at which Brownian motion, dx = √2 P dW, loses its direction; 0 if flat."""

    def brownian(
        self, x: Float[Array, "*n d"], w: Float[Array, "*n d"], variance: Any
    ) -> Float[Array, "*n d"]:
        """A step of Brownian motion in this space.

        The error in law is of the order of variance²; a subclass may do better.

        Args:
            x: points of the space, shape (n, d).
            w: the step of Brownian motion in R^d, shape (n, d).
            variance: the variance of each entry of w.
        """
        return self.retract(x + self.project(x, w))

    def admit(self, x: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        """A start in this space: x itself, cleaned of rounding, or an error that says why not."""
        return x


class Flat(Space):
    """A part of R^d with room in every direction: all of them are tangential."""

    flat = True
    round = False

    def normal(self, x: Float[Array, "*n d"]) -> None:
        """None."""

    def brownian_rate(self, d: int) -> float:
        return 0.0

    def project(self, x: Float[Array, "*n d"], v: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        return v

    def retract(self, y: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        return y

    def distance(self, x: Float[Array, "*n d"], y: Float[Array, "*n d"]) -> Float[Array, "*n"]:
        return jnp.linalg.norm(x - y, axis=-1)


class Euclidean(Flat):
    """R^d: every direction is tangential and nothing needs to be brought back.

    >>> float(Euclidean().distance(jnp.zeros(2), jnp.array([3.0, 4.0])))
    5.0
    """

    unit = False
    rotations = True


class Sphere(Space):
    """The unit sphere S^{d−1}, with `P⊥_x v = v − <x,v> x / |x|²`.

    >>> x = jnp.array([1.0, 0.0])
    >>> print(Sphere().project(x, jnp.array([5.0, 2.0])))
    [0. 2.]
    """

    unit = True
    rotations = True
    flat = False
    round = True

    def normal(self, x: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        """The point x itself."""
        return x

    def project(self, x: Float[Array, "*n d"], v: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        """P⊥_x v, the part of v that does not change |x|."""
        return v - inner(x, v) * x / inner(x, x)

    def retract(self, y: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        """The rows of y over their norms."""
        return unit_rows(y)

    def distance(self, x: Float[Array, "*n d"], y: Float[Array, "*n d"]) -> Float[Array, "*n"]:
        """The angle between x and y; accurate for close and for opposite tokens alike."""
        return 2 * jnp.arctan2(jnp.linalg.norm(x - y, axis=-1), jnp.linalg.norm(x + y, axis=-1))

    def brownian_rate(self, d: int) -> float:
        """`d − 1`: E<x(t), x(0)> = e^{−(d−1)t}."""
        return d - 1.0

    def brownian(
        self, x: Float[Array, "*n d"], w: Float[Array, "*n d"], variance: Any
    ) -> Float[Array, "*n d"]:
        """A step of Brownian motion, with an error in law of the order of variance³.

        A tangent vector v turns x by arctan |v|, on the average less than Brownian motion does. So
        v is made longer by a factor f, f² = (e^a − 1)/a with a = (d + 2) variance: right for small
        steps in every d, and for steps of any length as d → ∞.
        """
        a = jnp.clip((x.shape[-1] + 2) * jnp.asarray(variance, x.dtype), 1e-6, 80)
        return self.retract(x + jnp.sqrt(jnp.expm1(a) / a) * self.project(x, w))

    def admit(self, x: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        """Normalise rows that are unit up to 1e-6 (float32: 1e-4); refuse any other."""
        return admit_unit_rows(x, "x0")


class Ellipsoid(Space):
    """The ellipsoid `|D⁻¹x| = 1` of a positive diagonal D: normal `D⁻²x`, retraction `y/|D⁻¹y|`.

    Layer normalisation with a trained diagonal puts tokens here ([P] §2.2); D = 1 is the sphere.

    >>> space = Ellipsoid(jnp.array([2.0, 1.0]))
    >>> print(space.retract(jnp.array([5.0, 0.0])))
    [2. 0.]
    """

    unit = False
    rotations = False
    flat = False
    round = False

    D: Float[Array, " d"]

    def __init__(self, D: Float[ArrayLike, " d"]):
        self.D = as_floats(D).astype(float)
        if self.D.ndim != 1:
            raise InputError(f"D must be a vector (the diagonal), but its shape is {self.D.shape}.")
        if not is_traced(self.D) and not _are_half_axes(np.asarray(self.D)):
            raise InputError("D must be finite and positive: its entries are half-axes.")

    def _inverse(self, x: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        return x / self.D.astype(x.dtype)

    def normal(self, x: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        """`D⁻²x`."""
        return self._inverse(self._inverse(x))

    def project(self, x: Float[Array, "*n d"], v: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        """The part of v across the normal."""
        normal = self.normal(x)
        return v - inner(normal, v) * normal / inner(normal, normal)

    def retract(self, y: Real[Array, "*n d"]) -> Float[Array, "*n d"]:
        """The rows of y over |D⁻¹y|."""
        y = as_floats(y)
        inside = self._inverse(y)
        return y / jnp.sqrt(inner(inside, inside))

    def distance(self, x: Float[Array, "*n d"], y: Float[Array, "*n d"]) -> Float[Array, "*n"]:
        """|x − y|, the distance through R^d: geodesics of an ellipsoid have no closed form."""
        return jnp.linalg.norm(x - y, axis=-1)

    def brownian_rate(self, d: int) -> Float[Array, ""]:
        """`(d − 1)κ²`, where κ is the largest curvature."""
        return (d - 1) * (jnp.max(self.D) / jnp.min(self.D) ** 2) ** 2

    def admit(self, x: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        """Retract rows with |D⁻¹x| = 1 up to 1e-6 (float32: 1e-4); refuse any other."""
        if x.shape[-1] != self.D.shape[0]:
            raise InputError(f"x0 has d = {x.shape[-1]}, but the ellipsoid's D has {len(self.D)}.")
        lengths = None
        if not is_traced((x, self.D)):
            lengths = np.linalg.norm(np.asarray(x) / np.asarray(self.D, x.dtype), axis=-1)
        remedy = "attnflow.spaces.Ellipsoid(D).retract(x0) puts tokens on the ellipsoid"
        _require_unit(lengths, x.dtype, "x0", "|D⁻¹x|", remedy)
        return on_host(self._retract_by_numpy, x) if are_numpys(x, self.D) else self.retract(x)

    def _retract_by_numpy(self, x: np.ndarray) -> np.ndarray:
        """`retract` to the last digit, as in `normalised`."""
        one = x.dtype.type(1)
        return x * (one / _lengths(x * (one / np.asarray(self.D, x.dtype))))


class Circle(Flat):
    """The circle as angles: states `(n, 1)`, numbers that mean the same modulo 2π.

    They are not brought back to one turn, so that windings can be counted.

    >>> print(Circle().distance(jnp.array([[0.5]]), jnp.array([[0.25 + 2 * jnp.pi]])).round(12))
    [0.25]
    """

    unit = False
    rotations = False
    round = True

    def distance(self, x: Float[Array, "*n d"], y: Float[Array, "*n d"]) -> Float[Array, "*n"]:
        """The angle between x and y, at most π; accurate for close and for opposite ones alike."""
        half = (x - y)[..., 0] / 2
        return 2 * jnp.arctan2(jnp.abs(jnp.sin(half)), jnp.abs(jnp.cos(half)))

    def admit(self, x: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        """The start x itself, if every token is a single angle."""
        require_angles(x, "x0")
        return x


def require_angles(x: Any, name: str) -> None:
    """Refuse a state that is not one angle for each token."""
    if x.shape[-1] != 1:
        raise InputError(
            f"{name} must have shape (n, 1), one angle for each token, but its shape is {x.shape}. "
            "The angles of tokens (n, 2) on the circle are arctan2(x[:, 1], x[:, 0])[:, None]."
        )


def _are_half_axes(D: np.ndarray) -> bool:
    return bool(np.all(np.isfinite(D) & (D > 0)))


def admit_unit_rows(x: Float[Array, "*n d"], name: str) -> Float[Array, "*n d"]:
    """Normalise rows that are unit up to 1e-6 (float32: 1e-4); refuse any other."""
    lengths = None if is_traced(x) else np.linalg.norm(x, axis=-1)
    remedy = f"attnflow.initial.normalise({name}) puts tokens on the unit sphere"
    _require_unit(lengths, x.dtype, name, "norm", remedy)
    return normalised(x)


def _require_unit(
    lengths: np.ndarray | None, dtype: np.dtype, name: str, what: str, remedy: str
) -> None:
    if lengths is None:
        return
    tolerance = 1e-4 if dtype == np.float32 else 1e-6
    off = np.abs(lengths - 1)
    if off.size and off.max() > tolerance:
        worst = np.unravel_index(np.argmax(off), off.shape)
        where = ", ".join(str(int(i)) for i in worst)
        value = float(lengths[worst])
        hint = "a token at the origin has no direction" if value == 0 else remedy
        raise InputError(
            f"{name} must have rows of {what} 1 (to {tolerance:g}), but token {where} has "
            f"{value:g}",
            remedy=hint,
        )
