"""What a run tells of coordinates that its states can no longer hold."""

from __future__ import annotations

import warnings

import jax.numpy as jnp
import numpy as np

from attnflow.simulation.trajectory import Trajectory, is_states


class LostDigits(UserWarning):
    """Entries of a trajectory's states are NaN, because floats cannot hold their coordinates."""


def warn_of_lost(run: Trajectory) -> None:
    """Say from which time on which coordinates are lost in `xs`, and where to find them."""
    if run.inner_final is None:
        return
    ts, states, inner = run.ts[-1:], run.final[..., None, :, :], run.inner_final[..., None, :, :]
    if run.inner is not None and is_states(run.xs, run.final, run.ts):
        ts, states, inner = run.ts, run.xs, run.inner
    lost = np.isnan(np.asarray(states)) & np.isfinite(np.asarray(inner)).all(axis=-1)[..., None]
    if not lost.any():
        return
    over = tuple(axis for axis in range(lost.ndim) if axis != lost.ndim - 3)
    first = int(np.argmax(lost.any(axis=over)))
    member = np.argwhere(lost[..., first, :, :].any(axis=(-1, -2)))[0]
    y = jnp.asarray(inner)[(*member, first)]
    warnings.warn(
        f"from t = {float(ts[first]):g} on floats cannot hold {run.running.lost(ts[first], y)} "
        "beside the others, which are so much larger: entries of `xs` without their digits are "
        "NaN. Nothing is lost inside: use `run.along(W)`, `observe.dual_coordinates(run)`, "
        "`observe.attention_along(run)` or `theory.measured_geometry(run)`.",
        LostDigits,
        stacklevel=3,
    )
