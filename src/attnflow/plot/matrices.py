"""Attention and its matrices: weights as images, leaders, overlaps, eigenvalues."""

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
"""Lines for less attention are left out; the width of a line for all of it."""


def draw_matrix(
    ax: Axes, P: Real[np.ndarray, "n m"], top: float | int = 1.0, power: float | int = 1.0
) -> AxesImage:
    """Draw a matrix of weights: white is 0, dark is `top`; row i is what token i attends to.

    The shade is that of `(P/top)^power`: a power below 1 lets small weights be seen.
    """
    shade = PowerNorm(power, vmin=0, vmax=top)
    image = ax.imshow(P, cmap=COLORMAP, norm=shade, interpolation="nearest")
    ax.set(xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set_visible(True)
    return image


def largest_in_blocks(P: Real[np.ndarray, "n n"], most: int = 80) -> Real[np.ndarray, "m m"]:
    """The largest entries of square blocks, at most `most` of them along a side.

    A picture of a large matrix is then one in which a single column can still be seen.

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
    """Draw queries (purple) and keys (green), and a line of width P_ij from query i to key j."""
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
    """The density of inner products on their bins, from −1 (or where it begins) to 1."""
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
    """Draw eigenvalues within the circle of the largest modulus, which is marked.

    `good` gives the mark a colour: green where the leading eigenvalue is as [E] wants it, orange
    where it is not.
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
