"""The page of a survey: what was measured, what theory predicts, and pictures."""

from __future__ import annotations

from html import escape

import numpy as np

from attnflow._version import __version__
from attnflow.model_report.markup import (
    STYLE,
    complex_number,
    figure_of,
    table_of,
    with_errors,
    word,
    words,
)
from attnflow.models.measures import LEADER_SHARE, RANK_TOL, foremost
from attnflow.models.predictions import predictions
from attnflow.models.survey_types import Survey, TextSurvey
from attnflow.plot import model as pictures

MAX_JOINS_SHOWN = 12
"""Largest number of joins shown for a layer, the largest first; all are in the JSON."""


def html_report(survey: Survey) -> str:
    """The whole page, with pictures embedded and the text of tokens escaped."""
    title = "The tokens of a trained model, layer by layer"
    sections = [
        _in_short(survey),
        _overlaps(survey),
        _depth(survey),
        _clusters(survey),
        _attention(survey),
        _spectra(survey),
        _flows(survey),
        _collapse(survey),
    ]
    return (
        "<!DOCTYPE html>\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body>\n<h1>{escape(title)}</h1>\n"
        f'<p class="lead">{_about(survey)}</p>\n{"".join(sections)}'
        f'<p class="lead">Made by attnflow {escape(__version__)}.</p>\n</body></html>\n'
    )


def _about(survey: Survey) -> str:
    sizes = " and ".join(str(len(text.tokens)) for text in survey.texts)
    several = len(survey.texts) > 1
    bars = " Numbers are means over the texts, ± their standard deviation." if several else ""
    shared = ", which share their weights" if survey.shared else ""
    return f"{word(survey.model)} is " + escape(
        f"a model of type {survey.kind}, run through {survey.layers} layers{shared}, with "
        f"{survey.heads} heads in each and tokens of {survey.d} entries, on {len(survey.texts)} "
        f"text{'s' * several} of {sizes} tokens.{bars}"
    )


def _in_short(survey: Survey) -> str:
    rows = [[escape(part) for part in prediction] for prediction in predictions(survey)]
    note = (
        "<p>The statements in the left column are proven for systems much simpler than this "
        "model. Where the last two columns agree, the simple picture survives.</p>"
    )
    table = table_of(("what is proven or computed", "what it predicts here", "measured"), rows)
    return f"<h2>What the theory predicts, and what was measured</h2>{note}{table}"


def _overlaps(survey: Survey) -> str:
    caption = (
        "Inner products of the directions of all pairs of tokens, as in Figure 1 of <i>A "
        "mathematical perspective on Transformers</i>. When mass moves to the right, tokens come "
        "together; at 1 they coincide."
    )
    band = " The grey band is one standard deviation over the texts." * (len(survey.texts) > 1)
    return "<h2>Overlaps</h2>" + figure_of(pictures.overlap_panels(survey), caption + band)


def _depth(survey: Survey) -> str:
    shown = {
        "mean_overlap": "mean overlap",
        "predicted": "the same for SA",
        "energy": f"E_β, β = {survey.beta:g}",
        "effective_rank_per_token": "effective rank per token",
        "cluster_counts_per_token": f"clusters per token, δ = {survey.delta:g}",
    }
    columns = [with_errors(*survey.across(name)) for name in shown]
    rows = [[str(k), *entries] for k, entries in enumerate(zip(*columns, strict=True))]
    head = ("layers passed", *shown.values())
    caption = (
        "Tokens with an overlap of at least 1 − δ are linked, and chains of links are clusters. "
        "The effective rank is the exponential of the entropy of the singular values. The dashed "
        "line is attention on the sphere with V = I from the same start."
    )
    picture = figure_of(pictures.depth_panels(survey), caption)
    states = figure_of(
        pictures.states_panels(survey),
        "The tokens of the first text as directions, in the plane of the two leading principal "
        f"components of all layers; orange ones are in a cluster at δ = {survey.delta:g}.",
    )
    return f"<h2>Layer by layer</h2>{picture}{table_of(head, rows, numbers=True)}{states}"


def _clusters(survey: Survey) -> str:
    text = survey.texts[0]
    parts = [_final_clusters(text, survey.delta), _merge_tree(survey)]
    for layer in range(1, survey.layers + 1):
        found = [join for join in text.joins if join.layer == layer]
        if not found:
            continue
        found.sort(key=lambda join: -sum(len(group) for group in join.groups))
        shown = "".join(
            f"<li>{' + '.join(words(text, group) for group in join.groups)}</li>"
            for join in found[:MAX_JOINS_SHOWN]
        )
        more = (
            f"<li>… and {len(found) - MAX_JOINS_SHOWN} more</li>"
            if len(found) > MAX_JOINS_SHOWN
            else ""
        )
        said = f"layer {layer}: {len(found)} join{'s' * (len(found) > 1)}"
        parts.append(f"<details><summary>{said}</summary><ul>{shown}{more}</ul></details>")
    return f"<h2>Who joins whom</h2>{''.join(parts)}"


