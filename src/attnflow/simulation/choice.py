"""Which method runs a system: the one that is given, checked, or the usual one of its dynamics."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow.checks import is_traced
from attnflow.errors import InputError
from attnflow.simulation.filippov import Filippov
from attnflow.simulation.methods import Adaptive, Fixed, Layers, Method
from attnflow.systems import System

NOISE_STEP = 0.01
"""The longest step for systems with noise where none is given."""

RESOLVED = {"heun": 0.1, "euler": 0.01}
"""The part of the shortest time scale that such a step covers: these methods are of order 2 and 1,
so that what happens on that scale has an error of about a hundredth."""

RATE_SAMPLES = 8
"""How often the drift is looked at to find its rate."""


def check_method(
    method: Any,
    system: System,
    x: Float[Array, "*batch n d"],
    ts: Any,
    masses: Float[Array, "*members n"] | None = None,
) -> Method:
    """The method, or the usual one of the system, if it can run the system from x at times ts.

    Both drivers ask here. Traced values pass unseen, but what the system and the method are is
    known under tracing, too.
    """
    if method is None:
        method = usual_method(system, x, ts[0], masses)
    if not isinstance(method, Method):
        raise InputError(f"method must be Adaptive(), Fixed(dt) or Layers(dt), not {method!r}.")
    times = None if is_traced(ts) else np.asarray(ts, float)
    method.check(system, times)
    if times is not None:
        method.check_resolution(times.astype(x.dtype))
    return method


def usual_method(
    system: System,
    x: Float[Array, "*batch n d"],
    start: Any,
    masses: Float[Array, "*members n"] | None = None,
    resolved: float | None = None,
) -> Method:
    """The method that runs the system from x where none is given.

    With noise its step covers the part `resolved` of the shortest time scale.
    """
    if system.dynamics == "diffusion":
        solver = "euler" if system.ito else "heun"  # type: ignore[attr-defined]
        part = RESOLVED[solver] if resolved is None else resolved
        return Fixed(noise_step(system, x, start, masses, part), solver)
    usual: dict[str, type[Method]] = {"flow": Adaptive, "map": Layers, "inclusion": Filippov}
    if system.dynamics not in usual:
        raise InputError(
            f"method: {type(system).__name__}.dynamics is {system.dynamics!r}, which is none of "
            f"{', '.join((*usual, 'diffusion'))}: no method is known for it."
        )
    return usual[system.dynamics]()


def noise_step(
    system: Any,
    x: Float[Array, "*batch n d"],
    start: Any,
    masses: Float[Array, "*members n"] | None,
    part: float,
) -> Any:
    """A step that is the given part of the time scales of the noise and of the drift at x.

    It is rounded down to two digits, and traced if anything is.
    """
    rate = jnp.maximum(system.noise_rate(x), drift_rate(system, x, start, masses))
    step = jnp.minimum(NOISE_STEP, part / jnp.maximum(rate, part / NOISE_STEP))
    unit = 10.0 ** (jnp.floor(jnp.log10(step)) - 1)
    step = jnp.floor(step / unit + 1e-6) * unit
    return step if is_traced(step) else float(f"{float(step):.6g}")


@eqx.filter_jit
def drift_rate(
    system: System, x: Float[Array, "*batch n d"], t: Any, masses: Float[Array, "*members n"] | None
) -> Float[Array, ""]:
    """How fast nearby states of x move apart or together, at most: |Dv|, by a few differences."""
    n, d = x.shape[-2:]
    members = x.reshape(-1, n, d)
    each = None if masses is None else jnp.broadcast_to(masses, x.shape[:-1]).reshape(-1, n)
    apart = float(jnp.finfo(x.dtype).eps) ** (1 / 3)

    def one(member: Any) -> Float[Array, ""]:
        x, m = member
        v = system.velocity(t, x, m)
        small = apart * jnp.maximum(jnp.sqrt(jnp.mean(x * x)), 1)

        def look(carry: Any, _: Any) -> Any:
            u, most = carry
            u = system.space.project(x, u)
            u = small * u / jnp.maximum(jnp.sqrt(jnp.mean(u * u)), jnp.finfo(x.dtype).tiny)
            change = system.velocity(t, x + u, m) - v
            rate = jnp.linalg.norm(change) / jnp.linalg.norm(u)
            return (change, jnp.maximum(most, jnp.where(jnp.isfinite(rate), rate, 0))), None

        u = jax.random.normal(jax.random.key(0), x.shape, x.dtype)
        return jax.lax.scan(look, (u, jnp.zeros((), x.dtype)), length=RATE_SAMPLES)[0][1]

    return jnp.max(jax.lax.map(one, (members, each)))
