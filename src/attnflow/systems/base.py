"""What a system is: a space, and a velocity or a map on it."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Inexact, Key

from attnflow.errors import Fault, InputError
from attnflow.retired import RenamedAttribute, refuse_renamed
from attnflow.spaces import Space
from attnflow.systems.fields import AttentionField, Field
from attnflow.systems.presets import Drawn, Preset
from attnflow.weights.breaks import Breaks


class Cost(NamedTuple):
    """What one velocity takes.

    Attributes:
        pairs: how many pairs of tokens it looks at, by which `simulate` paces its work.
        held: how many scores are in memory at once.
    """

    pairs: int
    held: int


class System(eqx.Module):
    """A dynamics of tokens: `x' = velocity(t, x)` in a space.

    A subclass gives `space` and `velocity`, and one row in the table of systems. The state is
    the plain array of tokens `(n, d)`; a system with another state (angles, tokens and their
    velocities) also gives `positions`. Where layers are not Euler steps of the velocity it gives
    `layer`; where the equation is better integrated in other coordinates than those it is
    written in, `encoded`, `encode`, `decode` and `flow`.
    """

    equation: ClassVar[str]
    source: ClassVar[str]
    dynamics: ClassVar[str] = "flow"
    """How it goes on in time, by which methods are chosen: "flow" (by its velocity), "diffusion"
    (a flow with noise), "map" (by layers alone) or "inclusion" (its velocity jumps with x)."""
    drawn: ClassVar[Mapping[str, Drawn]] = {}
    """The arguments that a spec may draw at random, and from which families."""
    preset: ClassVar[Preset | None] = None
    """The run that the page shows for it; None where it shows none."""
    pure_attention: ClassVar[Literal["tokens", "rescaled"] | None] = None
    """"tokens" if it is [E](1), "rescaled" if its state is `z = e^{−tV} x` of that; else None."""
    oscillates: ClassVar[bool] = False
    """Whether its tokens are oscillators, whose order parameter says how far they agree."""

    scores_held = RenamedAttribute("cost")
    pairs = RenamedAttribute("cost")
    precise = RenamedAttribute("with_exact_sums")
    drawing = RenamedAttribute("with_key")

    space: eqx.AbstractVar[Space]

    def __init_subclass__(cls, init: bool = True, **options: Any) -> None:
        """`init=False` says to type checkers that the constructor is that of the class above."""
        super().__init_subclass__(**options)
        refuse_renamed(cls)

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

    @property
    def encoded(self) -> bool:
        """Whether it gives `encode`, `decode` and `flow`: a trajectory then keeps what they use."""
        return False

    def sizes(self, t0: Any, t1: Any, y: Array) -> tuple[Array, Any]:
        """What `rtol` and what `atol` are parts of, in a step from t0 to t1 near y of `encode`.

        By default the length of each row, and 1.
        """
        return row_lengths(y), 1.0

    def lost(self, t: Any, y: Any) -> str:
        """Which coordinates `decode` could not hold, in words: "some coordinates"."""
        return "some coordinates"

    @property
    def not_finite(self) -> Fault:
        """Why a state may no longer be finite, and what to do, for the error of a run."""
        return Fault(
            "tokens ran away, or a step took one to the origin, which has no direction",
            "take a smaller dt, or look at tokens that grow through RescaledAttention",
        )

    def functionals(self, t: Any, y: Any, W: Inexact[Array, "k d"]) -> Inexact[Array, "n k"]:
        """The numbers `<w_k, x_i>` of the state that the coordinates y of `encode` stand for."""
        return self.decode(t, y).astype(W.dtype) @ W.T

    def attention_inside(self, t: Any, y: Any, masses: Float[Array, " n"] | None = None) -> Array:
        """The attention weights, of a system that has some, at the coordinates y of `encode`."""
        return self.attention(t, self.decode(t, y), masses)  # type: ignore[attr-defined]

    def flow(self, t: Any, y: Any, masses: Float[Array, " n"] | None = None) -> Any:
        """The velocity in the coordinates of `encode`."""
        return self.velocity(t, y, masses)

    @property
    def autonomous(self) -> bool:
        """Whether the velocity does not depend on t. What is not declared is not made use of."""
        return False

    @property
    def merging_obstacle(self) -> str | None:
        """Why tokens that have met must not be merged into one of their joint mass; None: they may.

        None promises, for the parameters that this system has: equal tokens stay equal, and m
        of them act and move as one of mass m. Close tokens then stay as close as the flow keeps
        any two states that are close.
        """
        return "it does not declare that equal tokens stay equal"

    def with_exact_sums(self, n: int) -> System:
        """The system for n tokens with forces that are exact however small (metastable states)."""
        return self

    def restricted(self, basis: Float[Array, "r d"]) -> System | None:
        """The same flow in coordinates c of the subspace `{c B}`, or None where it may leave it.

        The rows of B are orthonormal. A system that is the same in all coordinates is itself.
        """
        return None

    def attention_field(self, t: Any) -> AttentionField | None:
        """The field X[μ] of the tokens at time t where it is that of plain attention on a sphere.

        None, unless a system declares it: [P]'s energy identities and the limits of many tokens
        hold for such fields alone.
        """
        return None

    def circle_field(self, t: Any) -> Field | None:
        """The field X[μ] of tokens on the circle at time t; None, unless a system declares one."""
        return self.attention_field(t)

    @property
    def inverse_temperature(self) -> Float[Array, ""] | None:
        """The β of its attention; None, unless a system declares one."""
        return None

    @property
    def attention_system(self) -> Any:
        """The system whose attention can be looked at, itself or one inside it; None: none."""
        return None

    def error_bound(self, x: Any, masses: Float[Array, " n"] | None = None) -> Array | None:
        """A bound on the error of its sums; None where they are exact up to rounding."""
        return None

    @property
    def intensity(self) -> Float[Array, ""] | None:
        """The σ of noise `√(2σ) dW` that is the same at every token and in every direction.

        None, unless a system declares it: a density then diffuses by σΔ.
        """
        return None

    @property
    def noise_obstacle(self) -> str | None:
        """Why `Noisy` cannot add noise to the state, in a phrase; None where it can."""
        return "does not declare that noise may be added to its state"

    @property
    def random(self) -> bool:
        """Whether it draws random numbers as it runs, so that `simulate` needs a key."""
        return False

    def with_key(self, key: Key[Array, ""]) -> System:
        """The system that draws its numbers from this key: itself, where it draws none."""
        return self

    @property
    def breaks(self) -> Breaks:
        """The times at which the velocity jumps: no step straddles one."""
        return Breaks()

    def check_start(self, x: Float[Array, "*batch n d"]) -> None:
        """Raise an error that says why x cannot be a start, if it cannot."""

    def check_layers(self, dt: Any, start: Any) -> None:
        """Raise an error that says why layers of step dt from time `start` are not possible."""

    def cost(self, n: int) -> Cost:
        """What one velocity of n tokens takes: by default all n² pairs, all in memory at once."""
        return Cost(n * n, n * n)

    def __repr__(self) -> str:
        """The name with its parameters; long arrays as their shape."""
        parts = [f"{name}={_brief(value)}" for name, value in self.parameters().items()]
        return f"{type(self).__name__}({', '.join(parts)})"

    def parameters(self) -> dict[str, Any]:
        """The parameters that differ from their defaults, by name."""
        return {}


class Random(System):
    """A system that draws random numbers as it runs, from a key that `simulate` gives it."""

    random = True

    key: eqx.AbstractVar[Key[Array, ""] | None]

    def with_key(self, key: Key[Array, ""]) -> Random:
        """The system that draws its numbers from this key."""
        return eqx.tree_at(lambda s: s.key, self, key, is_leaf=lambda leaf: leaf is None)


class Diffusive(Random):
    """A flow with noise: `dx = velocity dt + apply_noise(t, x, dW)`, W a Brownian motion like x.

    A subclass gives `apply_noise`, `additive` and `noise_rate`; and `kick` where it knows better
    than one tangential step what the noise alone does.
    """

    dynamics: ClassVar[str] = "diffusion"
    diffuse = RenamedAttribute("apply_noise")
    noise_obstacle = "has noise already"

    @property
    def ito(self) -> bool:
        """Whether the noise depends on the state and is meant in the sense of Itô.

        Otherwise it is the tangential part of a constant noise: Stratonovich's sense, or Itô's with
        retraction, which are the same there.
        """
        return False

    @property
    @abc.abstractmethod
    def additive(self) -> bool:
        """Whether the noise is the same at all states."""

    @abc.abstractmethod
    def noise_rate(self, x: Float[Array, "*n d"]) -> Float[Array, ""]:
        """The rate at which the noise changes what it does, 1/time: a step has to resolve it."""

    @abc.abstractmethod
    def apply_noise(
        self,
        t: Any,
        x: Float[Array, "n d"],
        w: Float[Array, "n d"],
        masses: Float[Array, " n"] | None = None,
    ) -> Float[Array, "n d"]:
        """What the increment w of the Brownian motion moves."""

    def kick(
        self,
        t: Any,
        x: Any,
        w: Float[Array, "n d"],
        dt: Any,
        masses: Float[Array, " n"] | None = None,
    ) -> Any:
        """The state after the noise alone has acted for a time dt, in which W has moved by w."""
        return self.retract(x + self.apply_noise(t, x, w, masses))

    def noise_shape(self, x: Any) -> tuple[int, ...]:
        """The shape of W for a state like x."""
        return x.shape


class Map(System):
    """A system that is a map in time: it has layers and no velocity."""

    dynamics: ClassVar[str] = "map"
    noise_obstacle: ClassVar[str | None] = "is a map in time and no flow"

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


def row_lengths(y: Array) -> Array:
    """The length of each row, kept as an axis; of single numbers, their size."""
    return jnp.linalg.norm(y, axis=-1, keepdims=True) if y.ndim > 1 else jnp.abs(y)


def title_of(system: System) -> str:
    """Its name with those parameters that are numbers or words, for the title of a picture."""
    parts = [
        f"{name}={title_of(value) if isinstance(value, System) else _brief(value)}"
        for name, value in system.parameters().items()
        if not (isinstance(value, (jax.Array, np.ndarray)) and value.ndim)
    ]
    return type(system).__name__ + (f"({', '.join(parts)})" if parts else "")


def _brief(value: Any) -> str:
    if isinstance(value, jax.core.Tracer):
        return "traced"
    if isinstance(value, (jax.Array, np.ndarray)):
        if value.ndim == 0:
            return f"{float(value):g}"
        return f"array{tuple(value.shape)}"
    return type(value).__name__ if callable(value) else repr(value)
