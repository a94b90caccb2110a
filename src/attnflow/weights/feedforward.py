"""Feed-forward layers, and their nonlinearities by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Real

from attnflow.checks import as_floats
from attnflow.errors import InputError, unknown
from attnflow.weights.breaks import Breaks, breaks_of
from attnflow.weights.heads import Weight, admit, apply, at_time, constant, shape_of

Activation = Callable[[Any], Any]

gelu = partial(jax.nn.gelu, approximate=False)
gelu_tanh = partial(jax.nn.gelu, approximate=True)

ACTIVATIONS: dict[str, Activation] = {
    "relu": jax.nn.relu,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "silu": jax.nn.silu,
    "tanh": jnp.tanh,
}
"""ReLU; `u Φ(u)` with the normal law Φ (BERT); its form with tanh (GPT-2, ALBERT);
`u / (1 + e^{−u})` (Llama); tanh."""


def activate(sigma: str | Activation, u: Float[Array, "*n m"]) -> Float[Array, "*n m"]:
    """`σ(u)`, entry by entry, where σ is a name or a function.

    >>> print(activate("relu", jnp.array([-1.0, 2.0])))
    [0. 2.]
    """
    return ACTIVATIONS[sigma](u) if isinstance(sigma, str) else sigma(u)


def as_activation(sigma: Any) -> str | Activation:
    """A known name or a function, or an error.

    >>> as_activation("gelu")
    'gelu'
    """
    if callable(sigma):
        return sigma
    if not isinstance(sigma, str):
        raise InputError(f"sigma must be a name such as 'relu' or a function, not {sigma!r}.")
    if sigma not in ACTIVATIONS:
        raise unknown("sigma", sigma, ACTIVATIONS)
    return sigma


class FeedForward(eqx.Module):
    """`x ↦ w σ(a x + b) + c` for each token, [P](2.2) and (2.8).

    Each weight may be left out (identity matrices, no biases), be a number (a multiple of the
    identity; the same bias for all), or a function of t that returns one of these.

    With g the layer is gated, `x ↦ w (σ(g x) ⊙ (a x + b)) + c`: SwiGLU, as in Llama, for
    σ = "silu" (Shazeer, *GLU variants improve Transformer*, 2020).

    Args:
        w: the outer matrix, d × m.
        a: the inner matrix, m × d.
        b: the inner bias, shape (m,).
        c: the outer bias of trained models, shape (d,).
        sigma: the nonlinearity σ: "relu", "gelu", "gelu_tanh", "silu", "tanh" or a function.
        g: the matrix of the gate, m × d; left out, there is no gate.

    >>> import jax.numpy as jnp
    >>> perceptron = FeedForward(w=2.0, b=1.0)
    >>> print(perceptron(0.0, jnp.array([[1.0, -3.0]])))
    [[4. 0.]]
    """

    w: Any
    a: Any
    b: Any
    c: Any
    g: Any
    sigma: str | Activation = eqx.field(static=True)

    def __init__(
        self,
        w: Weight = None,
        a: Weight = None,
        b: Weight = None,
        c: Weight = None,
        sigma: str | Activation = "relu",
        *,
        g: Weight = None,
    ):
        self.w, self.a, self.b, self.c, self.g = (
            admit(W, name) for W, name in zip((w, a, b, c, g), "wabcg", strict=True)
        )
        self.sigma = as_activation(sigma)
        self._check_shapes()

    def _check_shapes(self) -> None:
        shapes = {name: shape_of(getattr(self, name)) for name in "wabcg"}
        for name, rank in (("w", 2), ("a", 2), ("b", 1), ("c", 1), ("g", 2)):
            if shapes[name] and len(shapes[name]) != rank:  # type: ignore[arg-type]
                kind = "matrix" if rank == 2 else "vector"
                raise InputError(f"{name} must be a number or a {kind}, not {shapes[name]}.")
        w, a, b, c, g = (shapes[name] or None for name in "wabcg")
        widths = {"w": w and w[1], "a": a and a[0], "b": b and b[0], "g": g and g[0]}
        dims = {"w": w and w[0], "a": a and a[1], "c": c and c[0], "g": g and g[1]}
        if w is None or a is None:  # one product is a multiple of the identity, so m = d
            dims = widths = widths | {f"{name} ": value for name, value in dims.items()}
        for what, sizes in (("m (w's columns, a's rows, b)", widths), ("d (w's rows, c)", dims)):
            if len({size for size in sizes.values() if size is not None}) > 1:
                gate = "" if g is None else ", g (m × d)"
                raise InputError(
                    f"w (d × m), a (m × d){gate}, b (m) and c (d) must agree on {what}."
                )

    @property
    def dim(self) -> int | None:
        """The dimension d of the tokens, or None when any will do."""
        w, a, b, c, g = (shape_of(getattr(self, name)) or None for name in "wabcg")
        square = b[0] if b is not None and (w is None or a is None) else None
        sizes = (w and w[0], a and a[1], c and c[0], g and g[1], square)
        return next((size for size in sizes if size is not None), None)

    @property
    def width(self) -> int | None:
        """The number m of hidden units, or None when it is that of the token's entries."""
        w, a, b, g = (shape_of(getattr(self, name)) or None for name in "wabg")
        sizes = (w and w[1], a and a[0], b and b[0], g and g[0])
        return next((size for size in sizes if size is not None), None)

    @property
    def autonomous(self) -> bool:
        """Whether no weight is a function of t."""
        return constant(self.w, self.a, self.b, self.c, self.g)

    @property
    def breaks(self) -> Breaks:
        """The times at which a weight jumps."""
        return breaks_of(self.w, self.a, self.b, self.c, self.g)

    def __call__(self, t: Any, x: Real[Array, "n d"]) -> Float[Array, "n d"]:
        """The images of the tokens, with the weights of time t."""
        x = as_floats(x)
        weights = (self.w, self.a, self.b, self.c, self.g)
        w, a, b, c, g = (at_time(W, t, x.dtype) for W in weights)
        hidden = apply(a, x)
        hidden = hidden if b is None else hidden + b
        if g is None:
            hidden = activate(self.sigma, hidden)
        else:
            hidden = hidden * activate(self.sigma, apply(g, x))
        out = apply(w, hidden)
        return out if c is None else out + c

    def parameters(self) -> dict[str, Any]:
        """The weights that are not left out, and σ."""
        named = {name: getattr(self, name) for name in "wabcg"}
        given = {name: W for name, W in named.items() if W is not None}
        return given | ({} if self.sigma == "relu" else {"sigma": self.sigma})
