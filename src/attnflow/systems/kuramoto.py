"""The Kuramoto model, with all or along the edges of a graph."""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Num, Shaped

from attnflow.errors import InputError
from attnflow.systems.angles import Oscillators, as_reals, require_length
from attnflow.systems.base import Cost
from attnflow.systems.fields import CouplingField
from attnflow.systems.presets import Drawn, Preset
from attnflow.weights.graphs import GRAPHS


class Kuramoto(Oscillators):
    """The Kuramoto model, [P](7.2).

        θ_i' = ω_i + (K/n) Σ_j a_ij sin(θ_j − θ_i)

    The state is θ, of shape `(n, 1)`, and `positions` are `(cos θ, sin θ)`, whose
    `observe.order_parameter` is r. Without a graph the sum is `K r sin(ψ − θ_i)`, which costs O(n).
    With masses it is `Σ_j m_j a_ij …` over the total mass.

    Equal frequencies synchronise from almost every start. Lorentzian ones of width Δ do so in part,
    `r = √(1 − 2Δ/K)`, above K = 2Δ. Good values: K = 2 with
    `omega=weights.frequencies.lorentzian(n, width=0.5, key=0)`, then r = 0.71; K = n with
    `graph=weights.graphs.erdos_renyi(n, p, key=0)`.

    Args:
        K: strength of the coupling.
        omega: natural frequencies, shape (n,), or one number for all; 0 by default.
        graph: matrix a of shape (n, n), where a_ij is how much i listens to j; by default all
            entries are 1.

    >>> print(Kuramoto(K=2.0).velocity(0.0, jnp.array([[0.0], [jnp.pi / 2]])).round(12))
    [[ 1.]
     [-1.]]
    """

    equation: ClassVar[str] = "θ_i' = ω_i + (K/n) Σ_j a_ij sin(θ_j − θ_i)"
    source: ClassVar[str] = "[P](7.2)"
    drawn: ClassVar = Oscillators.drawn | {"graph": Drawn(GRAPHS, "n")}
    preset = Preset(
        "K", 2.0, "angles", 20.0, of_rows=1, extra={"omega": {"family": "lorentzian", "width": 0.5}}
    )

    graph: Float[Array, "n n"] | None

    def __init__(
        self,
        K: Float[ArrayLike, ""] | int,
        omega: Num[ArrayLike, "*n"] | None = None,
        graph: Shaped[ArrayLike, "n n"] | None = None,
    ):
        super().__init__(K, omega)
        self.graph = _as_graph(graph)

    def pull(self, theta: Float[Array, " n"], shares: Float[Array, " n"]) -> Float[Array, " n"]:
        """`Σ_j a_ij sin(θ_j − θ_i)` by shares, from the sums of cosines and sines over j."""
        own = jnp.stack([jnp.cos(theta), jnp.sin(theta)])
        heard = own * shares
        if self.graph is None:
            cosines, sines = heard.sum(axis=1)
        else:
            cosines, sines = heard @ self.graph.astype(theta.dtype).T
        return sines * own[0] - cosines * own[1]

    def circle_field(self, t: Any) -> CouplingField | None:
        """That of the coupling sin, if all tokens are alike: no graph, one frequency."""
        if self.graph is not None or not self.alike:
            return None
        return CouplingField(jnp.sin, self.K, self.omega)

    def check_start(self, x: Float[Array, "*batch n d"]) -> None:
        """There must be as many angles as frequencies, and as nodes of the graph."""
        super().check_start(x)
        if self.graph is not None:
            require_length(self.graph, x, "graph")

    def cost(self, n: int) -> Cost:
        """n² with a graph; without one each angle looks at two sums alone."""
        pairs = n if self.graph is None else n * n
        return Cost(pairs, pairs)

    def parameters(self) -> dict[str, Any]:
        """The graph too, if there is one."""
        return super().parameters() | ({} if self.graph is None else {"graph": self.graph})


def _as_graph(graph: Any) -> Float[Array, "n n"] | None:
    if graph is None:
        return None
    array = as_reals(graph, "graph")
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        raise InputError(
            f"graph must be a matrix (n, n), whose entry (i, j) says how much token i listens to "
            f"token j, but its shape is {array.shape}."
        )
    return array
