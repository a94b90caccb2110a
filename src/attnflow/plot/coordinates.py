"""One coordinate of all tokens over time: a curve for each, or their mean in a band."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes

from attnflow.plot.style import PALETTE, colours


def draw_coordinate(
    ax: Axes,
    ts: Float[np.ndarray, " T"],
    values: Float[np.ndarray, "T n"],
    labels: Int[np.ndarray, " n"],
) -> None:
    """Draw a coordinate of every token over time, coloured by label.

    Args:
        ax: the axes.
        ts: times, shape (T,).
        values: the coordinate, shape (T, n).
        labels: the label of each token, shape (n,).
    """
    for token, colour in enumerate(colours(labels)):
        ax.plot(ts, values[:, token], color=colour, lw=0.7, alpha=0.7)
    ax.set(xlabel="time $t$", xlim=(ts[0], ts[-1]))


def draw_band(
    ax: Axes,
    ts: Float[np.ndarray, " T"],
    values: Float[np.ndarray, "T n"],
    colour: str = PALETTE[0],
    label: str = "_",
) -> None:
    """Draw the mean over tokens in a band of one standard deviation on each side.

    Args:
        ax: the axes.
        ts: times, shape (T,).
        values: the coordinate, shape (T, n).
        colour: colour of line and band.
        label: name in the legend; none by default.
    """
    mean, spread = values.mean(axis=1), values.std(axis=1)
    ax.fill_between(ts, mean - spread, mean + spread, color=colour, alpha=0.18, lw=0)
    ax.plot(ts, mean, color=colour, lw=1.1, label=label)
    ax.set(xlabel="time $t$", xlim=(ts[0], ts[-1]))
