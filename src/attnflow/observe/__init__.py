"""Numbers from a state, an attention matrix or a trajectory: pure functions of arrays."""

from attnflow.observe.attention import attention
from attnflow.observe.clusters import Clusters, clusters
from attnflow.observe.energy import energy
from attnflow.observe.overlaps import overlaps

__all__ = ["Clusters", "attention", "clusters", "energy", "overlaps"]
