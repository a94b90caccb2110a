"""`AffineHeads`: attention heads as trained models have them, with biases and output matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
from jaxtyping import Array, Float

from attnflow.errors import InputError
from attnflow.weights.breaks import Breaks, breaks_of
from attnflow.weights.heads import AbstractHeads, Weight, admit, apply, at_time, constant, shape_of
from attnflow.weights.rotary import Rotary, as_rotary


class AffineHeads(AbstractHeads):
    """Heads with biases and a matrix O behind each: `Σ_h O_h Σ_j A^h_ij (V_h x_j + b_V_h) + b_O`.

    Scores are `<Q x_i + b_Q, K x_j + b_K>`. Weights are given as in `Heads`; all but b_O may have a
    leading axis of heads.

    A model that keeps its heads side by side in matrices of d rows has them here as
    `Q.reshape(H, d // H, d)`, `b_Q.reshape(H, d // H)`, `O.reshape(d, H, d // H).swapaxes(0, 1)`.

    Args:
        Q: query matrix, k × d; left out, the identity.
        K: key matrix, like Q.
        V: value matrix, v × d; without O it is d × d.
        O: output matrix, d × v.
        b_Q: the bias of queries, shape (k,); left out, 0.
        b_K: the bias of keys, shape (k,).
        b_V: the bias of values, shape (v,).
        b_O: the bias of the sum over heads, shape (d,).
        rotary: a `Rotary` or its frequencies, shape (k/2,): queries and keys are then turned by
            their places.

    >>> import jax.numpy as jnp
    >>> heads = AffineHeads(V=jnp.ones((4, 2, 3)), O=jnp.ones((4, 3, 2)), b_Q=jnp.ones((4, 3)))
    >>> heads.count, heads.dim
    (4, 3)
    """

    RANKS: ClassVar[dict[str, int]] = {"Q": 2, "K": 2, "V": 2, "O": 2, "b_Q": 1, "b_K": 1, "b_V": 1}

    O: Any
    b_Q: Any
    b_K: Any
    b_V: Any
    b_O: Any
    rotary: Rotary | None

    def __init__(
        self,
        Q: Weight = None,
        K: Weight = None,
        V: Weight = None,
        O: Weight = None,
        *,
        b_Q: Weight = None,
        b_K: Weight = None,
        b_V: Weight = None,
        b_O: Weight = None,
        rotary: Any = None,
    ):
        self.rotary = as_rotary(rotary)
        self.O, self.b_O = admit(O, "O"), admit(b_O, "b_O")
        if len(shape_of(self.O) or (1, 1)) not in (2, 3):
            raise InputError(
                f"O must be a number, a matrix (d × v) or a stack of such matrices, but its shape "
                f"is {shape_of(self.O)}."
            )
        self.b_Q, self.b_K, self.b_V = admit(b_Q, "b_Q"), admit(b_K, "b_K"), admit(b_V, "b_V")
        super().__init__(Q, K, V)
        self._check_biases()
        self._check_rotary()

    def _check_values(self, shapes: dict[str, tuple[int, ...]]) -> None:
        O = shape_of(self.O)
        if not O:
            return super()._check_values(shapes)
        d, rows = self.dim, shapes["V"][-2] if "V" in shapes else self.dim
        if O[-1] != (rows or O[-1]) or O[-2] != (d or O[-2]):
            raise InputError(
                f"O must be d × v for V of v × d, or a stack of such matrices, but its shape is "
                f"{O} and V's is {shapes.get('V')}."
            )
        return None

    def _check_biases(self) -> None:
        shapes = self._shapes() | {"b_O": shape_of(self.b_O)}
        for name, W in (("b_Q", "Q"), ("b_K", "K"), ("b_V", "V"), ("b_O", "O")):
            bias, matrix = shapes[name], shapes[W]
            rows = matrix[-2] if matrix else self.dim
            axes = (1,) if name == "b_O" else (1, 2)
            if bias and (len(bias) not in axes or (rows is not None and bias[-1] != rows)):
                raise InputError(
                    f"{name} must have one entry for each of the {rows} rows of {W}"
                    f"{'' if name == 'b_O' else ', with a leading axis of heads at most'}, but its "
                    f"shape is {bias}."
                )

    def _check_rotary(self) -> None:
        Q = shape_of(self.Q) or shape_of(self.K)
        rows = Q[-2] if Q else self.dim
        if self.rotary is not None and rows not in (None, self.rotary.width):
            raise InputError(
                f"rotary has {len(self.rotary.frequencies)} frequencies, for heads of "
                f"{self.rotary.width} rows, but Q and K have {rows}."
            )

    @property
    def plain_scores(self) -> bool:
        plain = self.b_Q is None and self.b_K is None and self.rotary is None
        return super().plain_scores and plain

    @property
    def scalar_values(self) -> bool:
        return super().scalar_values and self._plain_values

    @property
    def isotropic(self) -> bool:
        return super().isotropic and self.b_O is None

    @property
    def _plain_values(self) -> bool:
        return self.O is None and self.b_V is None

    @property
    def dim(self) -> int | None:
        O = shape_of(self.O)
        return super().dim or (O[-2] if O else None)

    @property
    def autonomous(self) -> bool:
        return super().autonomous and constant(self.b_O)

    @property
    def placed(self) -> bool:
        return self.rotary is not None

    @property
    def breaks(self) -> Breaks:
        return super().breaks.also(breaks_of(self.b_O))

    def queries(self, x: Float[Array, "n d"]) -> Float[Array, "n k"]:
        """`Q x_i + b_Q` of a single head, turned by the place i where positions are rotary."""
        return self._turned(_plus(super().queries(x), self.b_Q))

    def keys(self, x: Float[Array, "n d"]) -> Float[Array, "n k"]:
        """`K x_j + b_K` of a single head, turned by the place j where positions are rotary."""
        return self._turned(_plus(super().keys(x), self.b_K))

    def _turned(self, u: Float[Array, "n k"]) -> Float[Array, "n k"]:
        return u if self.rotary is None else self.rotary(u)

    def values(self, x: Float[Array, "n d"]) -> Float[Array, "n v"]:
        """`V x_j + b_V` of a single head; the tokens where V is applied after the mean."""
        return x if self._plain_values else _plus(apply(self.V, x), self.b_V)

    def out(self, means: Float[Array, "n v"]) -> Float[Array, "n d"]:
        """O times the means."""
        return super().out(means) if self._plain_values else apply(self.O, means)

    def at(self, t: Any, dtype: Any) -> AbstractHeads:
        now = super().at(t, dtype)
        return eqx.tree_at(
            lambda heads: heads.b_O,
            now,
            at_time(self.b_O, t, dtype),
            is_leaf=lambda leaf: leaf is None,
        )

    def sum(self, fn: Callable[[Any], Array]) -> Array:
        """`Σ_h fn(head h) + b_O`."""
        return _plus(super().sum(fn), self.b_O)

    def restricted(self, basis: Float[Array, "r d"]) -> None:
        # Biases lead out of the span of the tokens.
        return None

    def parameters(self) -> dict[str, Any]:
        names = (*self.RANKS, "b_O")
        named = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return named | ({} if self.rotary is None else {"rotary": self.rotary.frequencies})


def _plus(x: Array, bias: Array | None) -> Array:
    return x if bias is None else x + bias
