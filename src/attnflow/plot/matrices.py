"""Attention and its matrices: weights as images, leaders, overlaps, and eigenvalues."""

from __future__ import annotations

import numpy as np
from jaxtyping import ArrayLike, Float, Inexact, Real
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import PowerNorm, to_rgba
from matplotlib.image import AxesImage
from matplotlib.patches import Circle

from attnflow.plot.style import FAINT, INK, PALETTE

COLORMAP = "Blues"


QUERIES, KEYS = PALETTE[7], PALETTE[2]

MIN_ATTENTION, MAX_LINE_WIDTH = 1e-3, 1.6
"""The least attention that gets a line; the width of a line for an attention of 1."""


def draw_matrix(
    ax: Axes, P: Real[np.ndarray, "n m"], top: float | int = 1.0, power: float | int = 1.0
) -> AxesImage:
    """Draw a matrix of weights: row i is what token i attends to.

    The shade is `(P/top)^power`, from white (0) to dark (1).

    Args:
        ax: the axes.
        P: the matrix, shape (n, m).
        top: the weight that is darkest.
        power: below 1 it makes small weights visible.
    """
    shade = PowerNorm(power, vmin=0, vmax=top)
    image = ax.imshow(P, cmap=COLORMAP, norm=shade, interpolation="nearest")
    ax.set(xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set_visible(True)
    return image


def largest_in_blocks(P: Real[np.ndarray, "n n"], most: int = 80) -> Real[np.ndarray, "m m"]:
    """The largest entry of each square block, with at most `most` blocks along a side.

    In the picture of a large matrix a single column is then still visible.

    >>> print(largest_in_blocks(np.diag([1, 2, 3]), most=2))
    [[2 0]
     [0 3]]
    """
    side = -(-len(P) // most)
    at = np.arange(0, len(P), side)
    return np.maximum.reduceat(np.maximum.reduceat(P, at, axis=0), at, axis=1)


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
    i, j = np.nonzero(P > MIN_ATTENTION)
    share = P[i, j]
    lines = np.stack([queries[i], keys[j]], axis=1)
    shades = [to_rgba(INK, 0.12 + 0.5 * p) for p in share]
    ax.add_collection(
        LineCollection(list(lines), colors=shades, linewidths=MAX_LINE_WIDTH * share, zorder=1)
    )
    for points, colour, name in ((queries, QUERIES, "$Qx_i$"), (keys, KEYS, "$Kx_j$")):
        across, up = points.T
        ax.scatter(across, up, 22, colour, edgecolors="white", linewidths=0.4, zorder=2, label=name)
    ax.autoscale_view()


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


def draw_spectrum(
    ax: Axes,
    eigenvalues: Inexact[np.ndarray, " d"],
    *,
    good: bool | None = None,
    size: float | int = 9,
) -> None:
    """Draw eigenvalues in the circle of the largest modulus, with the leading ones marked.

    Args:
        ax: the axes.
        eigenvalues: the eigenvalues, shape (d,).
        good: whether the leading eigenvalue is as [E] requires; the mark is green if True and
            orange if False.
        size: area of the dots.
    """
    modulus = np.abs(eigenvalues)
    radius = float(modulus.max())
    colour = {None: PALETTE[0], True: PALETTE[2], False: PALETTE[1]}[good]
    ax.add_patch(Circle((0, 0), radius, facecolor="none", edgecolor=FAINT, lw=0.7, zorder=0))
    ax.axhline(0, color=FAINT, lw=0.5, zorder=0)
    ax.axvline(0, color=FAINT, lw=0.5, zorder=0)
    ax.scatter(eigenvalues.real, eigenvalues.imag, size, PALETTE[0], alpha=0.75, linewidths=0)
    leading = eigenvalues[modulus > (1 - 1e-9) * radius]
    ax.scatter(leading.real, leading.imag, 6 * size, "none", edgecolors=colour, linewidths=1.4)
    reach = 1.15 * radius
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach))
    ax.set_aspect("equal")
