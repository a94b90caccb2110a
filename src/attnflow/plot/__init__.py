"""Pictures of runs, in one style: tokens where they live, counts and energies along time."""

from attnflow.plot.animation import animate
from attnflow.plot.overview import overview
from attnflow.plot.style import style
from attnflow.plot.tokens import Stage

__all__ = ["Stage", "animate", "overview", "style"]
