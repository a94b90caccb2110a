"""`Survey` and `TextSurvey`: everything that is measured on a model and some texts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from attnflow.models.flows import Flow
from attnflow.models.measures import Collapse, Join
from attnflow.models.spectra import LayerSpectrum

LEVELS = (0.001, 0.01, 0.1, 0.3)
"""Clusters are counted at these δ: tokens with <x_i, x_j> ≥ 1 − δ are in one cluster."""


@dataclass(frozen=True, eq=False)
class TextSurvey:
    """What the n tokens of one text do, over T = L + 1 states, L layers and H heads.

    Overlaps, energy and clusters are those of the directions `u_i = x_i/|x_i|`.

    Attributes:
        tokens: the tokens as the vocabulary spells them.
        histogram: density of the overlaps on equal bins of [−1, 1], shape (T, bins).
        mean_overlap: mean overlap over pairs, shape (T,).
        effective_rank: effective rank of the tokens, shape (T,).
        energy: the energy E_β, shape (T,).
        clusters: number of clusters at each δ of `LEVELS`, shape (T, levels).
        labels: the cluster of each token at the survey's δ, shape (T, n).
        joins: which of these clusters join in which layer.
        collapse: neural collapse of repeated words; None if fewer than two words repeat.
        attention_rank: number of singular values of attention above `RANK_TOL` times the largest,
            shape (L, H).
        leaders: tokens that receive at least `SHARE` of some token's attention, shape (L, H, n).
        received: attention that each token receives, averaged over tokens and heads, shape (L, n).
        effective_beta: the β at which SA's scores vary as much as the head's, shape (L, H); see
            `measures.Attended`.
        alignment: correlation of the head's scores with those of SA, shape (L, H).
        predicted: mean overlap of SA with V = I at the median effective β from the same start,
            one unit of time for each layer, shape (T,).
        hemisphere: whether the start lies in an open hemisphere, where SA provably ends in one
            cluster ([P] L6.4).
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
        """Number of layers in which the energy rises."""
        return int(np.sum(np.diff(self.energy) > 0))

    @property
    def median_beta(self) -> float:
        """The median effective β over heads and layers."""
        return float(np.median(self.effective_beta))

    @property
    def cluster_counts(self) -> Int[np.ndarray, " T"]:
        """Number of clusters at the survey's δ."""
        return self.labels.max(axis=1) + 1

    @property
    def cluster_counts_per_token(self) -> Float[np.ndarray, " T"]:
        """Number of clusters at the survey's δ, divided by n."""
        return self.cluster_counts / len(self.tokens)

    @property
    def clusters_per_token(self) -> Float[np.ndarray, "T levels"]:
        """Cluster counts divided by n, to compare texts of different lengths."""
        return self.clusters / len(self.tokens)

    @property
    def effective_rank_per_token(self) -> Float[np.ndarray, " T"]:
        """The effective rank divided by n."""
        return self.effective_rank / len(self.tokens)

    @property
    def attention_rank_per_token(self) -> Float[np.ndarray, "L H"]:
        """The rank of attention divided by n."""
        return self.attention_rank / len(self.tokens)

    @property
    def leader_counts(self) -> Int[np.ndarray, "L H"]:
        """Number of leaders of each head."""
        return self.leaders.sum(axis=-1)


@dataclass(frozen=True, eq=False)
class Survey:
    """The numbers of a report: one `TextSurvey` for each text, and the spectra of the layers.

    Attributes:
        model: the name of the model.
        kind: its architecture, the `model_type` of its config.
        layers: number of layers L that were run.
        shared: whether all layers have the same weights.
        d: dimension of the tokens.
        heads: number of heads H in each layer.
        beta: the inverse temperature β of the energy.
        delta: tokens with `<u_i, u_j> ≥ 1 − δ` are in one cluster.
        texts: what was measured on each text.
        spectra: the spectra of each layer; of the first one only if all share their weights.
        states: the tokens of the first text, shape (T, n, d).
        flows: the papers' system with trained weights, run from tokens of the first text.
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
        """Mean and standard deviation over the texts of one of their fields.

        With a single text the deviation is 0.
        """
        values = np.array([getattr(text, name) for text in self.texts], float)
        spread = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1:])
        return values.mean(axis=0), spread

    @property
    def good_heads(self) -> tuple[int, int]:
        """The number of heads that are good triples, and the number of heads examined."""
        found = [head.good for layer in self.spectra for head in layer.heads]
        return sum(good is True for good in found), len(found)
