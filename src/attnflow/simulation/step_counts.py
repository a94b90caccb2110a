"""How many steps of one size a run takes, and whether they can be taken."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jaxtyping import Float

from attnflow.checks import is_traced
from attnflow.errors import InputError
from attnflow.systems import System

MAX_STEPS = 100_000
MAX_FIXED_STEPS = 10**9
"""No run has more steps of one size: at ten microseconds each they take hours."""

MIN_STEP_ULPS = 128
"""A step of one size is at least so many units of rounding of the time long: diffrax makes one of
all steps that end within 100 of the last time."""


def require_whole_layers(ts: Float[np.ndarray, " T"], dt: float) -> None:
    """Every save time is a whole number of layers after the start."""
    steps = (ts - ts[0]) / dt
    off = np.abs(steps - np.round(steps)) > 1e-6 * np.maximum(1, steps)
    if off.any():
        i = int(np.argmax(off))
        below, above = (ts[0] + dt * f(steps[i]) for f in (math.floor, math.ceil))
        raise InputError(
            f"ts[{i}] = {ts[i]:g} is not a whole number of layers of dt = {dt:g} after the "
            f"start: the nearest times that are are {below:g} and {above:g}."
        )


def require_possible(ts: Float[np.ndarray, " T"] | None, dt: Any, system: System) -> None:
    """Refuse a step that is so small that no run comes to its end."""
    if ts is None or is_traced(dt):
        return
    few = float(ts[-1]) - float(ts[0]) <= MAX_FIXED_STEPS * float(dt)
    if not few or steps_between(ts, dt, system) > MAX_FIXED_STEPS:
        raise InputError(
            f"dt = {float(dt):g} is too small: from t = {ts[0]:g} to {ts[-1]:g} it would take more "
            f"than {MAX_FIXED_STEPS:.0e} steps."
        )


def require_resolved(ts: Float[np.ndarray, " T"], dt: Any) -> None:
    """Refuse steps that times in the dtype of ts do not resolve."""
    if is_traced(dt):
        return
    resolved = MIN_STEP_ULPS * float(np.spacing(np.abs(ts).max()))
    if float(dt) < resolved:
        raise InputError(
            f"dt = {float(dt):g} is too small for times in {ts.dtype}, which resolve steps of "
            f"{resolved:.1g} near t = {ts[-1]:g}: take x0 in float64, a longer dt or a shorter run."
        )


def steps_between(ts: Any, dt: Any, system: System) -> int:
    """A bound on the number of steps of size dt; under tracing, where none is known, the usual."""
    if is_traced((ts, dt)):
        return MAX_STEPS
    ts = np.asarray(ts)  # an entry of a JAX array is traced inside jit
    start, end = float(ts[0]), float(ts[-1])
    stops = len(ts) if system.dynamics == "diffusion" else 0
    return math.ceil((end - start) / float(dt)) + 1 + stops + system.breaks.count(start, end)
