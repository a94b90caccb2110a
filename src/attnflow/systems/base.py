"""What a system is: a space, and a velocity or a map on it."""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Key

from attnflow.errors import InputError
from attnflow.spaces import Space


class System(eqx.Module):
    """A dynamics of tokens: `x' = velocity(t, x)` in a space.

    A subclass gives `space` and `velocity`, and one row in the table of systems. The state is
    the plain array of tokens `(n, d)`; a system with another state (angles, tokens and their
    velocities) also gives `positions`. Where layers are not Euler steps of the velocity it gives
    `layer`; where the equation is better integrated in other coordinates than those it is
    written in, `encode`, `decode` and `flow`.
    """

    equation: ClassVar[str]
    source: ClassVar[str]
    space: eqx.AbstractVar[Space]

    @abc.abstractmethod
    def velocity(
        self, t: Any, x: Float[Array, "n d"], masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n d"]:
        """The vector field at time t."""

    def layer(
        self, k: Any, x: Float[Array, "n d"], dt: Any, masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n d"]:
        """Layer number k of step dt, from time k·dt: by default an Euler step, then retraction."""
        return self.retract(x + dt * self.velocity(k * dt, x, masses))

    def positions(self, x: Any) -> Float[Array, "n d"]:
        """The tokens of a state, for whoever wants to look."""
        return x

    def retract(self, x: Any) -> Any:
        """The state in the space that stands for x."""
        return self.space.retract(x)

    def encode(self, t: Any, x: Any) -> Any:
        """The coordinates in which x is integrated at time t; `decode` is the way back."""
        return x

    def decode(self, t: Any, y: Any) -> Any:
        """The state that the coordinates y stand for at time t."""
        return y

    def flow(self, t: Any, y: Any, masses: Float[Array, " n"] | None = None) -> Any:
        """The velocity in the coordinates of `encode`."""
        return self.velocity(t, y, masses)

    @property
    def mergeable(self) -> bool:
        """Whether tokens that have met may be merged into one of their joint mass."""
        return False

    def precise(self, n: int) -> System:
        """The system for n tokens with forces that are exact however small (metastable states)."""
        return self

    def restricted(self, basis: Float[Array, "r d"]) -> System | None:
        """The same flow in coordinates c of the subspace `{c B}`, or None where it may leave it.

        The rows of B are orthonormal. A system that is the same in all coordinates is itself.
        """
        return None

    @property
    def random(self) -> bool:
        """Whether it draws random numbers as it runs, so that `simulate` needs a key."""
        return False

    @property
    def breaks(self) -> tuple[float, ...]:
        """The periods at whose multiples the velocity jumps."""
        return ()

    def check_start(self, x: Float[Array, "*batch n d"]) -> None:
        """Raise an error that says why x cannot be a start, if it cannot."""

    def check_layers(self, dt: Any, start: Any) -> None:
        """Raise an error that says why layers of step dt from time `start` are not possible."""

    def scores_held(self, n: int) -> int:
        """How many scores are in memory at once for n tokens."""
        return n * n

    def pairs(self, n: int) -> int:
        """How many pairs of rows a velocity looks at, by which `simulate` paces its work."""
        return n * n

    def __repr__(self) -> str:
        """The name with its parameters; long arrays as their shape."""
        parts = []
        for name, value in self.parameters().items():
            parts.append(f"{name}={_brief(value)}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def parameters(self) -> dict[str, Any]:
        """The parameters that differ from their defaults, by name."""
        return {}


class Random(System):
    """A system that draws random numbers as it runs, from a key that `simulate` gives it."""

    key: eqx.AbstractVar[Key[Array, ""] | None]

    @property
    def random(self) -> bool:
        """True."""
        return True

    def drawing(self, key: Key[Array, ""]) -> Random:
        """The system that draws its numbers from this key."""
        return eqx.tree_at(lambda s: s.key, self, key, is_leaf=lambda leaf: leaf is None)


class Diffusive(Random):
    """A flow with noise: `dx = velocity dt + diffuse(t, x, dW)`, W a Brownian motion like x.

    `ito` says that the noise depends on the state and is meant in the sense of Itô. Otherwise it is
    the tangential part of a constant noise: Stratonovich's sense, or Itô's with retraction, which
    are the same there.
    """

    ito: ClassVar[bool] = False

    @abc.abstractmethod
    def diffuse(
        self,
        t: Any,
        x: Float[Array, "n d"],
        w: Float[Array, "n d"],
        masses: Float[Array, " n"] | None = None,
    ) -> Float[Array, "n d"]:
        """What the increment w of the Brownian motion moves."""


class Map(System):
    """A system that is a map in time: it has layers and no velocity."""

    def velocity(
        self, t: Any, x: Float[Array, "n d"], masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n d"]:
        """Raises: a map has no velocity."""
        raise InputError(
            f"{type(self).__name__} is a map in time and has no velocity: "
            "simulate it with method=Layers(dt)."
        )

    @abc.abstractmethod
    def layer(
        self, k: Any, x: Float[Array, "n d"], dt: Any, masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n d"]:
        """Layer number k of step dt."""


def _brief(value: Any) -> str:
    if isinstance(value, jax.core.Tracer):
        return "traced"
    if isinstance(value, (jax.Array, np.ndarray)):
        if value.ndim == 0:
            return f"{float(value):g}"
        return f"array{tuple(value.shape)}"
    return type(value).__name__ if callable(value) else repr(value)
