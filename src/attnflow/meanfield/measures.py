"""What the limits of many tokens share: their state is a measure, and the tokens give its field."""

from __future__ import annotations

import abc
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from attnflow.checks import as_floats, is_traced
from attnflow.errors import InputError
from attnflow.meanfield.fields import AttentionField, Field, circle_field
from attnflow.spaces import Space
from attnflow.systems import Noisy, System


class MeasureSystem(System):
    """The flow of the measure that many tokens of `system` have; a subclass gives its `rate`."""

    system: System
    space: Space

    def __init__(self, space: Space, system: System):
        self.space, self.system = space, system
        _ = self.field  # refuses a system without such a limit

    @property
    def field(self) -> Field:
        """X[μ]."""
        return circle_field(self.system)

    @property
    def attention(self) -> AttentionField:
        """X[μ] where it is attention's: no other has an energy E_β."""
        if not isinstance(field := self.field, AttentionField):
            raise InputError(f"energy: E_β belongs to attention, not to {self.system!r}.")
        return field

    @property
    def sigma(self) -> Float[Array, ""] | None:
        """The σ of the noise, if there is any."""
        return self.system.sigma if isinstance(self.system, Noisy) else None

    @abc.abstractmethod
    def rate(self, x: Num[Array, "n d"]) -> Float[Array, "n d"]:
        """How fast the state x changes."""

    def velocity(
        self, t: Any, x: Num[Array, "n d"], masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n d"]:
        """The `rate` of x; a measure needs no masses: it is one."""
        if masses is not None:
            raise InputError(
                "masses: a density has no tokens that could have masses: leave them out."
            )
        return self.rate(x)

    def parameters(self) -> dict[str, Any]:
        """The system of the tokens."""
        return {"system": self.system}


class ModeSystem(MeasureSystem):
    """A measure as its modes, one in each row; the first is its mass."""

    def mass(self, x: Num[Array, "n d"]) -> Float[Array, ""]:
        """The mode 0, which stays 1."""
        return as_floats(x)[0, 0]

    def tail(self, x: Num[Array, "n d"]) -> Float[Array, ""]:
        """The largest of the last quarter of the modes: what is left out is smaller still."""
        return jnp.max(jnp.linalg.norm(as_floats(x[-max(1, len(x) // 4) :]), axis=1))


def require_modes(x: Float[Array, "*n d"], columns: int, what: str, maker: str) -> None:
    """Refuse a start that has another shape than modes have, or whose mode 0 is not 1."""
    if x.shape[-1] != columns or x.shape[-2] < 2:
        raise InputError(
            f"x0 must have shape (M + 1, {columns}), {what} 0 … M, but its shape is {x.shape}: "
            f"{maker} makes them."
        )
    if not is_traced(x) and np.abs(np.asarray(x[..., 0, 0]) - 1).max() > tolerance(x):
        raise InputError("x0 must begin with the mode 0 of a probability measure, which is 1.")


def tolerance(x: Float[Array, "*n d"]) -> float:
    """How far from 1 the mass of a start may be."""
    return 1e-4 if x.dtype == np.float32 else 1e-6
