"""Matrices as images: who attends to whom."""

from __future__ import annotations

import numpy as np
from jaxtyping import Real
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.image import AxesImage

SHADES = "Blues"


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
    image = ax.imshow(P, cmap=SHADES, norm=shade, interpolation="nearest")
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
