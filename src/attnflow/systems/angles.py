"""What all systems of angles share: states `(n, 1)` that stand for tokens on the circle."""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, Num

from attnflow.checks import NO_NUMBERS, as_array, as_floats, as_number, require_finite
from attnflow.errors import InputError
from attnflow.spaces import Circle, require_angles
from attnflow.systems.base import System
from attnflow.systems.kernels import as_shares
from attnflow.systems.presets import Drawn
from attnflow.weights.frequencies import FREQUENCIES


class AngleSystem(System):
    """Tokens on the circle as angles: the state is θ, `(n, 1)`; positions are `(cos θ, sin θ)`.

    Angles are not brought back to one turn.
    """

    space = Circle()
    noise_obstacle = None

    def positions(self, x: Num[Array, "n 1"]) -> Float[Array, "n 2"]:
        """The tokens `(cos θ, sin θ)` on the unit circle."""
        theta = as_floats(x)
        return jnp.concatenate([jnp.cos(theta), jnp.sin(theta)], axis=-1)


class Oscillators(AngleSystem):
    """Angles with frequencies of their own that are pulled by the others: `θ_i' = ω_i + K p_i(θ)`.

    A subclass gives the pull p. A token's share is its part of the total mass, 1/n without masses.
    """

    oscillates = True
    drawn: ClassVar = {"omega": Drawn(FREQUENCIES, "n")}
    autonomous = True
    merging_obstacle = (
        "its tokens are angles, which may meet a whole turn apart or at different speeds"
    )

    K: Float[Array, ""]
    omega: Float[Array, "*n"] | None

    def __init__(self, K: Any, omega: Any):
        self.K = as_number(K, "K")
        self.omega = _as_frequencies(omega)

    @property
    def alike(self) -> bool:
        """Whether all angles have one frequency: a density does not say who has which."""
        return self.omega is None or self.omega.ndim == 0

    @abc.abstractmethod
    def pull(self, theta: Float[Array, " n"], shares: Float[Array, " n"]) -> Float[Array, " n"]:
        """What the others do to each angle at strength K = 1."""

    def velocity(
        self, t: Any, x: Num[Array, "n d"], masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n d"]:
        """The frequencies and K times the pull."""
        theta = as_angles(x)
        speed = self.K.astype(theta.dtype) * self.pull(theta, as_shares(masses, theta))
        if self.omega is not None:
            speed = speed + self.omega.astype(theta.dtype)
        return speed[:, None]

    def check_start(self, x: Float[Array, "*batch n d"]) -> None:
        """There must be as many angles as frequencies."""
        if self.omega is not None:
            require_length(self.omega, x, "omega")

    def parameters(self) -> dict[str, Any]:
        """K, and the frequencies if there are any."""
        return {"K": self.K} | ({} if self.omega is None else {"omega": self.omega})


def as_angles(x: Num[Array, "n d"]) -> Float[Array, " n"]:
    """The angles of a state `(n, 1)` as a vector; any other state is refused."""
    require_angles(x, "x")
    return as_floats(x)[:, 0]


def require_length(values: Array, x: Any, name: str) -> None:
    """Refuse values (a vector, a square matrix) that are for another number of tokens."""
    n = x.shape[-2]
    if values.ndim and len(values) != n:
        raise InputError(f"x0 has {n} tokens, but {name} is for {len(values)}.")


def as_reals(value: Any, name: str) -> Float[Array, ...]:
    """Finite real numbers as an array of floats; truth values count as 0 and 1."""
    try:
        array = as_array(value)
    except NO_NUMBERS:
        raise InputError(f"{name} must hold numbers, not {value!r}.") from None
    if array.dtype.kind not in "bfiu":
        raise InputError(f"{name} must hold real numbers, but its dtype is {array.dtype}.")
    array = as_floats(array)
    require_finite(array, name)
    return array


def _as_frequencies(omega: Any) -> Float[Array, "*n"] | None:
    if omega is None:
        return None
    array = as_reals(omega, "omega")
    if array.ndim > 1:
        raise InputError(
            f"omega must be a number or a vector (n,), one frequency for each token, but its shape "
            f"is {array.shape}."
        )
    return array
