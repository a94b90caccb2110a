"""From a system and a start to a trajectory: `simulate`, `solve`, the methods, `Trajectory`."""

from attnflow.simulation.coarsening import Coarsening
from attnflow.simulation.driver import simulate
from attnflow.simulation.filippov import Filippov
from attnflow.simulation.lost import LostDigits
from attnflow.simulation.merging import Merges
from attnflow.simulation.methods import Adaptive, Fixed, Layers, Method
from attnflow.simulation.solve import Solution, solve
from attnflow.simulation.trajectory import Trajectory

METHODS: dict[str, type[Method]] = {
    method.__name__: method for method in (Adaptive, Fixed, Layers, Coarsening, Filippov)
}
"""The methods by name, as specs call them."""

__all__ = [
    "METHODS",
    "Adaptive",
    "Coarsening",
    "Filippov",
    "Fixed",
    "Layers",
    "LostDigits",
    "Merges",
    "Method",
    "Solution",
    "Trajectory",
    "simulate",
    "solve",
]
