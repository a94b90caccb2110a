"""Interactive versions of the papers' plots, made with plotly."""

from attnflow.extras import import_optional

import_optional("plotly", "explore", "plots for the screen need plotly")

from attnflow.plot.screen.pairs import leaders, matrix, overlaps  # noqa: E402
from attnflow.plot.screen.plane import phase, spectrum  # noqa: E402
from attnflow.plot.screen.theme import Theme, themed  # noqa: E402
from attnflow.plot.screen.times import lines, merge_tree  # noqa: E402
from attnflow.plot.screen.tokens import add_level, as_seen, start_of_tokens, tokens  # noqa: E402

__all__ = [
    "Theme",
    "add_level",
    "as_seen",
    "leaders",
    "lines",
    "matrix",
    "merge_tree",
    "overlaps",
    "phase",
    "spectrum",
    "start_of_tokens",
    "themed",
    "tokens",
]
