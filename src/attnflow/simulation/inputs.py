"""The checks of `simulate`, before any work starts."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jaxtyping import Array

from attnflow.checks import (
    NO_NUMBERS,
    as_array,
    as_floats,
    is_traced,
    on_host,
    require_finite,
    require_memory,
)
from attnflow.errors import InputError
from attnflow.randomness import as_key
from attnflow.simulation.choice import check_method
from attnflow.simulation.methods import Method
from attnflow.simulation.noise import missing_key
from attnflow.simulation.trajectory import Trajectory, has_coordinates
from attnflow.systems import System


def check_system(system: Any) -> None:
    """A system must be an instance, not a class or something else."""
    if not isinstance(system, System):
        hint = "call it first, as in SA(beta=4.0)" if isinstance(system, type) else "see SYSTEMS"
        raise InputError(f"system must be a System such as SA(beta=4.0), not {system!r}: {hint}.")


def check_run(
    system: Any, x0: Any, ts: Any, method: Any, masses: Any = None, saves_states: bool = True
) -> tuple[Array, Array, Array | None, Method]:
    """Everything that can be said of a run before it starts: its x0, ts, masses and method."""
    check_system(system)
    x = check_start(system, x0)
    times = check_times(ts, x.dtype)
    m = check_masses(masses, x.shape, x.dtype)
    if isinstance(ts, jax.Array):
        ts = times if is_traced(ts) else np.asarray(ts)
    method = check_method(method, system, x, ts, m)
    check_memory(system, method, x, len(times), saves_states)
    return x, times, m, method


def check_key(system: System, key: Any) -> Array | None:
    """The JAX key of a system that draws."""
    if not system.random:
        return None
    if key is None:
        raise missing_key(system)
    return as_key(key)


def check_times(ts: Any, dtype: Any) -> Array:
    """Save times: at least two, finite, increasing."""
    if not is_traced(ts):
        try:
            ts = np.asarray(ts, dtype=float)
        except NO_NUMBERS:
            raise InputError(f"ts must be increasing times, not {ts!r}.") from None
    if ts.ndim != 1 or len(ts) < 2:
        raise InputError(
            f"ts must be a list of at least two times (the start and the end), but its shape is "
            f"{ts.shape}."
        )
    require_finite(ts, "ts")
    if is_traced(ts):
        return jnp.asarray(ts, dtype=dtype)
    cast = ts.astype(dtype)
    late = np.flatnonzero(np.diff(cast) <= 0)
    if late.size:
        i = int(late[0])
        raise InputError(
            f"ts must increase, but ts[{i + 1}] = {ts[i + 1]:g} is not after "
            f"ts[{i}] = {ts[i]:g} (in {np.dtype(dtype)})."
        )
    return jax.device_put(cast)


def check_start(system: System, x0: Any) -> Array:
    """The tokens: an array (*batch, n, d), finite, in the system's space."""
    try:
        x = as_array(x0)
    except NO_NUMBERS:
        raise InputError(
            f"x0 must be an array of tokens (n, d), not {type(x0).__name__}."
        ) from None
    if x.ndim < 2 or 0 in x.shape:
        raise InputError(
            f"x0 must have shape (n, d), one row for each token, or (*batch, n, d), but its shape "
            f"is {x.shape}."
        )
    if not jnp.issubdtype(x.dtype, jnp.floating):
        if not jnp.issubdtype(x.dtype, jnp.integer):
            raise InputError(f"x0 must hold real numbers, but its dtype is {x.dtype}.")
        x = as_floats(x)
    require_finite(x, "x0")
    system.check_start(x)
    return system.space.admit(_implicitly_split(x))


def _implicitly_split(x: Array) -> Array:
    """Tokens that are split over an explicit mesh of devices, split so by the compiler instead.

    An explicit mesh makes shardings part of types, which diffrax does not know.
    """
    sharding = None if is_traced(x) else x.sharding
    if not isinstance(sharding, NamedSharding):
        return x
    names = sharding.mesh.axis_names
    mesh = Mesh(sharding.mesh.devices, names, axis_types=(AxisType.Auto,) * len(names))
    return jax.device_put(x, NamedSharding(mesh, sharding.spec))


