"""Which tokens join: the clusters of named tokens over layers or time, as a tree."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from attnflow.plot.style import FAINT, PALETTE

LEAVES = 0.9
"""Distance of the names from the first state."""

FLAT = 0.28
"""Lines are level this far on either side of a state, and slanted in between."""


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
    across = np.concatenate([[-LEAVES, -LEAVES + 0.1], *np.add.outer(states, [-FLAT, FLAT])])
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
        ax.text(-LEAVES - 0.06, branch.up[0], name, ha="right", va="center", fontsize=7)
    T, n = labels.shape
    ax.set(ylim=(n - 0.3, -0.7), xlim=(-LEAVES, T - 1 + FLAT), yticks=[])
    ax.spines["left"].set_visible(False)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
