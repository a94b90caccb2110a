"""What the theory predicts for a model's tokens, next to what a survey measured."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from attnflow.models.survey_types import Survey
from attnflow.theory import gamma

GINIBRE_SHARE = 0.14
"""The share of real 128 × 128 Ginibre matrices V whose leading eigenvalue makes (Q, K, V) a good
triple if <Qφ₁, Kφ₁> > 0, [E] §4."""


class Prediction(NamedTuple):
    """A statement about an idealised system, what it predicts here, and what was measured."""

    statement: str
    predicted: str
    seen: str


def predictions(survey: Survey) -> list[Prediction]:
    """The comparisons of a report. All statements are about simpler systems than the model."""
    return [_energy(survey), _one_cluster(survey), _pace(survey), _gamma(survey), _good(survey)]


def _energy(survey: Survey) -> Prediction:
    rises = [text.rises for text in survey.texts]
    monotone = sum(rise == survey.layers for rise in rises)
    return Prediction(
        "The energy E_β rises along attention on the sphere with Q = K = V = I ([P] (3.6), "
        "Lemma 3.7).",
        f"E_β at β = {survey.beta:g} rises in all {survey.layers} layers",
        f"it rises in {_range(rises)} of {survey.layers}; it is monotone in {monotone} of "
        f"{_texts(len(rises))}",
    )


def _one_cluster(survey: Survey) -> Prediction:
    hemisphere = sum(text.hemisphere for text in survey.texts)
    ends = [int(text.cluster_counts[-1]) for text in survey.texts]
    sizes = [len(text.tokens) for text in survey.texts]
    return Prediction(
        "Tokens that start in an open hemisphere end in one cluster if V = I, for any Q and K "
        "([P] Lemma 6.4).",
        f"the start is in one for {hemisphere} of {_texts(len(ends))}: these end in 1 cluster, "
        "given enough layers",
        f"after {survey.layers} layers {_range(ends)} clusters of {_range(sizes)} tokens at "
        f"δ = {survey.delta:g}",
    )


def _pace(survey: Survey) -> Prediction:
    start, seen = (survey.across("mean_overlap")[0][k] for k in (0, -1))
    beta = float(np.mean([text.median_beta for text in survey.texts]))
    return Prediction(
        "Attention on the sphere with V = I, run as layers from the same start at the median "
        f"effective β ({beta:.3g}), one unit of time for each layer.",
        f"mean overlap from {start:.3f} to {survey.across('predicted')[0][-1]:.3f}",
        f"from {start:.3f} to {seen:.3f}",
    )


def _gamma(survey: Survey) -> Prediction:
    expected = [expected_overlap(survey, i) for i in range(len(survey.texts))]
    overlap = survey.across("mean_overlap")[0]
    return Prediction(
        "From an orthogonal start, and nearly so from a uniform one in many dimensions, all "
        "overlaps follow γ_β(t) ([P] Theorems 6.8 and 6.9).",
        f"overlaps grow by {np.mean(expected):.3f} until t = {survey.layers}",
        f"their mean grows by {overlap[-1] - overlap[0]:.3f}; the start is not orthogonal: its "
        f"mean overlap is {overlap[0]:.3f}",
    )


def expected_overlap(survey: Survey, text: int) -> float:
    """γ_β after the layers of the model, for the tokens and the median effective β of a text."""
    found = survey.texts[text]
    ts = np.array([0.0, float(survey.layers)])
    return float(gamma(found.median_beta, len(found.tokens), ts)[-1])


def _good(survey: Survey) -> Prediction:
    good, count = survey.good_heads
    return Prediction(
        "A head that is a good triple sends its rescaled tokens to at most three parallel "
        "hyperplanes ([E] Theorem 4.1).",
        f"about {GINIBRE_SHARE:.0%} of random 128 × 128 matrices V have the leading eigenvalue of "
        "one",
        f"{good} of {count} heads are good triples ({good / count:.0%})",
    )


def _range(values: list[int]) -> str:
    """One number, or the least and the largest."""
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"


def _texts(count: int) -> str:
    return f"{count} text{'s' * (count > 1)}"
