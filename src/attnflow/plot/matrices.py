"""Matrices as images: who attends to whom."""

from __future__ import annotations

import numpy as np
from jaxtyping import Real
from matplotlib.axes import Axes

SHADES = "Blues"


def draw_matrix(ax: Axes, P: Real[np.ndarray, "n m"], top: float | int = 1.0) -> None:
    """Draw a matrix of weights: white is 0, dark is `top`; row i is what token i attends to."""
    ax.imshow(P, cmap=SHADES, vmin=0, vmax=top, interpolation="nearest")
    ax.set(xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set_visible(True)
