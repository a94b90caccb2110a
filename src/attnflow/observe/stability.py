"""How perturbations grow: the Jacobian of a flow, its spectrum, the largest Lyapunov exponent."""

from __future__ import annotations

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Complex, Float, Key, Real

from attnflow.checks import as_floats, is_traced, require_positive, require_state
from attnflow.errors import InputError
from attnflow.observe.tangent import require_unit, tangent_bases
from attnflow.randomness import RandomKey, as_key
from attnflow.retired import renamed_arguments
from attnflow.simulation import Method, inputs
from attnflow.simulation.choice import RESOLVED, usual_method
from attnflow.simulation.solve import Problem
from attnflow.spaces import Space
from attnflow.systems import Diffusive, System
from attnflow.weights import Breaks

GROWTH_SAVES = 65
"""The number of times over the horizon at which the growth is recorded."""

PERTURBATION_SALT = 0x1A90
"""Folded into the key of the perturbation. A start drawn with the same key would otherwise be the
perturbation itself, which has no tangential part."""


def jacobian(
    system: System,
    x: Real[ArrayLike, "n d"],
    t: Any = 0.0,
    masses: Real[ArrayLike, " n"] | None = None,
) -> Float[Array, "N N"]:
    """The derivative of the velocity at x, in orthonormal coordinates of the tangent space.

    Coordinates go token by token: N = n(d − 1) on the sphere, where each token has a basis of its
    tangent plane, and N = nd in R^d. At an equilibrium the eigenvalues do not depend on the bases.
    Works under jit and vmap in x.

    Args:
        system: any system whose tokens live in R^d or on a sphere or ellipsoid.
        x: tokens, shape (n, d).
        t: the time, for weights that change in it.
        masses: masses of the tokens, shape (n,); by default 1 each.

    >>> from attnflow.systems import SA
    >>> cluster = jnp.array([[1.0, 0.0], [1.0, 0.0]])
    >>> print(jacobian(SA(beta=3.0), cluster).round(12))
    [[-0.5  0.5]
     [ 0.5 -0.5]]
    """
    x, m = _state(system, x, masses)
    if system.space.unit:
        require_unit(x)
    return _jacobian(system.with_exact_sums(len(x)), t, x, m)


@eqx.filter_jit
def _jacobian(
    system: System, t: Any, x: Float[Array, "n d"], masses: Float[Array, " n"] | None
) -> Float[Array, "N N"]:
    bases = tangent_bases(system.space, x)

    def velocity(u: Float[Array, "n r"]) -> Float[Array, " N"]:
        v = system.velocity(t, x + jnp.einsum("idr,ir->id", bases, u), masses)
        return jnp.einsum("idr,id->ir", bases, v).ravel()

    still = jnp.zeros((len(x), bases.shape[-1]), x.dtype)
    return jax.jacfwd(velocity)(still).reshape(still.size, still.size)


def jacobian_spectrum(
    system: System,
    x: Real[ArrayLike, "n d"],
    t: Any = 0.0,
    masses: Real[ArrayLike, " n"] | None = None,
) -> Complex[Array, " N"]:
    """The eigenvalues of `jacobian`, by decreasing real part.

    An equilibrium is unstable if the first has a positive real part. Works under jit and vmap in
    x, on the CPU.

    Args:
        system: any system whose tokens live in R^d or on a sphere or ellipsoid.
        x: tokens, shape (n, d).
        t: the time, for weights that change in it.
        masses: masses of the tokens, shape (n,); by default 1 each.

    >>> from attnflow.systems import SA
    >>> cluster = jnp.array([[1.0, 0.0], [1.0, 0.0]])
    >>> print(jacobian_spectrum(SA(beta=3.0), cluster).real.round(12) + 0.0)
    [ 0. -1.]
    """
    values = jnp.linalg.eigvals(jacobian(system, x, t, masses))
    return values[jnp.lexsort((-values.imag, -values.real))]


class Lyapunov(NamedTuple):
    """The largest Lyapunov exponent.

    Attributes:
        exponent: the exponent λ, the last of the estimates.
        error: how far the estimates of the last half of the horizon are from it.
        ts: the times of the estimates, shape (T,).
        estimates: the mean growth up to each of them, shape (T,).
    """

    exponent: Float[Array, ""]
    error: Float[Array, ""]
    ts: Float[Array, " T"]
    estimates: Float[Array, " T"]


