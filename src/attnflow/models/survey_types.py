"""`Survey` and `TextSurvey`: all that is measured of a model and some texts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from attnflow.models.flows import Flow
from attnflow.models.measures import Collapse, Join
from attnflow.models.spectra import LayerSpectrum

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
