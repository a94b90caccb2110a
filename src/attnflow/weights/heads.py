"""`Heads(Q, K, V)`: the weights of one or several attention heads, checked once and for all."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from attnflow.checks import NO_NUMBERS, as_array, as_floats, is_traced, require_finite
from attnflow.errors import InputError
from attnflow.weights.breaks import Breaks, breaks_of

Schedule = Callable[[Any], Array]
Weight = ArrayLike | Schedule | None
"""None (identity), a number c (c times the identity), a matrix, a stack of matrices (one for each
head), or a function of time that returns one of these."""


def apply(W: Float[Array, ...] | None, x: Float[Array, "*n d"]) -> Float[Array, "*n k"]:
    """`W x` for each row x, where W is None (identity), a number or a matrix.

    >>> x = jnp.array([[1.0, 2.0]])
    >>> print(apply(None, x), apply(jnp.array(-1.0), x), apply(jnp.array([[1.0, 1.0]]), x))
    [[1. 2.]] [[-1. -2.]] [[3.]]
    """
    if W is None:
        return x
    return W * x if W.ndim == 0 else x @ W.T


def shape_of(W: Any) -> tuple[int, ...] | None:
    """The shape of a weight (of a function of time at 0); None where it is left out."""
    if W is None:
        return None
    return jax.eval_shape(W, 0.0).shape if callable(W) else W.shape


class AbstractHeads(eqx.Module):
    """What one or several attention heads share, with biases or without.

    Args:
        Q: query matrix; left out, the identity.
        K: key matrix, like Q.
        V: value matrix, like Q.
    """

    RANKS: ClassVar[dict[str, int]]
    """The weights, and how many axes one has for a single head."""

    Q: Any
    K: Any
    V: Any

    def __init__(self, Q: Weight = None, K: Weight = None, V: Weight = None):
        self.Q, self.K, self.V = (admit(W, name) for W, name in ((Q, "Q"), (K, "K"), (V, "V")))
        self._check_shapes()

    def _shapes(self) -> dict[str, tuple[int, ...] | None]:
        return {name: shape_of(getattr(self, name)) for name in self.RANKS}

    def _matrices(self) -> tuple[Any, Any, Any]:
        return self.Q, self.K, self.V

    def _check_shapes(self) -> None:
        shapes = {name: s for name, s in self._shapes().items() if s and name in "QKV"}
        for name, s in shapes.items():
            if len(s) not in (2, 3):
                raise InputError(
                    f"{name} must be a number, a matrix or a stack of matrices with a leading "
                    f"head axis, but its shape is {s}."
                )
        widths = {name: s[-1] for name, s in shapes.items()}
        if len(set(widths.values())) > 1:
            said = ", ".join(f"{name} has {w}" for name, w in widths.items())
            raise InputError(f"Q, K and V must have d columns, as tokens have d entries: {said}.")
        heights = {name: shapes[name][-2] if name in shapes else self.dim for name in "QK"}
        if heights["Q"] != heights["K"]:
            missing = "".join(f" ({n} is the identity)" for n in "QK" if n not in shapes)
            raise InputError(
                f"Q and K must have the same height, but Q has {heights['Q']} rows and K has "
                f"{heights['K']}{missing}: the score is <Q x_i, K x_j>."
            )
        self._check_values(shapes)
        counts = self._counts()
        if len(set(counts.values())) > 1:
            said = ", ".join(f"{name} has {c}" for name, c in counts.items())
            raise InputError(f"Q, K and V must have the same number of heads: {said}.")

    def _check_values(self, shapes: dict[str, tuple[int, ...]]) -> None:
        if "V" in shapes and shapes["V"][-2] != shapes["V"][-1]:
            raise InputError(f"V must be square (d × d), but its shape is {shapes['V']}.")

    def _counts(self) -> dict[str, int]:
        """The number of heads of each weight that has an axis for them."""
        shapes = self._shapes()
        return {
            name: s[0] for name, s in shapes.items() if s is not None and len(s) > self.RANKS[name]
        }

    @property
    def count(self) -> int | None:
        """The number of heads, or None when no weight has a head axis."""
        return next(iter(self._counts().values()), None)

    @property
    def dim(self) -> int | None:
        """The dimension d that the matrices expect, or None when any will do."""
        shapes = self._shapes()
        return next((s[-1] for s in (shapes[name] for name in "QKV") if s), None)

    @property
    def plain_scores(self) -> bool:
        """Whether scores are <x_i, x_j> themselves: Q = K = I."""
        return self.Q is None and self.K is None

    @property
    def isotropic(self) -> bool:
        """Whether scores are <x_i, x_j> and values multiples of x_j: Q = K = I and V = cI."""
        return self.plain_scores and self.scalar_values

    @property
    def scalar_values(self) -> bool:
        """Whether values are multiples of x_j: V = cI."""
        return _is_number(self.V)

    def queries(self, x: Float[Array, "n d"]) -> Float[Array, "n k"]:
        """`Q x_i` of a single head."""
        return apply(self.Q, x)

    def keys(self, x: Float[Array, "n d"]) -> Float[Array, "n k"]:
        """`K x_j` of a single head."""
        return apply(self.K, x)

    def values(self, x: Float[Array, "n d"]) -> Float[Array, "n v"]:
        """What a single head takes means of: tokens, as V commutes with a mean."""
        return x

    def out(self, means: Float[Array, "n v"]) -> Float[Array, "n d"]:
        """What a single head adds to tokens, from its means: V times these."""
        return apply(self.V, means)

    @property
    def autonomous(self) -> bool:
        """Whether no weight is a function of t."""
        return constant(*(getattr(self, name) for name in self.RANKS))

    @property
    def placed(self) -> bool:
        """Whether scores depend on the places of tokens in their sequence."""
        return False

    @property
    def breaks(self) -> Breaks:
        """The times at which some matrix jumps (see `Redrawn` and `Scheduled`)."""
        return breaks_of(*(getattr(self, name) for name in self.RANKS))

    @abc.abstractmethod
    def restricted(self, basis: Float[Array, "r d"]) -> AbstractHeads | None:
        """The heads that act on c as these act on c B, or None where tokens leave the span of B."""

    def at(self, t: Any, dtype: Any) -> AbstractHeads:
        """The matrices at time t as arrays of the given dtype."""
        names = tuple(self.RANKS)
        return eqx.tree_at(
            lambda heads: tuple(getattr(heads, name) for name in names),
            self,
            tuple(at_time(getattr(self, name), t, dtype) for name in names),
            is_leaf=lambda leaf: leaf is None,
        )

    def each(self, fn: Callable[[Any], Array]) -> Array:
        """`fn` of the single head, or of every head, stacked on a leading axis."""
        if self.count is None:
            return fn(self)

        names = [name for name in self.RANKS if getattr(self, name) is not None]

        def stack(name: str) -> Array:
            W, rank = getattr(self, name), self.RANKS[name]
            single = W.shape[-rank:] if W.ndim >= rank else ()
            return jnp.broadcast_to(W, (self.count, *single))

        def select(heads: AbstractHeads) -> tuple:
            return tuple(getattr(heads, name) for name in names)

        stacked = tuple(stack(name) for name in names)
        return jax.vmap(lambda single: fn(eqx.tree_at(select, self, single)))(stacked)

    def sum(self, fn: Callable[[Any], Array]) -> Array:
        """`Σ_h fn(head h)`."""
        values = self.each(fn)
        return values if self.count is None else values.sum(axis=0)


class Heads(AbstractHeads):
    """The weights of attention: scores `<Q x_i, K x_j>`, values `V x_j`.

    Each of them may be left out (identity, and no product is done), be a number (that multiple of
    the identity), a matrix, a stack with a leading axis of heads ([E] §6, [P](2.7)), or a function
    of t that returns any of these.

    Args:
        Q: query matrix, k × d.
        K: key matrix, k × d.
        V: value matrix, d × d.

    >>> heads = Heads(V=-1.0)
    >>> heads.count is None, heads.dim is None
    (True, True)
    >>> Heads(Q=jnp.ones((4, 2, 3)), K=jnp.ones((2, 3))).count
    4
    """

    RANKS: ClassVar[dict[str, int]] = {"Q": 2, "K": 2, "V": 2}

    def restricted(self, basis: Float[Array, "r d"]) -> Heads | None:
        """The heads that act on c as these act on c B, or None where V leads out of the span of B.

        Without any matrix they are the same heads. A matrix that depends on time gives None, and
        so does a traced V, since its value is not known.

        >>> B = jnp.eye(2, 3)
        >>> Heads(Q=jnp.ones((1, 3)), K=jnp.ones((1, 3))).restricted(B).Q.shape
        (1, 2)
        """
        if self.dim is None:
            return self
        if any(callable(W) for W in self._matrices()):
            return None
        B = jnp.asarray(basis)
        if not _keeps(self.V, B):
            return None
        Q, K, V = (
            W if _is_number(W) else W @ B.astype(W.dtype).T for W in (self.Q, self.K, self.V)
        )
        V = V if _is_number(V) else B.astype(V.dtype) @ V
        if _is_number(Q) != _is_number(K):
            Q, K = (W if _is_number(W) else B.astype(W.dtype) @ W for W in (Q, K))
        elif not _is_number(Q) and Q.shape[-2] > len(B):
            return Heads(None, Q.mT @ K, V)
        return Heads(Q, K, V)


def at_time(W: Any, t: Any, dtype: Any) -> Any:
    """A weight at time t, as an array; None stays None.

    Args:
        W: a weight, or a function of time that returns one.
        t: the time.
        dtype: the dtype of the array.
    """
    W = W(t) if callable(W) else W
    return None if W is None else jnp.asarray(W).astype(dtype)


def constant(*weights: Any) -> bool:
    """Whether none of the weights is a function of t."""
    return not any(callable(W) for W in weights)


def _is_number(W: Any) -> bool:
    """Whether W is a multiple of the identity."""
    return shape_of(W) in (None, ())


def _keeps(V: Any, B: Float[Array, "r d"]) -> bool:
    """Whether V maps the span of the orthonormal rows of B into itself, up to rounding."""
    if _is_number(V):
        return True
    if is_traced((V, B)):
        return False
    rounding = 100 * float(jnp.finfo(B.dtype).eps)
    matrix, rows = np.asarray(V, float), np.asarray(B, float)
    image = matrix @ rows.T
    outside = np.abs(image - rows.T @ (rows @ image))
    return bool(np.all(outside <= rounding * np.abs(matrix).max()))


def admit(W: Weight, name: str) -> Any:
    """A weight as it is kept: None, an array of floats, or a function of time; or an error."""
    if W is None:
        return W
    if callable(W):
        value = jax.eval_shape(W, 0.0)
        if not _is_real(value):
            raise InputError(f"{name}(t) must be a number or real matrices, but it is {value!r}.")
        return W
    try:
        array = as_array(W)
    except NO_NUMBERS:
        array = None
    if array is None or not _is_real(array):
        raise InputError(f"{name} must be made of real numbers, not {W!r}.")
    array = as_floats(array)
    require_finite(array, name)
    return array


def _is_real(array: Any) -> bool:
    dtype = getattr(array, "dtype", bool)
    return jnp.issubdtype(dtype, jnp.floating) or jnp.issubdtype(dtype, jnp.integer)
