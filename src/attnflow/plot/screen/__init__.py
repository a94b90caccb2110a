"""Interactive versions of the papers' plots, made with plotly."""

from attnflow.extras import import_optional
from attnflow.retired import renamed_names

import_optional("plotly", "explore", "plots for the screen need plotly")

from attnflow.plot.screen.charts import (  # noqa: E402
    leaders,
    lines,
    matrix,
    merge_tree,
    overlaps,
    phase,
    spectrum,
)
from attnflow.plot.screen.theme import Theme, apply_theme  # noqa: E402
from attnflow.plot.screen.tokens import (  # noqa: E402
    add_level,
    projected_states,
    start_of_tokens,
    tokens,
)

__all__ = [
    "Theme",
    "add_level",
    "apply_theme",
    "leaders",
    "lines",
    "matrix",
    "merge_tree",
    "overlaps",
    "phase",
    "projected_states",
    "spectrum",
    "start_of_tokens",
    "tokens",
]

__getattr__ = renamed_names(__name__, {"as_seen": "projected_states", "themed": "apply_theme"})
