"""Pictures of runs in one style: tokens in their space, cluster counts and energies over time."""

from attnflow.plot.meanfield import closure_diagram, convergence_diagram, emergence_diagram
from attnflow.plot.phase import Curve, phase_diagram, sweep_diagram
from attnflow.plot.runs import animate, overview
from attnflow.plot.style import style
from attnflow.plot.tokens import TokenView
from attnflow.retired import renamed_names

__all__ = [
    "Curve",
    "TokenView",
    "animate",
    "closure_diagram",
    "convergence_diagram",
    "emergence_diagram",
    "overview",
    "phase_diagram",
    "style",
    "sweep_diagram",
]

__getattr__ = renamed_names(__name__, {"Stage": "TokenView"})
