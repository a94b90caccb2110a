"""`FeedForward(w, a, b, c)`: the perceptron that acts on each token by itself."""

from __future__ import annotations

from typing import Any

import equinox as eqx
from jaxtyping import Array, Float, Real

from attnflow.checks import as_floats
from attnflow.errors import InputError
from attnflow.weights.activations import Activation, activate, as_activation
from attnflow.weights.heads import Weight, admit, apply, at_time, periods, shape_of


class FeedForward(eqx.Module):
    """`x ↦ w σ(a x + b) + c` for each token, [P](2.2) and (2.8).

    w is (d, m), a is (m, d), b is (m,) and c, the bias of trained models, is (d,). Each may be left
    out (identity matrices, no biases), be a number (a multiple of the identity; the same bias for
    all), or a function of t that returns one of these. σ is "relu", "gelu", "gelu_tanh", "tanh"
    or a function.

    >>> import jax.numpy as jnp
    >>> perceptron = FeedForward(w=2.0, b=1.0)
    >>> print(perceptron(0.0, jnp.array([[1.0, -3.0]])))
    [[4. 0.]]
    """

    w: Any
    a: Any
    b: Any
    c: Any
    sigma: str | Activation = eqx.field(static=True)

    def __init__(
        self,
        w: Weight = None,
        a: Weight = None,
        b: Weight = None,
        c: Weight = None,
        sigma: str | Activation = "relu",
    ):
        self.w, self.a, self.b, self.c = (
            admit(W, name) for W, name in ((w, "w"), (a, "a"), (b, "b"), (c, "c"))
        )
        self.sigma = as_activation(sigma)
        self._check_shapes()

    def _check_shapes(self) -> None:
        shapes = {name: shape_of(getattr(self, name)) for name in "wabc"}
        for name, rank in (("w", 2), ("a", 2), ("b", 1), ("c", 1)):
            if shapes[name] and len(shapes[name]) != rank:  # type: ignore[arg-type]
                kind = "matrix" if rank == 2 else "vector"
                raise InputError(f"{name} must be a number or a {kind}, not {shapes[name]}.")
        w, a, b, c = (shapes[name] or None for name in "wabc")
        widths = {"w": w and w[1], "a": a and a[0], "b": b and b[0]}
        dims = {"w": w and w[0], "a": a and a[1], "c": c and c[0]}
        if w is None or a is None:  # one product is a multiple of the identity, so m = d
            dims = widths = widths | {f"{name} ": value for name, value in dims.items()}
        for what, sizes in (("m (w's columns, a's rows, b)", widths), ("d (w's rows, c)", dims)):
            if len({size for size in sizes.values() if size is not None}) > 1:
                raise InputError(f"w (d × m), a (m × d), b (m) and c (d) must agree on {what}.")

    @property
    def dim(self) -> int | None:
        """The dimension d of the tokens, or None when any will do."""
        w, a, b, c = (shape_of(getattr(self, name)) or None for name in "wabc")
        square = b[0] if b is not None and (w is None or a is None) else None
        sizes = (w and w[0], a and a[1], c and c[0], square)
        return next((size for size in sizes if size is not None), None)

    @property
    def width(self) -> int | None:
        """The number m of hidden units, or None when it is that of the token's entries."""
        w, a, b = (shape_of(getattr(self, name)) or None for name in "wab")
        sizes = (w and w[1], a and a[0], b and b[0])
        return next((size for size in sizes if size is not None), None)

    @property
    def breaks(self) -> tuple[float, ...]:
        """The periods at whose multiples a weight jumps."""
        return periods(self.w, self.a, self.b, self.c)

    def __call__(self, t: Any, x: Real[Array, "n d"]) -> Float[Array, "n d"]:
        """The images of the tokens, with the weights of time t."""
        x = as_floats(x)
        w, a, b, c = (at_time(W, t, x.dtype) for W in (self.w, self.a, self.b, self.c))
        hidden = apply(a, x)
        hidden = activate(self.sigma, hidden if b is None else hidden + b)
        out = apply(w, hidden)
        return out if c is None else out + c

    def parameters(self) -> dict[str, Any]:
        """The weights that are not left out, and σ."""
        named = {name: getattr(self, name) for name in "wabc"}
        given = {name: W for name, W in named.items() if W is not None}
        return given | ({} if self.sigma == "relu" else {"sigma": self.sigma})
