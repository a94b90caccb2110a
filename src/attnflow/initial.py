"""Where tokens start. Every random start takes a key; `batch` draws several at once.

>>> sphere(n=4, d=3, key=0, batch=(2,)).shape
(2, 4, 3)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from attnflow.checks import (
    as_array,
    is_traced,
    on_host,
    require_count,
    require_directions,
    require_finite,
    require_memory,
    require_positive,
)
from attnflow.errors import InputError
from attnflow.randomness import RandomKey, as_key
from attnflow.retired import renamed_arguments
from attnflow.spaces import normalised

__all__ = [
    "STARTS",
    "angles",
    "circle",
    "clustered",
    "concatenated",
    "cube",
    "gaussian",
    "hemisphere",
    "normalise",
    "orthogonal",
    "sinusoidal",
    "sphere",
]

Shape = tuple[int, ...]
Batch = Shape | int


def normalise(x: Float[ArrayLike, "*batch n d"]) -> Float[Array, "*batch n d"]:
    """Tokens divided by their lengths: a start on the unit sphere from any non-zero tokens.

    >>> print(normalise(jnp.array([[3.0, 4.0]])))
    [[0.6 0.8]]
    """
    x = as_array(x)
    require_finite(x, "x")
    require_directions(x, "x")
    return normalised(x)


@renamed_arguments(seed="key")
def gaussian(
    n: int,
    d: int,
    *,
    scale: float | int = 1.0,
    key: RandomKey,
    batch: Batch = (),
    dtype: Any = float,
) -> Float[Array, "*batch n d"]:
    """Independent N(0, scale²) entries.

    Args:
        n: the number of tokens.
        d: their dimension.
        scale: the standard deviation of an entry.
        key: an integer or a JAX key.
        batch: how many independent draws, a number or a shape, which comes first.
        dtype: float64 by default, or another float dtype.
    """
    shape = _shape(n, d, batch, dtype)
    key = as_key(key)
    entries = jax.random.normal(key, _drawn(shape, key), dtype)
    return on_host(lambda entries: scale * entries.reshape(shape), entries)


@renamed_arguments(seed="key")
def sphere(
    n: int,
    d: int,
    *,
    key: RandomKey,
    batch: Batch = (),
    dtype: Any = float,
    reduced: bool = False,
) -> Float[Array, "*batch n r"]:
    """Independent uniform tokens on the unit sphere S^{d−1}.

    With `reduced`, inner products are distributed as those of tokens in R^d, and a flow that
    depends on nothing else (V = cI, no matrices) runs in R^min(n, d) for any d, even a million.

    Args:
        n: the number of tokens.
        d: their dimension.
        key: an integer or a JAX key.
        batch: how many independent draws, a number or a shape, which comes first.
        dtype: float64 by default, or another float dtype.
        reduced: whether to draw coordinates in a basis of the span, shape (n, min(n, d)).

    >>> x = sphere(n=64, d=3, key=0)
    >>> bool(jnp.allclose(jnp.linalg.norm(x, axis=-1), 1))
    True
    >>> sphere(n=8, d=1_000_000, key=0, reduced=True).shape
    (8, 8)
    """
    if reduced and n < d:
        return normalised(_bartlett(n, d, as_key(key), batch, dtype))
    return normalised(gaussian(n, d, key=key, batch=batch, dtype=dtype))


def _bartlett(n: int, d: int, key: Any, batch: Batch, dtype: Any) -> Float[Array, "*batch n n"]:
    """The triangular factor L of n Gaussian tokens X = L O in R^d, without X (Bartlett).

    Below the diagonal N(0, 1), on it the lengths of Gaussian vectors in R^d, R^{d−1}, …
    """
    require_count(d, "d")
    shape = _shape(n, n, batch, dtype)
    freedom = np.arange(d, d - n, -1).astype(jax.dtypes.canonicalize_dtype(dtype))

    def factor(below: Any, squared: Any) -> Any:
        lower = np.tri(n, k=-1, dtype=below.dtype) * below.reshape(shape)
        return lower + np.eye(n, dtype=below.dtype) * (squared**0.5)[..., None]

    drawn = _drawn(shape, key)
    return on_host(factor, *_bartlett_entries(key, freedom, drawn, shape[:-1], dtype))


@partial(jax.jit, static_argnames=("below", "diagonal", "dtype"))
def _bartlett_entries(
    key: Any, freedom: Float[Array, " n"], below: Shape, diagonal: Shape, dtype: Any
) -> tuple[Float[Array, "*below"], Float[Array, "*diagonal"]]:
    first, second = jax.random.split(key)
    squared = jax.random.chisquare(second, freedom, diagonal, dtype)
    return jax.random.normal(first, below, dtype), squared


@renamed_arguments(seed="key")
def hemisphere(
    n: int,
    d: int,
    *,
    key: RandomKey,
    batch: Batch = (),
    dtype: Any = float,
) -> Float[Array, "*batch n d"]:
    """Uniform tokens on the open half of the sphere where the last coordinate is positive.

    Args:
        n: the number of tokens.
        d: their dimension.
        key: an integer or a JAX key.
        batch: how many independent draws, a number or a shape, which comes first.
        dtype: float64 by default, or another float dtype.

    >>> bool((hemisphere(n=9, d=3, key=0)[:, -1] > 0).all())
    True
    """
    x = sphere(n, d, key=key, batch=batch, dtype=dtype)
    last = np.arange(d) == d - 1
    return on_host(lambda x: x * (1 - 2 * ((x < 0) & last).astype(x.dtype)), x)


@renamed_arguments(seed="key")
def orthogonal(
    n: int,
    d: int,
    *,
    key: RandomKey,
    batch: Batch = (),
    dtype: Any = float,
) -> Float[Array, "*batch n d"]:
    """A random orthonormal set of n ≤ d tokens, the start of [P] Theorem 6.8.

    Args:
        n: the number of tokens, at most d.
        d: their dimension.
        key: an integer or a JAX key.
        batch: how many independent draws, a number or a shape, which comes first.
        dtype: float64 by default, or another float dtype.

    >>> x = orthogonal(n=3, d=5, key=0)
    >>> bool(jnp.allclose(x @ x.T, jnp.eye(3)))
    True
    """
    if require_count(n, "n") > require_count(d, "d"):
        raise InputError(f"n = {n} orthogonal tokens need d ≥ n, but d = {d}.")
    return _orthonormal(gaussian(n, d, key=key, batch=batch, dtype=dtype))


@jax.jit
def _orthonormal(G: Float[Array, "*batch n d"]) -> Float[Array, "*batch n d"]:
    """Uniform orthonormal rows from Gaussian ones."""
    Q, R = jnp.linalg.qr(jnp.swapaxes(G, -1, -2))
    signs = jnp.sign(jnp.diagonal(R, axis1=-2, axis2=-1))
    return jnp.swapaxes(Q * signs[..., None, :], -1, -2)


def circle(n: int, *, dtype: Any = float) -> Float[Array, "n 2"]:
    """Equally spaced tokens on the unit circle, n of them: an unstable equilibrium of SA.

    >>> print(circle(4).round(12) + 0.0)
    [[ 1.  0.]
     [ 0.  1.]
     [-1.  0.]
     [ 0. -1.]]
    """
    n, _ = _shape(n, 2, (), dtype)
    return _on_circle(2 * np.pi * (np.arange(n) * (1 / n)), dtype)


@partial(jax.jit, static_argnames="dtype")
def _on_circle(angles: Float[Array, " n"], dtype: Any) -> Float[Array, "n 2"]:
    return jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=-1).astype(dtype)


@renamed_arguments(seed="key")
def angles(
    n: int,
    *,
    arc: float | int = 2 * math.pi,
    key: RandomKey,
    batch: Batch = (),
    dtype: Any = float,
) -> Float[Array, "*batch n 1"]:
    """Independent uniform angles in an arc of the circle, by default all of it.

    They lie between −arc/2 and arc/2, so that `arc` below π is an open half circle.

    Args:
        n: the number of tokens.
        arc: the length of the arc.
        key: an integer or a JAX key.
        batch: how many independent draws, a number or a shape, which comes first.
        dtype: float64 by default, or another float dtype.

    >>> bool((jnp.abs(angles(n=9, arc=2.0, key=0)) <= 1).all())
    True
    """
    require_positive(arc, "arc")
    return cube(n, 1, side=arc, key=key, batch=batch, dtype=dtype)


@renamed_arguments(seed="key")
def cube(
    n: int,
    d: int,
    *,
    side: float | int = 10.0,
    key: RandomKey,
    batch: Batch = (),
    dtype: Any = float,
) -> Float[Array, "*batch n d"]:
    """Independent uniform tokens in the cube [−side/2, side/2]^d; [E] uses [−5, 5]^d.

    Args:
        n: the number of tokens.
        d: their dimension.
        side: the length of an edge.
        key: an integer or a JAX key.
        batch: how many independent draws, a number or a shape, which comes first.
        dtype: float64 by default, or another float dtype.
    """
    shape = _shape(n, d, batch, dtype)
    key, end = as_key(key), side / 2
    x = jax.random.uniform(key, _drawn(shape, key), dtype, minval=-end, maxval=end)
    return on_host(lambda x: x.reshape(shape), x)


@renamed_arguments(seed="key")
def clustered(
    n: int,
    d: int,
    *,
    clusters: int = 3,
    spread: float | int = 0.1,
    key: RandomKey,
    batch: Batch = (),
    dtype: Any = float,
) -> Float[Array, "*batch n d"]:
    """Tokens on the sphere around `clusters` uniform centres, token i near centre i mod clusters.

    Args:
        n: the number of tokens.
        d: their dimension.
        clusters: the number of centres.
        spread: the standard deviation of what is added to each entry of a centre, before it is
            normalised.
        key: an integer or a JAX key.
        batch: how many independent draws, a number or a shape, which comes first.
        dtype: float64 by default, or another float dtype.

    >>> clustered(n=6, d=2, clusters=2, spread=0.0, key=0).shape
    (6, 2)
    """
    shape = _shape(n, d, batch, dtype)
    centre_shape = _shape(require_count(clusters, "clusters"), d, batch, dtype)
    key = as_key(key)
    drawn = _drawn(centre_shape, key), _drawn(shape, key)
    directions, noise = _independent_normals(key, drawn, dtype)
    centres = normalised(on_host(lambda x: x.reshape(centre_shape), directions))

    def near(centres: Any, noise: Any) -> Any:
        return centres[..., np.arange(n) % clusters, :] + spread * noise.reshape(shape)

    return normalised(on_host(near, centres, noise))


@partial(jax.jit, static_argnames=("shapes", "dtype"))
def _independent_normals(
    key: Any, shapes: tuple[Shape, Shape], dtype: Any
) -> tuple[Float[Array, ...], Float[Array, ...]]:
    first, second = jax.random.split(key)
    normal = partial(jax.random.normal, dtype=dtype)
    return normal(first, shapes[0]), normal(second, shapes[1])


def sinusoidal(n: int, d: int, *, M: float | int = 1e4, dtype: Any = float) -> Float[Array, "n d"]:
    """Sinusoidal positional encodings ([P] Remark 3.2), to be added to tokens.

        p_{k,2i} = sin(k M^{−2i/d}),   p_{k,2i+1} = cos(k M^{−2i/d})

    Args:
        n: the number of positions.
        d: the dimension of an encoding.
        M: the base of the wave lengths.
        dtype: float64 by default, or another float dtype.

    >>> print(sinusoidal(2, 2).round(3))
    [[0.    1.   ]
     [0.841 0.54 ]]
    """
    position = np.arange(require_count(n, "n"), dtype=float)
    i = np.arange(require_count(d, "d"))
    return _waves(position, -(i - i % 2) * (1 / d), M, dtype)


@partial(jax.jit, static_argnames="dtype")
def _waves(position: Array, exponents: Array, M: Any, dtype: Any) -> Float[Array, "n d"]:
    angles = position[:, None] * M**exponents
    even = np.arange(len(exponents)) % 2 == 0
    return jnp.where(even, jnp.sin(angles), jnp.cos(angles)).astype(dtype)


def concatenated(
    x: Float[ArrayLike, "*batch n d"], p: Float[ArrayLike, "n e"]
) -> Float[Array, "*batch n d+e"]:
    """Tokens with their positional encodings appended ([P] Remark 3.2): dimension d + e.

    >>> concatenated(jnp.ones((4, 3)), sinusoidal(4, 2)).shape
    (4, 5)
    """
    x, p = as_array(x), as_array(p)
    if x.shape[-2] != p.shape[-2]:
        raise InputError(f"x has {x.shape[-2]} tokens, but p has {p.shape[-2]} positions.")
    return _side_by_side(x, p)


@jax.jit
def _side_by_side(x: Array, p: Array) -> Array:
    p = jnp.broadcast_to(p.astype(x.dtype), (*x.shape[:-1], p.shape[-1]))
    return jnp.concatenate([x, p], axis=-1)


STARTS: dict[str, Callable[..., Any]] = {
    start.__name__: start
    for start in (gaussian, sphere, hemisphere, orthogonal, circle, angles, cube, clustered)
}
"""The starts by name, as specs call them."""


def _shape(n: int, d: int, batch: Batch, dtype: Any) -> Shape:
    batch = batch if isinstance(batch, tuple) else (batch,)
    sizes = tuple(require_count(b, "batch") for b in batch)
    shape = (*sizes, require_count(n, "n"), require_count(d, "d"))
    needed = 2 * math.prod(shape) * np.dtype(dtype).itemsize
    require_memory(needed, f"a start of shape {shape}", "take fewer tokens or a smaller batch")
    return shape


def _drawn(shape: Shape, key: Any) -> Shape:
    """The shape in which numbers are drawn: along one axis they are the same, and compiled sooner.

    Under the user's own jit, how they are rounded could depend on it: there it is left as it is.
    """
    return shape if is_traced(key) else (math.prod(shape),)
