"""From a system and a start to a trajectory: `simulate`, `solve`, the methods, `Trajectory`."""

from attnflow.simulate.driver import simulate
from attnflow.simulate.methods import METHODS, Adaptive, Fixed, Layers, Method
from attnflow.simulate.solve import solve
from attnflow.simulate.trajectory import Trajectory

__all__ = [
    "METHODS",
    "Adaptive",
    "Fixed",
    "Layers",
    "Method",
    "Trajectory",
    "simulate",
    "solve",
]
