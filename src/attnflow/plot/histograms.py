"""Histograms over pairs of tokens."""

from __future__ import annotations

import numpy as np
from jaxtyping import ArrayLike, Real
from matplotlib.axes import Axes

from attnflow.plot.style import PALETTE


def draw_overlaps(
    ax: Axes, density: Real[ArrayLike, " bins"], edges: Real[ArrayLike, " edges"]
) -> None:
    """Draw the density of the inner products of all pairs.

    Args:
        ax: the axes.
        density: the density on each bin, shape (bins,).
        edges: the edges of the bins, shape (bins + 1,).
    """
    density, edges = np.asarray(density), np.asarray(edges)
    ax.stairs(density, edges, fill=True, color=PALETTE[0], alpha=0.75)
    ax.axvline(1.0, color=PALETTE[1], lw=0.8, ls=":")
    first = edges[np.flatnonzero(density)[0]]
    ax.set(xlim=(min(first, -0.25), 1.02), yticks=[])