def _final_clusters(text: TextSurvey, delta: float) -> str:
    last = text.labels[-1]
    groups = [np.flatnonzero(last == label).tolist() for label in np.unique(last)]
    groups = sorted((g for g in groups if len(g) > 1), key=lambda g: (-len(g), g[0]))
    said = (
        f"<p>After the last layer the {len(text.tokens)} tokens of the first text form "
        f"{len(np.unique(last))} clusters at δ = {delta:g}, of which {len(groups)} have more than "
        "one token."
    )
    if not groups:
        return f"{said}</p>"
    items = "".join(
        f"<li>{words(text, group)} ({len(group)})</li>" for group in groups[:MAX_JOINS_SHOWN]
    )
    return f"{said} The largest ones:</p><ul>{items}</ul>"


def _merge_tree(survey: Survey) -> str:
    figure = pictures.joining_panel(survey)
    if figure is None:
        return ""
    caption = (
        f"Tokens of the largest clusters, at most {pictures.MAX_TREE_TOKENS_PER_CLUSTER} of each. "
        "Lines meet when tokens join, and separate when a cluster splits. All joins are listed "
        "below, layer by layer."
    )
    return figure_of(figure, caption)


def _attention(survey: Survey) -> str:
    text = survey.texts[0]
    rank, leaders, beta = (
        survey.across(name)[0] for name in ("attention_rank", "leader_counts", "effective_beta")
    )
    rows = []
    for k in range(survey.layers):
        tops = foremost(text.received[k])
        named = ", ".join(f"{word(text.tokens[i])} {text.received[k, i]:.1%}" for i in tops)
        medians = (f"{np.median(part[k]):.3g}" for part in (rank, leaders, beta))
        rows.append([str(k + 1), *medians, named])
    head = ("layer", "median rank", "median leaders", "median β", "most attention (first text)")
    caption = (
        "Each square is a head. The rank counts singular values of its attention matrix above "
        f"{RANK_TOL:g} of the largest; leaders are tokens that receive at least {LEADER_SHARE:.0%} "
        "of some token's attention. The effective β is the inverse temperature at which scores "
        "β&lt;u<sub>i</sub>, u<sub>j</sub>&gt; of the same tokens' directions vary as much as "
        "the head's own."
    )
    picture = figure_of(pictures.attention_panels(survey), caption)
    return f"<h2>Attention and its leaders</h2>{picture}{table_of(head, rows)}"


def _spectra(survey: Survey) -> str:
    caption = (
        "Above: eigenvalues of the value matrices V<sub>h</sub>, output matrix included, of all "
        "heads of a layer, as in Figure 10 of <i>The emergence of clusters in self-attention "
        "dynamics</i>; those of good triples are orange. Below: the sum over heads."
    )
    rows = [
        [
            f"{spectrum.layer + 1}.{h}",
            complex_number(head.eigenvalues[0]),
            f"{head.radius:.3f}",
            {True: "yes", False: "no", None: "undecided"}[head.good],
            f"{head.symmetric:.3f}",
            f"{head.positive} / {head.negative}",
            f"{head.balance:+.3f}",
        ]
        for spectrum in survey.spectra
        for h, head in enumerate(spectrum.heads)
    ]
    head = ("layer.head", "λ₁(V)", "radius", "good triple", "symmetric share of QᵀK")
    table = table_of((*head, "signature +/−", "balance"), rows, numbers=True)
    sums = [
        [str(s.layer + 1), complex_number(s.total[0]), f"{s.total_radius:.3f}"]
        for s in survey.spectra
    ]
    total = table_of(("layer", "λ₁(ΣV)", "radius of ΣV"), sums, numbers=True)
    several = f"<details><summary>all {len(rows)} heads</summary>{table}</details>"
    figure = figure_of(pictures.spectrum_panels(survey), caption)
    return f"<h2>Spectra of the heads</h2>{figure}{total}{several}"


def _flows(survey: Survey) -> str:
    parts = []
    for flow in survey.flows:
        who = "all heads" if flow.head is None else f"head {flow.head} alone"
        caption = (
            f"Layer {flow.layer + 1}, {who}: attention on the sphere with the trained Q, K and V "
            f"at β = {flow.beta:.3g}, from {flow.xs.shape[1]} tokens of the first text, in the "
            f"plane of two principal components. {flow.clusters[0]} clusters become "
            f"{flow.clusters[-1]} by t = {flow.ts[-1]:.3g}."
        )
        parts.append(figure_of(pictures.flow_panels(flow), caption))
    note = (
        "<p>The papers' equation with the trained weights of one layer, without feed-forward "
        "layer, biases and gains, run for a long time.</p>"
    )
    return f"<h2>One layer forever</h2>{note}{''.join(parts)}"


def _collapse(survey: Survey) -> str:
    figure = pictures.collapse_panels(survey)
    if figure is None:
        return ""
    found = [text.collapse for text in survey.texts if text.collapse is not None]
    classes = " and ".join(str(one.classes) for one in found)
    caption = (
        f"A class is a word that occurs more than once; there are {classes} of them. Left: the "
        "variance of tokens around the mean of their class, divided by that of the class means; 0 "
        "after collapse. Right: the largest distance of the cosines of the centred means from "
        "those of a regular simplex."
    )
    rows = [
        [str(k), *(f"{one.ratio[k]:.4g}, {one.angle_error[k]:.4g}" for one in found)]
        for k in range(survey.layers + 1)
    ]
    texts = [f"text {i + 1}: ratio, angle error" for i in range(len(found))]
    table = table_of(("layers passed", *texts), rows, numbers=True)
    return f"<h2>Neural collapse</h2>{figure_of(figure, caption)}{table}"
