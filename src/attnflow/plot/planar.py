"""Marks in the plane: level sets of a functional, and a direction from the origin."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes

from attnflow.plot.style import FAINT, PALETTE


def draw_level(
    ax: Axes, functional: Float[np.ndarray, " 2"], level: float, colour: str = FAINT
) -> None:
    """Draw the line `functional · x = level`.

    Args:
        ax: the axes.
        functional: the functional, shape (2,).
        level: its value on the line.
        colour: colour of the line.
    """
    foot = functional * level / (functional @ functional)
    along = np.array([-functional[1], functional[0]])
    ax.axline(foot, foot + along, color=colour, lw=1.0, ls=(0, (5, 3)), zorder=0.5)


def draw_direction(
    ax: Axes, direction: Float[np.ndarray, " 2"], length: float, colour: str = PALETTE[4]
) -> None:
    """Draw an arrow from the origin.

    Args:
        ax: the axes.
        direction: where it points, shape (2,), of any length.
        length: length of the arrow.
        colour: colour of the arrow.
    """
    across, up = length * direction / np.linalg.norm(direction)
    style = {"arrowstyle": "-|>", "color": colour, "lw": 2.0, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", xy=(across, up), xytext=(0, 0), arrowprops=style, zorder=3)
