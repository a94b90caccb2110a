"""One matplotlib style, and colours that colour-blind readers can tell apart."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from attnflow.files import atomic_write

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8A6D00", "#5B3A8C")
"""Okabe and Ito's colours and two more with the same spacing; the first ones differ most."""

INK, FAINT = "#222222", "#9AA0A6"

RC: dict[str, Any] = {
    "figure.dpi": 110,
    "savefig.dpi": 200,
    "font.family": "STIXGeneral",
    "mathtext.fontset": "stix",
    "font.size": 11,
    "axes.titlesize": 11,
    "axes.labelsize": 11,
    "axes.edgecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "text.color": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "svg.hashsalt": "attnflow",
}


_ONE_AT_A_TIME = threading.RLock()
"""All threads share matplotlib's settings."""


@contextmanager
def style() -> Iterator[None]:
    """Draw in the project's style, and leave the caller's settings and backend alone.

    Pictures are `Figure` objects without a window, so no backend is chosen and no screen is
    needed. Threads draw one after another, because they share matplotlib's settings.
    """
    with _ONE_AT_A_TIME, mpl.rc_context(RC):
        yield


def save(figure: Figure, path: str | Path, **options: Any) -> None:
    """Write a picture to a file, completely or not at all.

    Args:
        figure: the picture.
        path: the file; its ending sets the format.
        **options: more arguments of `Figure.savefig`.
    """
    with atomic_write(Path(path)) as place:
        figure.savefig(place, **options)


def colours(labels: np.ndarray) -> list[str]:
    """One colour for each label; labels beyond the palette start over."""
    return [PALETTE[int(label) % len(PALETTE)] for label in labels]
