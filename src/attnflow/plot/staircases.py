"""Staircases: quantities that are constant on metastable plateaus and jump at merges."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes

from attnflow.observe import staircase
from attnflow.plot.style import FAINT, INK


class Plateau(NamedTuple):
    """A time interval with a constant number of clusters.

    Attributes:
        begin: its first time.
        end: its last time.
        clusters: the number of clusters.
    """

    begin: float
    end: float
    clusters: int

    @property
    def decades(self) -> float:
        """Its length in powers of ten."""
        return float(np.log10(self.end / self.begin)) if self.begin > 0 else 0.0


def plateaus(
    times: Float[np.ndarray, " T"], counts: Int[np.ndarray, " T"], decades: float | int = 0.5
) -> list[Plateau]:
    """The time intervals on which the cluster count is constant for long.

    Args:
        times: times, shape (T,).
        counts: cluster counts at these times, shape (T,).
        decades: the least length, in powers of ten.

    >>> times, counts = np.array([0.0, 1.0, 10.0, 100.0]), np.array([9, 3, 3, 1])
    >>> plateaus(times, counts)
    [Plateau(begin=1.0, end=100.0, clusters=3)]
    """
    steps = staircase(times.tolist(), counts.tolist())
    ends = [time for time, _ in steps[1:]] + [float(times[-1])]
    found = [Plateau(t, end, int(k)) for (t, k), end in zip(steps, ends, strict=True)]
    return [plateau for plateau in found if plateau.decades >= decades]


def draw_plateaus(ax: Axes, found: list[Plateau]) -> None:
    """Mark the end of each plateau, and write its number of clusters above it."""
    for plateau in found:
        ax.axvline(plateau.end, color=FAINT, lw=0.6, ls=":", zorder=0)
        ax.text(
            np.sqrt(plateau.begin * plateau.end),
            1.0,
            f"{plateau.clusters} cluster{'s' if plateau.clusters > 1 else ''}",
            transform=ax.get_xaxis_transform(),
            color=INK,
            ha="center",
            va="bottom",
            fontsize=9,
        )
