"""What happens over time or layers: coordinates, plateaus of clusters, and which tokens join."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from attnflow.observe import staircase
from attnflow.plot.style import FAINT, INK, PALETTE, colours

NAME_OFFSET = 0.9
"""Distance of the names from the first state."""

LEVEL_HALF_WIDTH = 0.28
"""Lines are level this far on either side of a state, and slanted in between."""


def draw_coordinate(
    ax: Axes,
    ts: Float[np.ndarray, " T"],
    values: Float[np.ndarray, "T n"],
    labels: Int[np.ndarray, " n"],
) -> None:
    """Draw a coordinate of every token over time, coloured by label.

    Args:
        ax: the axes.
        ts: times, shape (T,).
        values: the coordinate, shape (T, n).
        labels: the label of each token, shape (n,).
    """
    for token, colour in enumerate(colours(labels)):
        ax.plot(ts, values[:, token], color=colour, lw=0.7, alpha=0.7)
    ax.set(xlabel="time $t$", xlim=(ts[0], ts[-1]))


def draw_band(
    ax: Axes,
    ts: Float[np.ndarray, " T"],
    values: Float[np.ndarray, "T n"],
    colour: str = PALETTE[0],
    label: str = "_",
) -> None:
    """Draw the mean over tokens in a band of one standard deviation on each side.

    Args:
        ax: the axes.
        ts: times, shape (T,).
        values: the coordinate, shape (T, n).
        colour: colour of line and band.
        label: name in the legend; none by default.
    """
    mean, spread = values.mean(axis=1), values.std(axis=1)
    ax.fill_between(ts, mean - spread, mean + spread, color=colour, alpha=0.18, lw=0)
    ax.plot(ts, mean, color=colour, lw=1.1, label=label)
    ax.set(xlabel="time $t$", xlim=(ts[0], ts[-1]))


class Plateau(NamedTuple):
    """A time interval with a constant number of clusters.

    Attributes:
        begin: its first time.
        end: its last time.
        clusters: the number of clusters.
    """

    begin: float
    end: float
    clusters: int

    @property
    def decades(self) -> float:
        """Its length in powers of ten."""
        return float(np.log10(self.end / self.begin)) if self.begin > 0 else 0.0


def plateaus(
    times: Float[np.ndarray, " T"], counts: Int[np.ndarray, " T"], decades: float | int = 0.5
) -> list[Plateau]:
    """The time intervals on which the cluster count is constant for long.

    Args:
        times: times, shape (T,).
        counts: cluster counts at these times, shape (T,).
        decades: the least length, in powers of ten.

    >>> times, counts = np.array([0.0, 1.0, 10.0, 100.0]), np.array([9, 3, 3, 1])
    >>> plateaus(times, counts)
    [Plateau(begin=1.0, end=100.0, clusters=3)]
    """
    steps = staircase(times.tolist(), counts.tolist())
    ends = [time for time, _ in steps[1:]] + [float(times[-1])]
    found = [Plateau(t, end, int(k)) for (t, k), end in zip(steps, ends, strict=True)]
    return [plateau for plateau in found if plateau.decades >= decades]


def draw_plateaus(ax: Axes, found: list[Plateau]) -> None:
    """Mark the end of each plateau, and write its number of clusters above it."""
    for plateau in found:
        ax.axvline(plateau.end, color=FAINT, lw=0.6, ls=":", zorder=0)
        ax.text(
            np.sqrt(plateau.begin * plateau.end),
            1.0,
            f"{plateau.clusters} cluster{'s' if plateau.clusters > 1 else ''}",
            transform=ax.get_xaxis_transform(),
            color=INK,
            ha="center",
            va="bottom",
            fontsize=9,
        )


def heights(labels: Int[np.ndarray, "T n"]) -> tuple[Float[np.ndarray, " n"], np.ndarray]:
    """The height of each token at the names, shape (n,), and at each state, shape (T, n).

    Tokens of one cluster have the same height, the mean of their heights at the names. Tokens are
    ordered by their last cluster, then by the one before, and so on: if clusters only join, no
    lines cross.

    >>> heights(np.array([[0, 1, 2], [0, 1, 0]]))
    (array([0., 2., 1.]), array([[0. , 2. , 1. ],
           [0.5, 2. , 0.5]]))
    """
    labels = np.asarray(labels)
    begin = np.empty(labels.shape[1])
    begin[np.lexsort(labels)] = np.arange(labels.shape[1])
    at = np.empty(labels.shape)
    for row, clusters in zip(at, labels, strict=True):
        _, member = np.unique(clusters, return_inverse=True)
        row[:] = (np.bincount(member, begin) / np.bincount(member))[member]
    return begin, at


class Branch(NamedTuple):
    """The line of a token in a merge tree.

    Attributes:
        across: horizontal coordinates, shape (points,).
        up: vertical coordinates, shape (points,).
        colour: the colour of its last cluster.
    """

    across: Float[np.ndarray, " points"]
    up: Float[np.ndarray, " points"]
    colour: str


def branches(labels: Int[np.ndarray, "T n"]) -> list[Branch]:
    """A line for each token. Tokens that end together share a colour; others are faint."""
    begin, at = heights(labels)
    states = np.arange(len(at), dtype=float)
    across = np.concatenate(
        [
            [-NAME_OFFSET, -NAME_OFFSET + 0.1],
            *np.add.outer(states, [-LEVEL_HALF_WIDTH, LEVEL_HALF_WIDTH]),
        ]
    )
    last, sizes = np.unique(labels[-1], return_counts=True)
    shades = dict.fromkeys(last, FAINT) | dict(zip(last[sizes > 1], itertools.cycle(PALETTE)))
    ups = np.concatenate([[begin, begin], np.repeat(at, 2, axis=0)]).T
    return [Branch(across, up, shades[end]) for up, end in zip(ups, labels[-1], strict=True)]


def merge_tree(ax: Axes, labels: Int[np.ndarray, "T n"], names: Sequence[str]) -> None:
    """Draw the clusters of n tokens at T states as a tree.

    Each token has a line that starts at its name. Lines meet when tokens join, and separate when a
    cluster splits. Tokens that end together share a colour.

    Args:
        ax: the axes.
        labels: the cluster of token i at state k is `labels[k, i]`, shape (T, n).
        names: the names of the tokens.
    """
    for branch, name in zip(branches(labels), names, strict=True):
        ax.plot(branch.across, branch.up, color=branch.colour, lw=1.1, alpha=0.8)
        ax.text(-NAME_OFFSET - 0.06, branch.up[0], name, ha="right", va="center", fontsize=7)
    T, n = labels.shape
    ax.set(ylim=(n - 0.3, -0.7), xlim=(-NAME_OFFSET, T - 1 + LEVEL_HALF_WIDTH), yticks=[])
    ax.spines["left"].set_visible(False)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
