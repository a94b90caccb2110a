"""`survey`: run a model on texts and measure what its tokens do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from attnflow import observe
from attnflow.checks import require_memory, require_positive
from attnflow.errors import InputError
from attnflow.initial import normalise
from attnflow.models.flows import trained_flows
from attnflow.models.measures import (
    LEADER_SHARE,
    RANK_TOL,
    attended,
    collapse,
    directions,
    joins,
)
from attnflow.models.model import Model
from attnflow.models.spectra import spectra
from attnflow.models.survey_types import LEVELS, Survey, TextSurvey
from attnflow.simulation import Layers, simulate
from attnflow.simulation.progress import Progress, bar_for
from attnflow.systems import SA
from attnflow.theory import in_hemisphere


def survey(
    model: Model,
    texts: str | Sequence[str],
    *,
    depth: int | None = None,
    beta: float | int = 1.0,
    delta: float | int = 0.1,
    progress: Progress = False,
) -> Survey:
    """Run a model on one or several texts and measure what its tokens do.

    Texts are padded to one length and run together. The padding enters none of the measures.

    Args:
        model: a trained model.
        texts: a text or several, each of at least two tokens.
        depth: number of layers, as in `model.states`. All layers of the model by default.
        beta: the inverse temperature β of the energy E_β.
        delta: tokens with `<u_i, u_j> ≥ 1 − δ` are in one cluster.
        progress: True for a progress bar.
    """
    require_positive(beta, "beta")
    require_positive(delta, "delta")
    encoded = model.encode([texts] if isinstance(texts, str) else list(texts))
    short = np.flatnonzero(encoded.mask.sum(axis=1) < 2)
    if short.size:
        raise InputError(f"texts[{short[0]}] has a single token, but overlaps need at least two.")
    states = model.states(encoded, depth=depth)
    _check_memory(model, states)
    looked_at = range(1 if model.shared else min(model.layers, states.shape[1] - 1))
    L, H = states.shape[1] - 1, model.system.heads.count or 1
    with _bar(len(states) * (L + 1) + len(looked_at) + 1, progress) as tick:
        found = tuple(
            _of_text(model, x, ids[mask], mask, float(beta), float(delta), tick)
            for x, ids, mask in zip(states, encoded.ids, encoded.mask, strict=True)
        )
        of_layers = tuple(tick(spectra(model, k)) for k in looked_at)
        first = states[0][:, : encoded.mask[0].sum()]
        flows = tick(trained_flows(model, first, of_layers, float(delta)))
    return Survey(
        model=model.name,
        kind=str(model.config.get("model_type")),
        layers=L,
        shared=model.shared,
        d=states.shape[-1],
        heads=H,
        beta=float(beta),
        delta=float(delta),
        texts=found,
        spectra=of_layers,
        states=np.asarray(first, float),
        flows=flows,
    )


def _of_text(
    model: Model,
    states: Float[Array, "T n d"],
    ids: Int[np.ndarray, " m"],
    mask: Bool[np.ndarray, " n"],
    beta: float,
    delta: float,
    tick: Any,
) -> TextSurvey:
    n = len(ids)
    u = normalise(states[:, :n])
    of_layers = [tick(_of_layer(model, k, states[k], mask)) for k in range(len(states) - 1)]
    rank, leaders, received, betas, alignment = (np.array(a) for a in zip(*of_layers, strict=True))
    seen = directions(u, jnp.asarray(beta, u.dtype))
    host = np.asarray(u, float)
    labels = np.array([observe.clusters(x, _distance(delta)).labels for x in host])
    counts = [[observe.clusters(x, _distance(level)).count for level in LEVELS] for x in host]
    ideal = SA(float(np.median(betas)), mask=model.system.mask)
    run = simulate(ideal, u[0], range(len(states)), method=Layers(1.0))
    return tick(
        TextSurvey(
            tokens=tuple(_spelled(model, ids)),
            histogram=np.asarray(seen.histogram),
            mean_overlap=np.asarray(seen.mean_overlap),
            effective_rank=np.asarray(seen.effective_rank),
            energy=np.asarray(seen.energy),
            clusters=np.array(counts),
            labels=labels,
            joins=tuple(joins(labels)),
            collapse=collapse(host, ids),
            attention_rank=rank,
            leaders=leaders,
            received=received,
            effective_beta=betas,
            alignment=alignment,
            predicted=np.asarray(directions(run.xs, jnp.asarray(beta, u.dtype)).mean_overlap),
            hemisphere=bool(in_hemisphere(host[0])),
        )
    )


def _of_layer(
    model: Model, k: int, x: Float[Array, "n d"], mask: Bool[np.ndarray, " n"]
) -> tuple[np.ndarray, ...]:
    """Rank, leaders, attention received, effective β and alignment of each head of a layer."""
    t, masses = jnp.asarray(float(k), x.dtype), jnp.asarray(mask, x.dtype)
    found = _measured(model.system, t, x, masses, int(mask.sum()))
    return tuple(np.asarray(array) for array in found)


@eqx.filter_jit
def _measured(system: Any, t: Array, x: Array, masses: Array, n: int) -> tuple[Array, ...]:
    """What `_of_layer` finds, where the first n tokens are no padding."""
    A, beta, alignment = attended(system, t, x, masses)
    A = A[:, :n, :n]
    found = observe.rank(A, RANK_TOL), observe.leaders(A, LEADER_SHARE), A.mean(axis=(0, 1))
    return *found, beta, alignment


def _distance(delta: float) -> float:
    """The distance between unit tokens whose overlap is 1 − δ."""
    return float(np.sqrt(2 * delta))


def _spelled(model: Model, ids: Int[np.ndarray, " n"]) -> list[str]:
    """The tokens as the vocabulary spells them, or their ids if there is no tokenizer."""
    if model.tokenizer is None:
        return [str(int(number)) for number in ids]
    return [str(model.tokenizer.id_to_token(int(number))) for number in ids]


def _check_memory(model: Model, states: Float[Array, "b T n d"]) -> None:
    n, H = states.shape[2], model.system.heads.count or 1
    held = 4 * H * n * n * states.dtype.itemsize
    require_memory(held, f"attention of {H} heads over {n} tokens", "take shorter texts")


@contextmanager
def _bar(total: int, progress: Progress) -> Iterator[Any]:
    """A function that advances the bar and returns its argument."""
    bar = bar_for(progress)

    def tick(found: Any) -> Any:
        bar.update(100 / total)
        return found

    try:
        yield tick
    finally:
        bar.close()
