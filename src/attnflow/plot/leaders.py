"""Who attends to whom: queries and keys in the plane, and lines as wide as the attention."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba

from attnflow.plot.style import INK, PALETTE

QUERIES, KEYS = PALETTE[7], PALETTE[2]
LEAST, WIDEST = 1e-3, 1.6
"""The least attention that gets a line; the width of a line for an attention of 1."""


def draw_leaders(
    ax: Axes,
    queries: Float[np.ndarray, "n 2"],
    keys: Float[np.ndarray, "n 2"],
    P: Float[np.ndarray, "n n"],
) -> None:
    """Draw queries (purple), keys (green), and a line of width P_ij from query i to key j.

    Args:
        ax: the axes.
        queries: Q x_i, shape (n, 2).
        keys: K x_j, shape (n, 2).
        P: the attention matrix, shape (n, n).
    """
    i, j = np.nonzero(P > LEAST)
    share = P[i, j]
    lines = np.stack([queries[i], keys[j]], axis=1)
    shades = [to_rgba(INK, 0.12 + 0.5 * p) for p in share]
    ax.add_collection(
        LineCollection(list(lines), colors=shades, linewidths=WIDEST * share, zorder=1)
    )
    for points, colour, name in ((queries, QUERIES, "$Qx_i$"), (keys, KEYS, "$Kx_j$")):
        across, up = points.T
        ax.scatter(across, up, 22, colour, edgecolors="white", linewidths=0.4, zorder=2, label=name)
    ax.autoscale_view()
