"""Pictures of a survey of a trained model: overlaps, clusters, attention, spectra, flows."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Int
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from attnflow.models.flows import Flow
from attnflow.models.survey_types import LEVELS, Survey
from attnflow.plot.style import FAINT, INK, PALETTE, style
from attnflow.plot.times import merge_tree
from attnflow.plot.tokens import TokenView

MAX_PANELS = 8
"""Largest number of layers shown in a row."""

MAX_TREE_TOKENS, MAX_TREE_TOKENS_PER_CLUSTER = 48, 8
"""Largest number of tokens in a merge tree, and of tokens from each cluster."""


def evenly(count: int, most: int) -> list[int]:
    """All of 0, …, count − 1, or `most` of them, evenly spaced, including the first and the last.

    >>> evenly(3, 8), evenly(25, 4)
    ([0, 1, 2], [0, 8, 16, 24])
    """
    return sorted({round(i) for i in np.linspace(0, count - 1, min(count, most))})


def overlap_panels(survey: Survey) -> Figure:
    """The histogram of overlaps at some layers, [P] Fig. 1; mean and band for several texts."""
    mean, spread = survey.across("histogram")
    layers = evenly(len(mean), MAX_PANELS)
    edges = np.linspace(-1, 1, mean.shape[1] + 1)
    with style():
        columns = min(4, len(layers))
        rows = -(-len(layers) // columns)
        figure = Figure(figsize=(2.6 * columns, 1.9 * rows + 0.3), layout="constrained")
        axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
        for ax, k in zip(axes, layers, strict=False):
            ax.stairs(mean[k], edges, fill=True, color=PALETTE[0], alpha=0.55)
            if len(survey.texts) > 1:
                low, high = np.maximum(mean[k] - spread[k], 0), mean[k] + spread[k]
                ax.stairs(high, edges, baseline=low, fill=True, color=INK, alpha=0.25)
            ax.axvline(1, color=FAINT, lw=0.6, ls=":")
            ax.set_title("start" if k == 0 else f"after layer {k}")
        for ax in axes[len(layers) :]:
            ax.set_axis_off()
        figure.supxlabel(r"overlap $\langle u_i, u_j\rangle$", fontsize=11)
        figure.supylabel("density over pairs", fontsize=11)
    return figure


def depth_panels(survey: Survey) -> Figure:
    """Mean overlap with that of SA, cluster counts, effective rank and energy by layer."""
    with style():
        figure = Figure(figsize=(9.6, 6.0), layout="constrained")
        (overlap, clusters), (rank, energy) = figure.subplots(2, 2)
        _line(overlap, *survey.across("mean_overlap"), PALETTE[0], "the model")
        _line(overlap, *survey.across("predicted"), PALETTE[1], "SA with V = I, same start", "--")
        overlap.legend()
        overlap.set_ylabel("mean overlap")
        counts, spread = survey.across("clusters_per_token")
        for j, level in enumerate(LEVELS):
            label = rf"$\delta = {level:g}$"
            _line(clusters, counts[:, j], spread[:, j], PALETTE[j], label)
        clusters.legend(ncols=2, loc="lower left")
        clusters.set(ylabel="clusters per token", ylim=(0, 1.15))
        _line(rank, *survey.across("effective_rank_per_token"), PALETTE[2])
        rank.set(ylabel="effective rank per token", ylim=(0, None))
        _line(energy, *survey.across("energy"), PALETTE[3])
        energy.set_ylabel(rf"energy $E_\beta$, $\beta = {survey.beta:g}$")
        for ax in (overlap, clusters, rank, energy):
            _layers_below(ax)
    return figure


def attention_panels(survey: Survey) -> Figure:
    """Rank, leaders and effective β of every head, averaged over the texts."""
    shown = (
        ("attention_rank_per_token", "rank per token", None),
        ("leader_counts", "leaders", None),
        ("effective_beta", r"effective $\beta$", LogNorm()),
    )
    with style():
        figure = Figure(figsize=(10.4, 1.4 + 0.28 * min(survey.layers, 24)), layout="constrained")
        for ax, (name, title, norm) in zip(figure.subplots(1, 3), shown, strict=True):
            values, _ = survey.across(name)
            image = ax.imshow(values, aspect="auto", cmap="viridis", norm=norm, origin="lower")
            ax.set_yticks(*_numbered(len(values), 1))
            ax.set_xticks(*_numbered(values.shape[1], 0))
            ax.set(title=title, xlabel="head", ylabel="layer")
            ax.spines[["left", "bottom"]].set_visible(False)
            figure.colorbar(image, ax=ax, shrink=0.9)
    return figure


def spectrum_panels(survey: Survey) -> Figure:
    """Eigenvalues of V_h of all heads, [E] Fig. 10, and of their sum below, by layer."""
    chosen = [survey.spectra[i] for i in evenly(len(survey.spectra), 6)]
    with style():
        figure = Figure(figsize=(max(2.1 * len(chosen), 5.0), 3.8), layout="constrained")
        axes = figure.subplots(2, len(chosen), sharex="row", sharey="row", squeeze=False)
        for column, spectrum in enumerate(chosen):
            one, total = axes[:, column]
            for head in spectrum.heads:
                colour = PALETTE[1] if head.good else PALETTE[0]
                values, front = head.eigenvalues, 3 if head.good else 2
                one.scatter(values.real, values.imag, 4, colour, alpha=0.7, lw=0, zorder=front)
            total.scatter(spectrum.total.real, spectrum.total.imag, 4, PALETTE[2], alpha=0.7, lw=0)
            one.set_title(f"layer {spectrum.layer + 1}")
            for ax in (one, total):
                ax.axhline(0, color=FAINT, lw=0.5, zorder=0)
                ax.axvline(0, color=FAINT, lw=0.5, zorder=0)
                ax.set_aspect("equal", adjustable="box")
        axes[0, 0].set_ylabel(r"each $V_h$")
        axes[1, 0].set_ylabel(r"$\sum_h V_h$")
    return figure


def collapse_panels(survey: Survey) -> Figure | None:
    """Neural collapse by layer, averaged over the texts; None if no text has classes."""
    found = [text.collapse for text in survey.texts if text.collapse is not None]
    if not found:
        return None
    with style():
        figure = Figure(figsize=(9.6, 2.8), layout="constrained")
        ratio, angle = figure.subplots(1, 2)
        for ax, name, label in (
            (ratio, "ratio", "variance within / between"),
            (angle, "angle_error", "distance from simplex angles"),
        ):
            values = np.array([getattr(one, name) for one in found])
            spread = values.std(axis=0, ddof=1) if len(values) > 1 else 0 * values[0]
            _line(ax, values.mean(axis=0), spread, PALETTE[4])
            ax.set_ylabel(label)
            ax.set_ylim(bottom=0)
            _layers_below(ax)
    return figure


def flow_panels(flow: Flow) -> Figure:
    """Tokens of a flow with trained weights at four times, on two principal components."""
    T = len(flow.ts)
    halved = int(np.argmax(flow.clusters <= (flow.clusters[0] + flow.clusters[-1]) / 2)) or T // 2
    moments = sorted({0, halved // 2, halved, T - 1})
    view = TokenView(flow.xs, on_sphere=flow.xs.shape[-1] <= 3)
    labels = np.zeros(flow.xs.shape[1], int)
    with style():
        figure = Figure(figsize=(2.7 * len(moments), 3.0), layout="constrained")
        axes = figure.subplots(1, len(moments), squeeze=False).ravel()
        for ax, i in zip(axes, moments, strict=True):
            view.prepare(ax)
            view.draw(ax, i, labels, size=20.0)
            count = flow.clusters[i]
            noun = "cluster" if count == 1 else "clusters"
            ax.set_title(f"$t = {flow.ts[i]:.3g}$: {count} {noun}")
    return figure


def states_panels(survey: Survey) -> Figure:
    """Directions of the tokens of the first text, on two principal components, by layer."""
    u = survey.states / np.linalg.norm(survey.states, axis=-1, keepdims=True)
    labels = survey.texts[0].labels
    layers = evenly(len(u), 4)
    with style():
        figure = Figure(figsize=(2.7 * len(layers), 3.0), layout="constrained")
        view = TokenView(u, on_sphere=u.shape[-1] <= 3)
        axes = figure.subplots(1, len(layers), squeeze=False).ravel()
        for ax, k in zip(axes, layers, strict=True):
            view.prepare(ax)
            in_cluster = np.bincount(labels[k])[labels[k]] > 1
            flat, _ = view.project(u[k])
            ax.scatter(*flat.T, 9, np.where(in_cluster, PALETTE[1], PALETTE[0]), alpha=0.7, lw=0)
            ax.set_title("start" if k == 0 else f"after layer {k}")
    return figure


def joining_panel(survey: Survey) -> Figure | None:
    """The merge tree of some tokens of the first text; None if no cluster has two tokens."""
    text = survey.texts[0]
    shown = joining_tokens(text.labels[-1])
    if not shown:
        return None
    with style():
        figure = Figure(figsize=(9.6, 1.0 + 0.125 * len(shown)), layout="constrained")
        ax = figure.subplots()
        names = [text.tokens[i].replace("$", r"\$") for i in shown]
        merge_tree(ax, text.labels[:, shown], names)
        ax.set_xlabel("layers passed")
    return figure


def joining_tokens(last: Int[np.ndarray, " n"]) -> list[int]:
    """A few tokens of each of the largest clusters, in the order of the text."""
    groups = [np.flatnonzero(last == cluster) for cluster in np.unique(last)]
    groups = sorted((g for g in groups if len(g) > 1), key=len, reverse=True)
    few = [g[evenly(len(g), MAX_TREE_TOKENS_PER_CLUSTER)] for g in groups]
    whole = np.cumsum([len(g) for g in few]) <= MAX_TREE_TOKENS
    return sorted(int(i) for g, fits in zip(few, whole, strict=True) if fits for i in g)


def _line(
    ax: Axes, mean: Any, spread: Any, colour: str, label: str | None = None, ls: str = "-"
) -> None:
    """Draw a number by layer, with error bars if texts differ."""
    bars = spread if np.any(spread) else None
    where = np.arange(len(mean))
    marker = "o" if len(mean) <= 30 else None
    ax.errorbar(where, mean, bars, color=colour, label=label, ls=ls, marker=marker, ms=3, capsize=2)


def _layers_below(ax: Axes) -> None:
    ax.set_xlabel("layers passed")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def _numbered(count: int, first: int) -> tuple[list[int], list[str]]:
    """Ticks for rows or columns, no more than are legible."""
    at = list(range(0, count, 1 + count // 16))
    return at, [str(i + first) for i in at]
