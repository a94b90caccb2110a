"""Mean shift: every token climbs to a mode of a kernel density."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Real

from attnflow.checks import NO_NUMBERS, as_floats, require_finite
from attnflow.errors import InputError, unknown
from attnflow.spaces import Euclidean
from attnflow.systems.base import Cost, Map
from attnflow.systems.kernels import (
    as_length,
    gaussian,
    in_blocks,
    indicator,
    require_whole_steps,
    rows,
    squared_distances,
    weighted_means,
)
from attnflow.systems.presets import Preset

KERNELS: dict[str, Callable[..., Any]] = {"gaussian": gaussian, "flat": indicator}


class MeanShift(Map):
    """Mean shift on R^d, a map in time ([E], related work).

        x_i ← Σ_j K(|x_i−y_j|/h) y_j / Σ_j K(|x_i−y_j|/h),   K(r) = e^{−r²/2}, or 1 for r ≤ 1

    With `data` (k, d) the y_j are these fixed points: every token climbs the kernel density
    `Σ_j e^{−|x−y_j|²/2h²}` of the data on its own, and rests at one of its modes. Without, the
    y_j are the tokens themselves (blurring mean shift) and the density moves with them: for unit
    tokens that is the mean Σ_j A_ij x_j of attention at β = 1/h². With the flat kernel a token that
    no data are near stays. Masses weigh the y_j when these are the tokens;
    with `data` tokens do not act on each other, and masses are refused. One layer is one update,
    so `Layers(1.0)` is its method.

    Good values: h about the size of the clumps that are to be found.

    Args:
        bandwidth: width h of the kernel.
        data: fixed points, shape (k, d); by default the tokens themselves.
        kernel: "gaussian" or "flat".

    >>> shift = MeanShift(1.0, data=jnp.array([[0.0], [1.0], [9.0]]), kernel="flat")
    >>> print(shift.layer(0, jnp.array([[0.2], [8.5], [5.0]]), 1.0))
    [[0.5]
     [9. ]
     [5. ]]
    """

    equation: ClassVar[str] = "x_i ← Σ_j K(|x_i−y_j|/h) y_j / Σ_j K(|x_i−y_j|/h)"
    source: ClassVar[str] = "[E] related work, mean shift"
    space = Euclidean()
    preset = Preset("bandwidth", 1.0, "cube", 40.0)

    bandwidth: Float[Array, ""]
    data: Float[Array, "k d"] | None
    kernel: str = eqx.field(static=True)

    def __init__(
        self,
        bandwidth: Float[ArrayLike, ""] | int,
        *,
        data: Real[ArrayLike, "k d"] | Sequence[Sequence[float | int]] | None = None,
        kernel: str = "gaussian",
    ):
        self.bandwidth = as_length(bandwidth, "bandwidth")
        if kernel not in KERNELS:
            raise unknown("kernel", kernel, KERNELS)
        self.kernel = kernel
        self.data = None if data is None else _points(data)

    def layer(
        self, k: Any, x: Real[Array, "n d"], dt: Any, masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n d"]:
        """Every token at its weighted mean; k and dt do not matter."""
        x = as_floats(x)
        if self.data is None:
            return in_blocks(lambda block: weighted_means(self._weights(block, x), x, masses), x)
        if masses is not None:
            raise InputError(
                "masses must be left out for MeanShift with data: its tokens do not see each other."
            )
        y = self.data.astype(x.dtype)

        def means(block: Float[Array, "b d"]) -> Float[Array, "b d"]:
            w = self._weights(block, y)
            alone = jnp.sum(w, axis=1, keepdims=True) == 0
            return jnp.where(alone, block, weighted_means(jnp.where(alone, 1, w), y))

        return in_blocks(means, x)

    def _weights(self, x: Float[Array, "n d"], y: Float[Array, "k d"]) -> Float[Array, "n k"]:
        s = squared_distances(x, y, self.bandwidth)
        if self.kernel == "gaussian":
            # a common factor of a row cancels, and far from all data would underflow
            s = s - jnp.min(s, axis=1, keepdims=True)
        return KERNELS[self.kernel](s)

    def check_start(self, x: Float[Array, "*batch n d"]) -> None:
        """Tokens have the dimension of the data."""
        if self.data is not None and x.shape[-1] != self.data.shape[1]:
            raise InputError(
                f"x0 has tokens of dimension d = {x.shape[-1]}, but the data of MeanShift have "
                f"d = {self.data.shape[1]}."
            )

    def check_layers(self, dt: Any, start: Any) -> None:
        """One layer is one update."""
        require_whole_steps(self, dt)

    def restricted(self, basis: Float[Array, "r d"]) -> MeanShift | None:
        """Itself where only distances of tokens matter; data lead out of their span."""
        return self if self.data is None else None

    def cost(self, n: int) -> Cost:
        """Each token with each point; in memory are those of a block of tokens."""
        points = n if self.data is None else len(self.data)
        return Cost(n * points, rows(n) * points)

    def parameters(self) -> dict[str, Any]:
        """The bandwidth, and whatever is not its default."""
        named: dict[str, Any] = {"bandwidth": self.bandwidth}
        if self.data is not None:
            named["data"] = self.data
        return named if self.kernel == "gaussian" else named | {"kernel": self.kernel}


def _points(data: Any) -> Float[Array, "k d"]:
    try:
        points = as_floats(data)
    except NO_NUMBERS:
        raise InputError("data must be points of shape (k, d), all of the same length.") from None
    if points.ndim != 2 or 0 in points.shape:
        raise InputError(f"data must have shape (k, d), but its shape is {points.shape}.")
    require_finite(points, "data")
    return points