@renamed_arguments(seed="key")
def lyapunov_exponent(
    system: System,
    x0: Real[ArrayLike, "n d"],
    horizon: float | int,
    *,
    t0: float | int = 0.0,
    masses: Real[ArrayLike, " n"] | None = None,
    method: Method | None = None,
    key: RandomKey | None = None,
) -> Lyapunov:
    """The rate λ at which a generic perturbation of the flow from x0 grows like e^{λt}.

    A random tangent vector u is carried along by `u' = Dv(x) u`. It is kept at length 1, and the
    logarithm of the length that it would have is integrated with it. The estimate at time t is the
    mean growth from a quarter of the horizon to t; the exponent is the last one. The error falls
    like 1/horizon: take a longer one where it is large. Works under jit and vmap in x0.

    Under noise (`Noisy`, `CBO`) u is carried along the noisy path, moved by the derivative of what
    the noise does to x. The estimates then fluctuate with the path, and the error falls like
    1/√horizon. Kicks are of order 1 in law for u, so the usual step is a hundredth of the shortest
    time scale.

    Args:
        system: a flow, with noise or without.
        x0: the start, shape (n, d).
        horizon: how long to follow the perturbation.
        t0: the time of the start.
        masses: masses of the tokens, shape (n,); by default 1 each.
        method: `Adaptive` or `Fixed`; by default the usual one of the system.
        key: an integer or a JAX key, for the perturbation and for the noise. A system with noise
            needs one. Without noise the default is 0, so that two calls agree: for almost every
            perturbation the exponent is the same.

    >>> from attnflow.systems import PureAttention
    >>> V = jnp.array([[0.1, 1.0], [0.0, -1.0]])
    >>> print(lyapunov_exponent(PureAttention(V=V), jnp.eye(1, 2), 40).exponent.round(3))
    0.1
    """
    require_positive(horizon, "horizon")
    x, m = _state(system, x0, masses)
    if system.dynamics not in TANGENT:
        raise InputError(
            f"system must be a flow, with noise or without, but {type(system).__name__} is of the "
            f"kind {system.dynamics!r}, which has no tangent flow."
        )
    x = system.space.admit(x)
    direction = jax.random.fold_in(as_key(0 if key is None else key), PERTURBATION_SALT)
    u = system.space.project(x, jax.random.normal(direction, x.shape, x.dtype))
    start = Perturbed(x, u, jnp.zeros((), x.dtype))
    ts = t0 + jnp.linspace(0, horizon, GROWTH_SAVES, dtype=x.dtype)
    method = method or usual_method(system, x, ts[0], m, RESOLVED["euler"])
    inputs.check_method(method, system, x, ts, m)
    if not method.uses_encoding:
        raise InputError(
            f"method must be Adaptive() or Fixed(dt), which have a tangent flow; it is {method!r}."
        )
    tangent = TANGENT[system.dynamics](system.with_exact_sums(len(x)))
    limit = method.steps_limit(system, ts)
    growth, reached = _growth(tangent, start, m, ts, method, limit, inputs.check_key(system, key))
    growth = _complete(growth, reached, ts)
    quarter = (GROWTH_SAVES - 1) // 4
    estimates = (growth - growth[quarter])[quarter + 1 :] / (ts - ts[quarter])[quarter + 1 :]
    late = estimates[quarter - 1 :]
    error = jnp.max(jnp.abs(late - late[-1]))
    return Lyapunov(estimates[-1], error, ts[quarter + 1 :], estimates)


class Perturbed(eqx.Module):
    """Tokens, a perturbation of length 1, and the logarithm of the length that it would have."""

    x: Float[Array, "n d"]
    u: Float[Array, "n d"]
    growth: Float[Array, ""]


