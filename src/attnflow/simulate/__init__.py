"""From a system and a start to a trajectory: `simulate`, `solve`, the methods, `Trajectory`."""

from attnflow.simulate.coarsening import Coarsening
from attnflow.simulate.driver import simulate
from attnflow.simulate.filippov import Filippov
from attnflow.simulate.lost import LostDigits
from attnflow.simulate.merging import Merges
from attnflow.simulate.methods import Adaptive, Fixed, Layers, Method
from attnflow.simulate.solve import solve
from attnflow.simulate.trajectory import Trajectory

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
    "Trajectory",
    "simulate",
    "solve",
]
