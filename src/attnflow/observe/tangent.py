"""Orthonormal coordinates of the directions in which tokens can move."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow.checks import is_traced
from attnflow.errors import InputError
from attnflow.spaces import Space


def require_unit(x: Float[Array, "n d"]) -> None:
    """Refuse tokens off the unit sphere, by more than 1e-6 (float32: 1e-4)."""
    if is_traced(x):
        return
    lengths = np.linalg.norm(np.asarray(x), axis=-1)
    worst = int(np.argmax(np.abs(lengths - 1)))
    if not abs(lengths[worst] - 1) <= (1e-4 if x.dtype == jnp.float32 else 1e-6):
        raise InputError(
            f"x must have rows of norm 1, but token {worst} has {lengths[worst]:g}: "
            "attnflow.initial.normalise(x) puts tokens on the unit sphere."
        )


def tangent_bases(space: Space, x: Float[Array, "n d"]) -> Float[Array, "n d r"]:
    """For each token an orthonormal basis, as columns, of its tangent space.

    r is d in R^d, where the bases are the coordinate axes, and d − 1 on the sphere or an
    ellipsoid. Bases are oriented alike: on the circle they point in the direction of growing
    angles.

    >>> from attnflow.spaces import Sphere
    >>> print(tangent_bases(Sphere(), jnp.array([[0.0, -1.0]])) + 0.0)
    [[[1.]
      [0.]]]
    """
    n, d = x.shape
    normal = space.normal(x)
    if normal is None:
        return jnp.broadcast_to(jnp.eye(d, dtype=x.dtype), (n, d, d))
    return jax.vmap(_complement)(normal)


def _complement(normal: Float[Array, " d"]) -> Float[Array, "d r"]:
    """An orthonormal basis of what is orthogonal to a vector.

    The reflection that takes the normal to a multiple of the last axis takes the other axes there.
    """
    v = normal / jnp.linalg.norm(normal)
    side = jnp.where(v[-1] < 0, -1, 1).astype(v.dtype)
    w = v.at[-1].add(side)
    axes = jnp.eye(len(v), dtype=v.dtype)[:, :-1]
    basis = axes - 2 * jnp.outer(w, w[:-1]) / (w @ w)
    return basis.at[:, :1].multiply(-side)
