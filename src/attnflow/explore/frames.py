"""A run as the page shows it: moment by moment, small enough to be sent."""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt8

from attnflow import observe
from attnflow.errors import IncompleteRun, InputError
from attnflow.explore.jobs import OnProgress
from attnflow.plot.tokens import TokenView
from attnflow.report import Report, summarise
from attnflow.simulation import Trajectory, simulate
from attnflow.spec import RunSpec
from attnflow.systems.attention import AttentionSystem
from attnflow.theory import limit_geometry, measured_geometry

OVERLAP_BINS = 40
MERGE_TOL = 1e-2
"""Points nearer than this part of the size are one."""

MAX_ATTENTION_ROWS, MAX_TOKENS_ATTENTION = 64, 1000
"""Attention is shown between so many tokens, of so many at most: it has n² entries each time."""


class Levels(NamedTuple):
    """Parallel hyperplanes `functional · z = level`."""

    functional: Float[np.ndarray, " d"]
    values: Float[np.ndarray, " k"]


@dataclass(frozen=True, eq=False)
class Frames:
    """All that moves with the slider.

    `seen` are the tokens as they are shown, in the plane or in space; `labels` the clusters at the
    end; `attention` is scaled to 0…255 by `attention_top`, for the tokens `rows`, in the order of
    the clusters. `hull` and `levels` are the limit that is proven, as far as it formed. `ended`
    says why a run did not come to its end, if it did not.
    """

    trajectory: Trajectory
    report: Report
    view: TokenView
    seen: Float[np.ndarray, "T n k"]
    labels: Int[np.ndarray, " n"]
    overlaps: Float[np.ndarray, "T bins"] | None
    attention: UInt8[np.ndarray, "T m m"] | None
    attention_top: float
    rows: Int[np.ndarray, " m"]
    predicted: str = ""
    hull: observe.Hull | None = None
    levels: Levels | None = None
    ended: str = ""


def run_flow(spec: RunSpec, on_progress: OnProgress) -> Frames:
    """Run a spec and look at it, as far as it comes."""
    run = spec.build()
    try:
        whole = simulate(
            run.system, run.x0, run.ts, method=run.method, key=run.key, progress=on_progress
        )
    except IncompleteRun as error:
        if len(error.trajectory.ts) < 2:
            raise InputError(_ended(error)) from None
        return replace(frames_of(error.trajectory, on_progress), ended=_ended(error))
    return frames_of(whole, on_progress)


def _ended(error: IncompleteRun) -> str:
    """Why a run could not go on, with what one can choose on the page."""
    return f"{error.reason}. Choose the method fixed or coarsening, or an earlier t."


def frames_of(trajectory: Trajectory, on_progress: OnProgress) -> Frames:
    """The frames of a single run. `on_progress` may stop the work between the steps."""
    whole, trajectory = trajectory, trajectory.with_digits
    report = summarise(trajectory)
    on_progress(1.0)
    xs = np.asarray(trajectory.positions, float)
    on_sphere = trajectory.running.space.round
    view = TokenView(xs, on_sphere)
    seen = xs if view.d == 3 else np.array([view.project(x)[0] for x in xs])
    labels = observe.clusters(xs[-1], report.tolerance).labels
    rows = _chosen(labels)
    on_progress(1.0)
    attention, top = _attention(trajectory, rows)
    on_progress(1.0)
    overlaps = np.asarray(_overlaps(xs)) if on_sphere and xs.shape[1] > 1 else None
    on_progress(1.0)
    limit = _limit(whole)
    return Frames(trajectory, report, view, seen, labels, overlaps, attention, top, rows, *limit)


def to_page(frames: Frames) -> dict[str, Any]:
    """What the browser is sent, for its slider."""
    return {
        "ts": [float(f"{t:.6g}") for t in frames.report.times],
        "positions": np.round(np.moveaxis(frames.seen, 2, 1), 4).tolist(),
        "overlaps": None if frames.overlaps is None else np.round(frames.overlaps, 3).tolist(),
        "attention": None
        if frames.attention is None
        else base64.b64encode(frames.attention.tobytes()).decode(),
        "attention_top": frames.attention_top,
        "rows": frames.rows.tolist(),
        "clusters": frames.report.clusters,
    }


def _limit(trajectory: Trajectory) -> tuple[str, observe.Hull | None, Levels | None]:
    """What is proven of the limit of rescaled attention with one head, and what formed of it."""
    system: Any = trajectory.running
    if system.pure_attention != "rescaled" or system.heads.count is not None or system.mask:
        return "", None, None
    proven = limit_geometry(system.heads.Q, system.heads.K, system.heads.V)
    by = f" ({proven.theorem})" if proven.theorem else ""
    said = f"Predicted limit: {proven.kind}{by}. Formed: {measured_geometry(trajectory).kind}."
    d = trajectory.final.shape[-1]
    if proven.kind == "polytope" and d <= 3:
        return said, observe.hull(np.asarray(trajectory.final, float), MERGE_TOL), None
    if proven.functional is not None and d <= 3:
        along = np.asarray(trajectory.along(proven.functional[None]))[-1]
        centers = observe.clusters(along, MERGE_TOL * float(np.abs(along).max())).centers[:, 0]
        return said, None, Levels(proven.functional, centers)
    return said, None, None


def _chosen(labels: Int[np.ndarray, " n"]) -> np.ndarray:
    """Tokens whose attention is shown, evenly taken, cluster after cluster."""
    order = np.argsort(labels, kind="stable")
    take = np.linspace(0, len(order) - 1, min(MAX_ATTENTION_ROWS, len(order))).round().astype(int)
    return order[take]


@jax.jit
def _overlaps(xs: Float[Array, "T n d"]) -> Float[Array, "T bins"]:
    return jax.lax.map(lambda x: observe.overlap_histogram(x, OVERLAP_BINS)[0], xs)


def attention_system(trajectory: Trajectory) -> AttentionSystem | None:
    """The system whose attention can be looked at, if it has some; noise is left aside."""
    return trajectory.running.attention_system


def _attention(trajectory: Trajectory, rows: np.ndarray) -> tuple[np.ndarray | None, float]:
    """Attention between the chosen tokens, the mean over heads, and its largest entry."""
    system = attention_system(trajectory)
    if system is None or trajectory.final.shape[0] > MAX_TOKENS_ATTENTION:
        return None, 1.0
    found = np.asarray(_weights(system, trajectory, jnp.asarray(rows)))
    top = float(found.max()) or 1.0
    return np.round(255 * found / top).astype(np.uint8), top


@eqx.filter_jit
def _weights(
    system: AttentionSystem, trajectory: Trajectory, rows: Int[Array, " m"]
) -> Float[Array, "T m m"]:
    weights = system.attention if trajectory.inner is None else system.attention_inside

    def one(t: Array, state: Array) -> Array:
        A = weights(t, state)
        return A.reshape(-1, *A.shape[-2:]).mean(axis=0)[rows][:, rows]

    return trajectory.each(one)
