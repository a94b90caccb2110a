"""Who joins whom: the clusters of named tokens along layers or time, as a tree."""

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
"""Names stand so far before the first state."""

FLAT = 0.28
"""Lines run level so far on either side of a state, and slant between."""


def heights(labels: Int[np.ndarray, "T n"]) -> tuple[Float[np.ndarray, " n"], np.ndarray]:
    """Where a token begins, and where it is at each state: (n,) and (T, n).

    Tokens of one cluster are at one height, the mean of where they begin. Tokens are ordered by
    their last cluster, then by that before it, and so on: where clusters only join, no lines cross.

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
    """The line of a token in a merge tree."""

    across: Float[np.ndarray, " points"]
    up: Float[np.ndarray, " points"]
    colour: str


def branches(labels: Int[np.ndarray, "T n"]) -> list[Branch]:
    """A line for each of n tokens; those that end together have one colour, others are faint."""
    begin, at = heights(labels)
    states = np.arange(len(at), dtype=float)
    across = np.concatenate([[-LEAVES, -LEAVES + 0.1], *np.add.outer(states, [-FLAT, FLAT])])
    last, sizes = np.unique(labels[-1], return_counts=True)
    shades = dict.fromkeys(last, FAINT) | dict(zip(last[sizes > 1], itertools.cycle(PALETTE)))
    ups = np.concatenate([[begin, begin], np.repeat(at, 2, axis=0)]).T
    return [Branch(across, up, shades[end]) for up, end in zip(ups, labels[-1], strict=True)]


def merge_tree(ax: Axes, labels: Int[np.ndarray, "T n"], names: Sequence[str]) -> None:
    """Draw the clusters of n tokens at T states: `labels[k, i]` is that of token i at state k.

    Each token has a line that begins at its name. Lines that meet are tokens that join, lines that
    leave each other are clusters that part. Tokens that end together have one colour.
    """
    for branch, name in zip(branches(labels), names, strict=True):
        ax.plot(branch.across, branch.up, color=branch.colour, lw=1.1, alpha=0.8)
        ax.text(-LEAVES - 0.06, branch.up[0], name, ha="right", va="center", fontsize=7)
    T, n = labels.shape
    ax.set(ylim=(n - 0.3, -0.7), xlim=(-LEAVES, T - 1 + FLAT), yticks=[])
    ax.spines["left"].set_visible(False)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
