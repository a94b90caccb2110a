"""The plots of the papers for the screen, on plotly: they move, zoom, and answer to the pointer."""

from attnflow.plot.screen.pairs import leaders, matrix, overlaps
from attnflow.plot.screen.plane import phase, spectrum
from attnflow.plot.screen.theme import Theme, themed
from attnflow.plot.screen.times import lines, merge_tree
from attnflow.plot.screen.tokens import tokens

__all__ = [
    "Theme",
    "leaders",
    "lines",
    "matrix",
    "merge_tree",
    "overlaps",
    "phase",
    "spectrum",
    "themed",
    "tokens",
]
