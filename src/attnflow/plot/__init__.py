"""Pictures of runs in one style: tokens in their space, cluster counts and energies over time."""

from attnflow.plot.animation import animate
from attnflow.plot.emergence import emergence_diagram
from attnflow.plot.many import closure_diagram, convergence_diagram
from attnflow.plot.overview import overview
from attnflow.plot.phase import Curve, phase_diagram, sweep_diagram
from attnflow.plot.style import style
from attnflow.plot.tokens import Stage

__all__ = [
    "Curve",
    "Stage",
    "animate",
    "closure_diagram",
    "convergence_diagram",
    "emergence_diagram",
    "overview",
    "phase_diagram",
    "style",
    "sweep_diagram",
]
