"""MF on S^{d−1} for densities of one angle: their Gegenbauer coefficients."""

from __future__ import annotations

import functools
from collections.abc import Callable
from itertools import islice
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Array, Float, Num, Real

from attnflow.attention.harmonics import counts, gegenbauer
from attnflow.checks import as_floats, require_count
from attnflow.errors import InputError
from attnflow.meanfield.measures import ModeSystem, require_modes
from attnflow.spaces import Flat
from attnflow.systems import Cost, System
from attnflow.systems.fields import AttentionField


class GegenbauerModes(Flat):
    """Zonal measures as their first coefficients `(M + 1, 1)`; b_0 is 1."""

    unit = False
    rotations = False

    def admit(self, x: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        """The start x itself, if it can be the coefficients of a probability measure."""
        require_modes(x, 1, "the Gegenbauer modes", "meanfield.zonal_modes(fn, d, M)")
        return x


class ZonalModes(ModeSystem):
    """The many-token limit of SA or USA on S^{d−1} for measures of one angle, [P](3.2)–(3.8).

    A measure that is symmetric about an axis e stays so. It has a density f(u), u = <x, e>, with
    respect to the uniform measure s, and moves by

        u' = (1 − u²) X(u),   X = F'/(βF) (SA) or F'/β (USA),   F(u) = ∫ e^{β<x,y>} dμ(y)

    The state are the `b_k = ∫ q_k(<x,e>) dμ(x)`, k = 0 … M, `(M + 1, 1)`, where q_k is Gegenbauer's
    polynomial with `∫ q_k² ds = 1`, so that `f = Σ_k b_k q_k`; a Dirac mass at e has b_k = q_k(1).

        b_k' = ∫ q_k'(u) (1 − u²) X f ds − σ k (k + d − 2) b_k

    F is diagonal in these modes (Funk–Hecke), and integrals are sums over Gauss' nodes. As
    `CircleModes` it is for smooth phases: `tail(x)` shows how long they last. Good values: M = 63.

    Args:
        system: that of the tokens: `SA(beta)`, `USA(beta)` (with a number V at most), or `Noisy` of
            these, whose σ diffuses.
        d: the dimension of the space around the sphere, at least 2.

    >>> from attnflow.systems import SA
    >>> x = jnp.zeros((4, 1)).at[0, 0].set(1.0).at[2, 0].set(1e-3)
    >>> rate = ZonalModes(SA(beta=4.0), d=3).velocity(0.0, x)[2, 0] / 1e-3
    >>> print(round(float(rate), 3))  # 2·3 I_{5/2}(4) / (4 I_{1/2}(4)); see theory.linear_growth
    0.656
    """

    equation: ClassVar[str] = "∂_t μ + div(X[μ] μ) = σ Δμ, μ zonal on S^{d−1}"
    source: ClassVar[str] = "[P](3.2)–(3.4), (3.8)"

    d: int = eqx.field(static=True)

    def __init__(self, system: System, d: int):
        super().__init__(GegenbauerModes(), system)
        self.d = require_count(d, "d", least=2)

    def _declared(self, t: Any) -> AttentionField | None:
        return self.system.attention_field(t)

    def rate(self, t: Any, x: Num[Array, "n d"]) -> Float[Array, "n d"]:
        """`b_k'`."""
        b, field, sigma = as_floats(x)[:, 0], self.attention(t), self.sigma
        nodes = _nodes(len(b), self.d).astype(b.dtype)
        total, pull = self._kernel(nodes, len(b))
        pulled = (nodes.q_tilt @ (pull * b)) / nodes.across
        X = field.combine(pulled, nodes.q @ (total * b) if field.normalised else pulled)
        rate = (nodes.w * X * (nodes.q @ b)) @ nodes.q_tilt
        if sigma is not None:
            rate = rate - sigma.astype(b.dtype) * nodes.laplace * b
        return rate[:, None]

    def _kernel(self, nodes: Nodes, count: int) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
        """What `e^{β(<x,y> − 1)}` multiplies the mode k by (Funk–Hecke), and that over β.

        The second, for k > 0, is integrated by parts, so that β = 0 is no exception.
        """
        weighed = nodes.w * self.attention(0.0).weight(nodes.u)
        at_pole = jnp.asarray(_poles(count, self.d), nodes.u.dtype)
        laplace = jnp.maximum(nodes.laplace, 1)
        return weighed @ nodes.q / at_pole, weighed @ nodes.q_tilt / (at_pole * laplace)

    def density(self, x: Num[Array, "n d"], u: Real[Array, " m"]) -> Float[Array, " m"]:
        """The density f at `u = <x, e>` with respect to the uniform measure, whose own is 1."""
        b = as_floats(x)[:, 0]
        P = jnp.stack(list(islice(gegenbauer(jnp.asarray(u, b.dtype), self.d), len(b))), axis=1)
        return P @ (b * jnp.asarray(_poles(len(b), self.d), b.dtype))

    def energy(self, x: Num[Array, "n d"]) -> Float[Array, ""]:
        """E_β of the measure, with the same constant as `observe.energy`."""
        b = as_floats(x)[:, 0]
        nodes = _nodes(len(b), self.d).astype(b.dtype)
        total, pull = self._kernel(nodes, len(b))
        beta = self.attention(0.0).beta.astype(b.dtype)
        constant = jnp.where(beta == 0, 0, total[0] / jnp.where(beta == 0, 1, beta))
        return jnp.exp(beta) * (constant + jnp.sum((pull * b**2)[1:])) / 2

    def cost(self, n: int) -> Cost:
        return Cost(pairs=4 * n * _count(n), held=2 * n * _count(n))

    def parameters(self) -> dict[str, Any]:
        return super().parameters() | {"d": self.d}


def zonal_modes(fn: Callable[..., Any], d: int, M: int) -> Float[Array, "M1 1"]:
    """The modes b_0 … b_M of the zonal measure whose density is proportional to fn(u), u = <x, e>.

    It is integrated over Gauss' nodes.

    Args:
        fn: a smooth function of an array, positive on [−1, 1].
        d: the dimension of the space around the sphere.
        M: the last mode.

    >>> print(zonal_modes(lambda u: 1 + u, d=3, M=1).round(6)[:, 0])
    [1.      0.57735]
    """
    nodes = _nodes(require_count(M, "M") + 1, require_count(d, "d", least=2))
    f = np.asarray(fn(nodes.u), float)
    if f.shape != nodes.u.shape or not np.all(np.isfinite(f)) or f.min() < 0:
        raise InputError("fn must give one finite number that is not negative for each u.")
    f = f * nodes.w
    return jnp.asarray((f / f.sum()) @ nodes.q)[:, None]


class Nodes(NamedTuple):
    """Gauss' nodes u with weights w that add up to 1, and there q_k and (1 − u²) q_k'."""

    u: Any
    w: Any
    q: Any
    q_tilt: Any
    across: Any
    laplace: Any

    def astype(self, dtype: Any) -> Nodes:
        """All as arrays of one precision."""
        return Nodes(*(jnp.asarray(a, dtype) for a in self))


def _count(count: int) -> int:
    return 3 * count + 32


@functools.cache
def _nodes(count: int, d: int) -> Nodes:
    u, w = scipy.special.roots_jacobi(_count(count), (d - 3) / 2, (d - 3) / 2)
    P = np.stack(list(islice(gegenbauer(u, d), count)), axis=1)
    degrees = np.arange(count)
    before = np.concatenate([np.zeros((len(u), 1)), P[:, :-1]], axis=1)
    poles = _poles(count, d)
    tilt = poles * degrees * (before - u[:, None] * P)
    return Nodes(u, w / w.sum(), poles * P, tilt, 1 - u**2, degrees * (degrees + d - 2.0))


def _poles(count: int, d: int) -> Float[np.ndarray, " k"]:
    """q_k(1): the root of the number of harmonics of degree k."""
    return np.sqrt(counts(count, d))
