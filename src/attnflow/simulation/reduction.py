"""Rank reduction: a flow that stays in the span of its n < d tokens is run in R^n.

With an orthonormal basis B (n × d) of the span, x = c B, and the coordinates c follow the same
equation with Q and K replaced by QBᵀ and KBᵀ. This is an identity, not an approximation.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from attnflow.checks import is_traced
from attnflow.systems import System

WORTHWHILE = 8
"""Up to this dimension nothing is gained."""


class Reduced(NamedTuple):
    """A system and its start in coordinates of a subspace, and the basis that leads back.

    Without a basis the coordinates are those of the tokens themselves.
    """

    system: System
    x: Float[Array, "*batch n r"]
    basis: Float[Array, "*batch r d"] | None


def reduce(system: System, x: Float[Array, "*batch n d"]) -> Reduced:
    """The system in the span of its tokens, where it stays there and n < d.

    Members of a batch have their own spans if the system has no matrix, else they share one.
    A traced start is left alone: a derivative of the basis need not exist.
    """
    *batch, n, d = x.shape
    whole = Reduced(system, x, None)
    if is_traced(x) or n >= d or d <= WORTHWHILE:
        return whole
    basis, members = _basis(x), math.prod(batch)
    inside = system.restricted(basis[(0,) * len(batch)])
    if inside is not system and members > 1:
        if members * n >= d:
            return whole
        shared = _basis(x.reshape(members * n, d))
        inside = system.restricted(shared)
        basis = jnp.broadcast_to(shared, (*batch, *shared.shape))
    if inside is None:
        return whole
    return Reduced(inside, inside.space.retract(x @ basis.mT), basis)


def _basis(x: Float[Array, "*batch n d"]) -> Float[Array, "*batch n d"]:
    return jnp.linalg.qr(x.mT)[0].mT
