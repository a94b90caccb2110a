"""`survey`: all that is measured of a model and some texts, in one object."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from tqdm import tqdm

from attnflow import observe
from attnflow.checks import require_memory, require_positive
from attnflow.errors import InputError
from attnflow.initial import normalise
from attnflow.models.flows import Flow, trained_flows
from attnflow.models.measures import (
    RANK_TOL,
    SHARE,
    Collapse,
    Join,
    attended,
    collapse,
    directions,
    joins,
)
from attnflow.models.model import Model
from attnflow.models.spectra import LayerSpectrum, spectra
from attnflow.simulate import Layers, simulate
from attnflow.systems import SA
from attnflow.theory import in_hemisphere

LEVELS = (0.001, 0.01, 0.1, 0.3)
"""Clusters are counted at these δ: tokens with <x_i, x_j> ≥ 1 − δ are linked."""


@dataclass(frozen=True, eq=False)
class TextSurvey:
    """What the n tokens of one text do. T = layers + 1 states, L layers, H heads.

    Overlaps are those of directions `u_i = x_i/|x_i|`. `histogram` is their density over pairs on
    equal bins of [−1, 1], `energy` is E_β, `clusters` the counts at each of `LEVELS`, `labels` the
    cluster of each token at the survey's δ, and `joins` the tree of these clusters by layer.
    `attention_rank` counts singular values above `RANK_TOL` of the largest, `leaders` tokens that
    receive at least `SHARE` of some token's attention, and `received` is the mean attention that
    a token gets, over tokens and heads. `effective_beta` and `alignment` are explained in
    `measures.Attended`. `predicted` is the mean overlap of SA with V = I at the median effective β
    from the same start, one layer for one unit of time, and `hemisphere` whether that start lies in
    an open hemisphere, where SA is proven to end in one cluster ([P] L6.4).
    """

    tokens: tuple[str, ...]
    histogram: Float[np.ndarray, "T bins"]
    mean_overlap: Float[np.ndarray, " T"]
    effective_rank: Float[np.ndarray, " T"]
    energy: Float[np.ndarray, " T"]
    clusters: Int[np.ndarray, "T levels"]
    labels: Int[np.ndarray, "T n"]
    joins: tuple[Join, ...]
    collapse: Collapse | None
    attention_rank: Int[np.ndarray, "L H"]
    leaders: Bool[np.ndarray, "L H n"]
    received: Float[np.ndarray, "L n"]
    effective_beta: Float[np.ndarray, "L H"]
    alignment: Float[np.ndarray, "L H"]
    predicted: Float[np.ndarray, " T"]
    hemisphere: bool

    @property
    def rises(self) -> int:
        """In how many layers the energy rises."""
        return int(np.sum(np.diff(self.energy) > 0))

    @property
    def median_beta(self) -> float:
        """The median of the effective β over heads and layers."""
        return float(np.median(self.effective_beta))

    @property
    def cluster_counts(self) -> Int[np.ndarray, " T"]:
        """How many clusters there are at the survey's δ."""
        return self.labels.max(axis=1) + 1

    @property
    def cluster_counts_per_token(self) -> Float[np.ndarray, " T"]:
        """The same over n."""
        return self.cluster_counts / len(self.tokens)

    @property
    def clusters_per_token(self) -> Float[np.ndarray, "T levels"]:
        """Cluster counts over n, which texts of different lengths can be compared by."""
        return self.clusters / len(self.tokens)

    @property
    def effective_rank_per_token(self) -> Float[np.ndarray, " T"]:
        """The effective rank over n."""
        return self.effective_rank / len(self.tokens)

    @property
    def attention_rank_per_token(self) -> Float[np.ndarray, "L H"]:
        """The rank of attention over n."""
        return self.attention_rank / len(self.tokens)

    @property
    def leader_counts(self) -> Int[np.ndarray, "L H"]:
        """How many leaders each head has."""
        return self.leaders.sum(axis=-1)


@dataclass(frozen=True, eq=False)
class Survey:
    """The numbers of a report: of each text, and the spectra of each layer's heads.

    `states` and `flows` are those of the first text: its tokens in the model, and the papers'
    system with trained weights from some of them.
    """

    model: str
    kind: str
    layers: int
    shared: bool
    d: int
    heads: int
    beta: float
    delta: float
    texts: tuple[TextSurvey, ...]
    spectra: tuple[LayerSpectrum, ...]
    states: Float[np.ndarray, "T n d"]
    flows: tuple[Flow, ...]

    def across(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation over the texts of a number that all have by layer.

        Of one text the deviation is 0.
        """
        values = np.array([getattr(text, name) for text in self.texts], float)
        spread = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1:])
        return values.mean(axis=0), spread

    @property
    def good_heads(self) -> tuple[int, int]:
        """How many heads are good triples, and how many there are in the layers looked at."""
        found = [head.good for layer in self.spectra for head in layer.heads]
        return sum(good is True for good in found), len(found)


def survey(
    model: Model,
    texts: str | Sequence[str],
    *,
    depth: int | None = None,
    beta: float | int = 1.0,
    delta: float | int = 0.1,
    progress: bool = False,
) -> Survey:
    """Run a model on one or several texts and measure what its tokens do.

    `depth` is as in `model.states`, `beta` that of the energy, and tokens with `<u_i, u_j> ≥ 1 − δ`
    are linked to clusters. Each text has two tokens at least. Texts are padded to one length and
    run together; nothing that is measured sees the padding.
    """
    require_positive(beta, "beta")
    require_positive(delta, "delta")
    encoded = model.encode([texts] if isinstance(texts, str) else list(texts))
    short = np.flatnonzero(encoded.mask.sum(axis=1) < 2)
    if short.size:
        raise InputError(f"texts[{short[0]}] has a single token, but overlaps are of pairs.")
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
    n = int(mask.sum())
    t, masses = jnp.asarray(float(k), x.dtype), jnp.asarray(mask, x.dtype)
    A, beta, alignment = attended(model.system, t, x, masses)
    A = A[:, :n, :n]
    found = observe.rank(A, RANK_TOL), observe.leaders(A, SHARE), A.mean(axis=(0, 1))
    return tuple(np.asarray(array) for array in (*found, beta, alignment))


def _distance(delta: float) -> float:
    """The distance of unit tokens whose overlap is 1 − δ."""
    return float(np.sqrt(2 * delta))


def _spelled(model: Model, ids: Int[np.ndarray, " n"]) -> list[str]:
    """The tokens as the vocabulary spells them, or their numbers where there is no tokenizer."""
    if model.tokenizer is None:
        return [str(int(number)) for number in ids]
    return [str(model.tokenizer.id_to_token(int(number))) for number in ids]


def _check_memory(model: Model, states: Float[Array, "b T n d"]) -> None:
    n, H = states.shape[2], model.system.heads.count or 1
    held = 4 * H * n * n * states.dtype.itemsize
    require_memory(held, f"attention of {H} heads over {n} tokens", "take shorter texts")


@contextmanager
def _bar(total: int, progress: bool) -> Iterator[Any]:
    """A function that returns what it is given, and moves the bar."""
    with tqdm(total=total, disable=not progress, desc="measuring", leave=False) as bar:

        def tick(found: Any) -> Any:
            bar.update()
            return found

        yield tick
