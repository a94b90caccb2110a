"""What the limits of many tokens share: their state is a measure, and the tokens give its field."""

from __future__ import annotations

import abc
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from attnflow.checks import as_floats, is_traced
from attnflow.errors import InputError
from attnflow.spaces import Space
from attnflow.systems import System
from attnflow.systems.fields import AttentionField, Field


class MeasureSystem(System):
    """The flow of the measure that many tokens of `system` have; a subclass gives its `rate`."""

    noise_obstacle = "has a density for its state, not tokens: take the density of Noisy tokens"

    system: System
    space: Space

    def __init__(self, space: Space, system: System):
        self.space, self.system = space, system
        if not isinstance(system, System) or self._declared(0.0) is None:
            raise _no_limit(system)
        if system.random and self.sigma is None:
            raise _no_limit(system)

    def field(self, t: Any) -> Field:
        """X[μ] at time t."""
        field = self._declared(t)
        assert field is not None
        return field

    def _declared(self, t: Any) -> Field | None:
        return self.system.circle_field(t)

    def attention(self, t: Any) -> AttentionField:
        """X[μ] at time t where it is attention's: no other has an energy E_β."""
        field = self.field(t)
        if not isinstance(field, AttentionField):
            raise InputError(f"energy: E_β belongs to attention, not to {self.system!r}.")
        return field

    @property
    def sigma(self) -> Float[Array, ""] | None:
        """The σ of the noise, if there is any."""
        return self.system.intensity

    @property
    def breaks(self) -> Any:
        return self.system.breaks

    @abc.abstractmethod
    def rate(self, t: Any, x: Num[Array, "n d"]) -> Float[Array, "n d"]:
        """How fast the state x changes at time t."""

    def velocity(
        self, t: Any, x: Num[Array, "n d"], masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n d"]:
        if masses is not None:
            raise InputError(
                "masses: a density has no tokens that could have masses: leave them out."
            )
        return self.rate(t, x)

    def parameters(self) -> dict[str, Any]:
        return {"system": self.system}


class ModeSystem(MeasureSystem):
    """A measure as its modes, one in each row; the first is its mass."""

    def mass(self, x: Num[Array, "n d"]) -> Float[Array, ""]:
        """The mode 0, which stays 1."""
        return as_floats(x)[0, 0]

    def tail(self, x: Num[Array, "n d"]) -> Float[Array, ""]:
        """The largest of the last quarter of the modes: what is left out is smaller still."""
        return jnp.max(jnp.linalg.norm(as_floats(x[-max(1, len(x) // 4) :]), axis=1))


def _no_limit(system: Any) -> InputError:
    return InputError(
        "system must be SA(beta) or USA(beta), with a number V at most, or Noisy of these; on the "
        "circle also AngularSA, AngularUSA, or Kuramoto and CircleCoupling with one frequency for "
        f"all tokens; but it is {system!r}, whose limit of many tokens is not known here."
    )


def require_modes(x: Float[Array, "*n d"], columns: int, what: str, maker: str) -> None:
    """Refuse a start that has another shape than modes have, or whose mode 0 is not 1."""
    if x.shape[-1] != columns or x.shape[-2] < 2:
        raise InputError(
            f"x0 must have shape (M + 1, {columns}), {what} 0 … M, but its shape is {x.shape}: "
            f"{maker} makes them."
        )
    if not is_traced(x) and np.abs(np.asarray(x[..., 0, 0]) - 1).max() > mass_tol(x):
        raise InputError("x0 must begin with the mode 0 of a probability measure, which is 1.")


def mass_tol(x: Float[Array, "*n d"]) -> float:
    """How far from 1 the mass of a start may be."""
    return 1e-4 if x.dtype == np.float32 else 1e-6
