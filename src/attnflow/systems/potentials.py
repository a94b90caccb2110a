"""Interaction potentials W of aggregation, and the table that names them."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from attnflow.checks import as_number, is_traced, require_positive
from attnflow.errors import InputError, unknown


class Potential(eqx.Module):
    """A radial potential: `W(z)` depends on |z| alone. Its numbers are array leaves."""

    @abc.abstractmethod
    def of_square(self, s: Float[Array, ""]) -> Float[Array, ""]:
        """W as a function of `s = |z|²` > 0, which has no root to differentiate where z is 0."""

    @property
    def attracts_nearby(self) -> bool:
        """Whether W is known to grow with |z| for small |z|, so that close tokens attract."""
        return False

    def __call__(self, z: Float[Array, " d"]) -> Float[Array, ""]:
        """W(z)."""
        return self.of_square(jnp.sum(z * z))

    def parameters(self) -> dict[str, Any]:
        """Its numbers by name."""
        return dict(vars(self))

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={float(value):g}" for name, value in self.parameters().items())
        return f"{type(self).__name__}({said})"


class Log(Potential):
    """`W = log|z|`: Patlak–Keller–Segel without diffusion, in the plane and elsewhere.

    >>> print(Log()(jnp.array([3.0, 4.0])).round(6), jnp.log(5.0).round(6))
    1.609438 1.609438
    """

    attracts_nearby = True

    def of_square(self, s: Float[Array, ""]) -> Float[Array, ""]:
        """`log(s)/2`."""
        return jnp.log(s) / 2


class Quadratic(Potential):
    """`W = |z|²/2`: each token moves straight to the centre of mass, as e^{−t}.

    >>> print(Quadratic()(jnp.array([3.0, 4.0])))
    12.5
    """

    attracts_nearby = True

    def of_square(self, s: Float[Array, ""]) -> Float[Array, ""]:
        """`s/2`."""
        return s / 2


class Power(Potential):
    """`W = |z|^a/a − |z|^b/b` with a > b: attraction from afar, repulsion nearby.

    Tokens settle at distances around 1; in the plane on a ring for a = 4, b = 2.5, on a disc for
    a = 2 and b near 0. An exponent of 0 stands for the logarithm, the limit of |z|^b/b.
    Without b there is no repulsion.

    >>> print(Power(a=2.0)(jnp.array([3.0, 4.0])))
    12.5
    """

    a: Float[Array, ""]
    b: Float[Array, ""] | None

    def __init__(self, a: Any = 2.0, b: Any = None):
        self.a = as_number(a, "a")
        self.b = None if b is None else as_number(b, "b")

    def of_square(self, s: Float[Array, ""]) -> Float[Array, ""]:
        """`s^{a/2}/a − s^{b/2}/b`."""
        repulsion = jnp.zeros_like(s) if self.b is None else _power(s, self.b)
        return _power(s, self.a) - repulsion

    @property
    def attracts_nearby(self) -> bool:
        """Without repulsion, or where a < b: the smaller power rules nearby."""
        return self.b is None or (not is_traced((self.a, self.b)) and bool(self.a < self.b))

    def parameters(self) -> dict[str, Any]:
        """The powers: b only where there is a repulsion."""
        return {name: value for name, value in vars(self).items() if value is not None}


class Morse(Potential):
    """`W = −e^{−|z|} + C e^{−|z|/l}`: attraction of range 1, repulsion of strength C and range l.

    With C > 1 and l < 1 neighbours repel and far tokens attract. Where C l^d > 1 the swarm grows
    with its number of tokens; where C l^d < 1 its size stays bounded and tokens crowd together.

    >>> print(Morse(C=0.0)(jnp.zeros(2)))
    -1.0
    """

    C: Float[Array, ""]
    l: Float[Array, ""]

    def __init__(self, C: Any = 2.0, l: Any = 0.5):
        self.C = as_number(C, "C")
        require_positive(l, "l")
        self.l = as_number(l, "l")

    def of_square(self, s: Float[Array, ""]) -> Float[Array, ""]:
        """`−e^{−√s} + C e^{−√s/l}`."""
        r = jnp.sqrt(s)
        return -jnp.exp(-r) + self.C.astype(s.dtype) * jnp.exp(-r / self.l.astype(s.dtype))

    @property
    def attracts_nearby(self) -> bool:
        """Where C < l: `W'(0) = 1 − C/l`."""
        return not is_traced((self.C, self.l)) and bool(self.l > self.C)


POTENTIALS: dict[str, Callable[..., Potential]] = {
    potential.__name__.lower(): potential for potential in (Log, Quadratic, Power, Morse)
}
"""The potentials by name, as specs call them."""


def as_potential(W: Any) -> Callable[..., Any]:
    """A potential from a name, a table such as `{"name": "power", "a": 4.0}`, or a function.

    >>> as_potential("log")
    Log()
    >>> as_potential({"name": "power", "a": 4.0, "b": 2.5})
    Power(a=4, b=2.5)
    """
    if callable(W):
        return W
    table = {"name": W} if isinstance(W, str) else W
    if not isinstance(table, Mapping) or "name" not in table:
        raise InputError(
            f"W must be a function of z = x_i − x_j, one of the names {', '.join(POTENTIALS)}, or "
            f'a table such as {{"name": "power", "a": 4.0}}, not {W!r}.'
        )
    numbers = {name: value for name, value in table.items() if name != "name"}
    if table["name"] not in POTENTIALS:
        raise unknown("W", table["name"], POTENTIALS)
    try:
        return POTENTIALS[table["name"]](**numbers)
    except TypeError as error:
        where = ("W", f"{table['name']} does not take these values")
        raise InputError(error, where=where) from None


def _power(s: Float[Array, ""], p: Float[Array, ""]) -> Float[Array, ""]:
    """`|z|^p/p` from |z|², and log|z| for p = 0: they differ by a constant in the limit."""
    p = p.astype(s.dtype)
    safe = jnp.where(p == 0, 1, p)
    return jnp.where(p == 0, jnp.log(s) / 2, s ** (safe / 2) / safe)
