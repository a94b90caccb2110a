"""Numbers from a state, an attention matrix or a trajectory: pure functions of arrays."""

from attnflow.observe.attention import attention
from attnflow.observe.clusters import Clusters, clusters
from attnflow.observe.coordinates import Eigenbasis, dual_coordinates, eigenbasis
from attnflow.observe.energy import energy
from attnflow.observe.hull import Hull, HullHistory, hull, hull_history
from attnflow.observe.overlaps import overlaps

__all__ = [
    "Clusters",
    "Eigenbasis",
    "Hull",
    "HullHistory",
    "attention",
    "clusters",
    "dual_coordinates",
    "eigenbasis",
    "energy",
    "hull",
    "hull_history",
    "overlaps",
]