class Tangent(System):
    """A flow with a perturbation: `x' = v(x)`, `u' = Dv(x) u − <u, Dv(x) u> u`."""

    space: Space
    system: System

    @abc.abstractmethod
    def __init__(self, system: Any): ...

    def velocity(self, t: Any, x: Any, masses: Any = None) -> Any:
        v, Dv_u = jax.jvp(lambda y: self.system.velocity(t, y, masses), (x.x,), (x.u,))
        rate = jnp.sum(x.u * Dv_u)
        return Perturbed(v, Dv_u - rate * x.u, rate)

    def positions(self, x: Any) -> Float[Array, "n d"]:
        return x.x

    def retract(self, x: Any) -> Any:
        """Tokens in their space, and a perturbation of length 1 along it."""
        place = self.system.retract(x.x)
        u = self.space.project(place, x.u)
        return Perturbed(place, u / jnp.linalg.norm(u), x.growth)

    @property
    def breaks(self) -> Breaks:
        return self.system.breaks


class TangentFlow(Tangent):
    """The tangent flow of a system without noise."""

    space: Space
    system: System

    def __init__(self, system: System):
        self.system, self.space = system, system.space


class TangentDiffusion(Tangent, Diffusive):
    """The tangent flow along a noisy path: the noise moves x, and its derivative moves u."""

    additive = False

    space: Space
    system: Diffusive
    key: Key[Array, ""] | None

    def __init__(self, system: Diffusive):
        self.system, self.space, self.key = system, system.space, None

    @property
    def ito(self) -> bool:
        return self.system.ito

    def noise_rate(self, x: Any) -> Float[Array, ""]:
        return self.system.noise_rate(x.x)

    def noise_shape(self, x: Any) -> tuple[int, ...]:
        return self.system.noise_shape(x.x)

    def apply_noise(self, t: Any, x: Any, w: Float[Array, "n d"], masses: Any = None) -> Any:
        """The derivative of the noise, with the length of u left to `kick`."""
        moved, turned = jax.jvp(lambda y: self.system.apply_noise(t, y, w, masses), (x.x,), (x.u,))
        return Perturbed(moved, turned, jnp.zeros_like(x.growth))

    def kick(self, t: Any, x: Any, w: Float[Array, "n d"], dt: Any, masses: Any = None) -> Any:
        """The kick of x and its derivative along u, whose length goes to the growth."""
        place, u = jax.jvp(lambda y: self.system.kick(t, y, w, dt, masses), (x.x,), (x.u,))
        length = jnp.linalg.norm(u)
        return Perturbed(place, u / length, x.growth + jnp.log(length))


TANGENT: dict[str, Any] = {"flow": TangentFlow, "diffusion": TangentDiffusion}
"""The tangent flow of each kind of dynamics that has one."""


@eqx.filter_jit
def _growth(
    system: Tangent,
    start: Perturbed,
    masses: Any,
    ts: Float[Array, " T"],
    method: Method,
    limit: int,
    key: Key[Array, ""] | None,
) -> tuple[Float[Array, " T"], Float[Array, ""]]:
    """The logarithm of the length at the times ts, and the time that was reached."""
    problem = Problem(system, method, ts, lambda t, x: x.growth)
    begun = problem.begin(system.retract(start), masses, None, key)
    at = problem.advance_with_derivatives(begun, limit)
    return at.saved, at.t


def _complete(
    growth: Float[Array, " T"], reached: Float[Array, ""], ts: Float[Array, " T"]
) -> Float[Array, " T"]:
    """The growth, if the run came to its end."""
    if is_traced((growth, reached)):
        return eqx.error_if(growth, reached < ts[-1], "attnflow: the run stopped before its end.")
    if reached < ts[-1]:
        raise InputError(
            f"horizon is too long: the run came to a stop at t = {float(reached):g} of "
            f"{float(ts[-1]):g}, as tokens that run away do (look at them through "
            "RescaledAttention). Take a shorter one, or a method with more steps."
        )
    return growth


def _state(system: System, x: Any, masses: Any) -> tuple[Array, Array | None]:
    """The tokens and masses, checked."""
    if not isinstance(system, System):
        raise InputError(f"system must be a System such as SA(beta=4.0), not {system!r}.")
    require_state(x, masses)
    x = as_floats(x)
    system.check_start(x)
    return x, None if masses is None else jnp.asarray(masses, x.dtype)
