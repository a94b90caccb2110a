"""The papers' system with trained weights, run from the tokens of a text: [S]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Array, Float, Int

from attnflow import observe
from attnflow.errors import IncompleteRun
from attnflow.initial import normalise
from attnflow.models.extracting import idealised, seen_tokens
from attnflow.models.model import Model
from attnflow.models.spectra import LayerSpectrum
from attnflow.simulation import Adaptive, simulate

MAX_FLOW_TOKENS = 48
"""A flow takes at most this many tokens, the first ones of the text."""

HORIZON = 12.0
"""How long a flow runs, in units of 1/|λ₁| of the matrix ΣV_h of its heads."""

FLOW_SAVES = 41


@dataclass(frozen=True, eq=False)
class Flow:
    """A run of `models.idealised`: attention on the sphere with the weights of one layer.

    Attributes:
        layer: the layer whose weights are used.
        head: the head that acts; None for all heads.
        beta: the inverse temperature β of the idealised system.
        ts: times, shape (T,).
        xs: unit tokens at these times, shape (T, n, d).
        clusters: number of clusters at each time, shape (T,).
    """

    layer: int
    head: int | None
    beta: float
    ts: Float[np.ndarray, " T"]
    xs: Float[np.ndarray, "T n d"]
    clusters: Int[np.ndarray, " T"]


def trained_flow(
    model: Model,
    layer: int,
    x: Float[Array, "n d"],
    *,
    head: int | None = None,
    until: float | int,
    delta: float | int = 0.1,
) -> Flow:
    """Run the idealised system of a layer from the directions of x.

    If the run fails, the flow holds what was computed up to then.

    Args:
        model: a trained model.
        layer: the layer whose weights are used, from 0.
        x: the tokens before the layer, shape (n, d).
        head: the head that acts. All heads by default.
        until: the last time.
        delta: tokens with `<x_i, x_j> ≥ 1 − δ` are in one cluster.
    """
    system = idealised(model, layer, x, None if head is None else [head])
    u, ts = normalise(seen_tokens(model, layer, x)), np.linspace(0.0, float(until), FLOW_SAVES)
    try:
        run = simulate(system, u, ts, method=Adaptive(rtol=1e-4, atol=1e-6))
    except IncompleteRun as error:
        run = error.trajectory
    xs = np.asarray(run.xs, float)
    counts = observe.cluster_history((run.ts, xs), float(np.sqrt(2 * delta))).counts
    return Flow(layer, head, float(system.beta), np.asarray(run.ts), xs, counts)


def trained_flows(
    model: Model,
    states: Float[Array, "T n d"],
    spectra: Sequence[LayerSpectrum],
    delta: float | int = 0.1,
) -> tuple[Flow, Flow]:
    """Two flows of the layer with the foremost head: this head alone, and all heads.

    Args:
        model: a trained model.
        states: the tokens before each layer, shape (T, n, d).
        spectra: the spectra of the layers 0, 1, ….
        delta: tokens with `<x_i, x_j> ≥ 1 − δ` are in one cluster.
    """
    layer, head = foremost_head(spectra)
    found = spectra[layer]
    x = states[layer][:MAX_FLOW_TOKENS]
    alone, all_heads = found.heads[head].radius, found.total_radius
    return (
        trained_flow(model, layer, x, head=head, until=HORIZON / alone, delta=delta),
        trained_flow(model, layer, x, until=HORIZON / all_heads, delta=delta),
    )


def foremost_head(spectra: Sequence[LayerSpectrum]) -> tuple[int, int]:
    """Layer and head of the good triple with the largest spectral radius.

    If no head is a good triple, all heads compete. `spectra` are those of the layers 0, 1, ….
    """
    heads = {(s.layer, h): head for s in spectra for h, head in enumerate(s.heads)}
    return max(heads, key=lambda at: (heads[at].good is True, heads[at].radius))
