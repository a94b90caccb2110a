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
    """Draw a matrix of weights: white is 0, dark is `top`; row i is what token i attends to.

    The shade is that of `(P/top)^power`: a power below 1 lets small weights be seen.
    """
    shade = PowerNorm(power, vmin=0, vmax=top)
    image = ax.imshow(P, cmap=SHADES, norm=shade, interpolation="nearest")
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