def check_masses(masses: Any, shape: tuple[int, ...], dtype: Any) -> Array | None:
    """Masses m_j > 0: one for each token, the same for all members of a batch or each its own."""
    if masses is None:
        return None
    try:
        m = as_array(masses)
    except NO_NUMBERS:
        raise InputError(f"masses must be positive numbers, not {masses!r}.") from None
    if jnp.iscomplexobj(m):
        raise InputError("masses must be real numbers, but they are complex.")
    if m.shape not in (shape[-2:-1], shape[:-1]):
        raise InputError(
            f"masses must have shape {shape[-2:-1]}, one for each token, but it is {m.shape}."
        )
    require_finite(m, "masses")
    if not is_traced(m) and not bool(np.all(np.asarray(m) > 0)):
        raise InputError("masses must be positive.")
    return on_host(lambda m: m.astype(dtype), m)


def check_continued(earlier: Trajectory, ts: Any, masses: Any) -> None:
    """A continued run starts when the earlier one ended, with its masses."""
    if masses is not None:
        raise InputError("masses come with the earlier trajectory: leave them out to continue it.")
    if is_traced((earlier.ts, ts)) or np.ndim(ts) != 1 or not np.size(ts):
        return
    end, start = float(earlier.ended), float(check_times(ts, earlier.final.dtype)[0])
    if not math.isclose(end, start, rel_tol=8 * float(jnp.finfo(earlier.final.dtype).eps)):
        raise InputError(
            f"ts[0] = {start:g}, but the earlier trajectory ends at {end:g}: a run is continued "
            "from where it ended."
        )


def continued(earlier: Trajectory, system: Any, method: Any, ts: Any) -> tuple[Array, bool]:
    """The state to continue from, and whether it is in the coordinates of `encode`.

    It is where the earlier run kept these and the system uses the same ones: then no digit is lost.
    """
    check_system(system)
    system.check_start(jnp.asarray(earlier.final))
    inner, final = earlier.inner_final, earlier.final
    if inner is not None and system.encoded:
        encodes = check_method(method, system, final, ts, earlier.masses).uses_encoding
        if encodes and (is_traced((earlier, system)) or _same_coordinates(earlier, system)):
            return jnp.asarray(inner), True
    if not is_traced(final) and not np.isfinite(np.asarray(final)).all():
        if inner is None:
            raise InputError(
                "x0: the last state of the earlier trajectory is not finite, as tokens ran away: "
                "start from an earlier state."
            )
        raise InputError(
            f"x0: the last state of the earlier trajectory has lost digits at t = "
            f"{float(earlier.ended):g}: continue it with its own system and with Adaptive or "
            "Fixed, which use the coordinates that it was integrated in."
        )
    return final, False


def _same_coordinates(earlier: Trajectory, system: System) -> bool:
    """Whether `encode` of the system means what it meant in the earlier run, as far as can be told.

    That run's system is asked at two times, for a unit of each coordinate. One that was loaded is
    not known: then its name must be the same, and the last state that of its coordinates.
    """
    if not isinstance(earlier.system, System):
        return str(system) == earlier.system and has_coordinates(system, earlier)
    if not earlier.system.encoded:
        return False
    d, dtype = earlier.final.shape[-1], earlier.final.dtype
    ts, ys = jnp.arange(2, dtype=dtype), jnp.stack([jnp.eye(d, dtype=dtype)] * 2)
    ours, theirs = (np.asarray(jax.vmap(each.decode)(ts, ys)) for each in (system, earlier.system))
    return np.allclose(ours, theirs, rtol=1e-4 if dtype == jnp.float32 else 1e-9, equal_nan=True)


def check_memory(system: System, method: Method, x: Array, T: int, saves_states: bool) -> None:
    """The states that are kept (twice, while they are gathered) and the scores must fit."""
    size = x.dtype.itemsize
    members = math.prod(x.shape[:-2])
    kept = 2 * T * x.size * size * (1 + system.encoded) if saves_states else 0
    scores = 3 * members * method.memory(system, x.shape[-2]) * size
    require_memory(
        kept + scores + 20 * x.size * size,
        f"this run (n = {x.shape[-2]}, d = {x.shape[-1]}, {members} members, {T} save times)",
        "save fewer times, keep an observable with save=fn, or leave the backend to attnflow",
    )
