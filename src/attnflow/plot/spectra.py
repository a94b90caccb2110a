"""Eigenvalues in the complex plane."""

from __future__ import annotations

import numpy as np
from jaxtyping import Inexact
from matplotlib.axes import Axes
from matplotlib.patches import Circle

from attnflow.plot.style import FAINT, PALETTE


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
