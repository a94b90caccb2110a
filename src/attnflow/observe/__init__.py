"""Numbers from a state, an attention matrix or a trajectory: pure functions of arrays."""

from attnflow.observe.attention import (
    attention,
    attention_along,
    boolean_distance,
    entropy,
    leaders,
    rank,
)
from attnflow.observe.clusters import Clusters, cluster_count, clusters, pairs_clustered
from attnflow.observe.collapse import NeuralCollapse, neural_collapse
from attnflow.observe.coordinates import Eigenbasis, dual_coordinates, eigenbasis
from attnflow.observe.designs import InnerProducts, design_strength, inner_products
from attnflow.observe.energy import energy, energy_rate
from attnflow.observe.hessian import gradient, hessian, saddle_index
from attnflow.observe.history import ClusterHistory, Merge, cluster_history, staircase
from attnflow.observe.hull import Hull, HullHistory, hull, hull_history
from attnflow.observe.rates import Rate, doubly_exponential_rate, exponential_rate
from attnflow.observe.shape import (
    diameter,
    effective_rank,
    order_parameter,
    overlap_histogram,
    overlaps,
    span_dimension,
)
from attnflow.observe.stability import (
    Lyapunov,
    jacobian,
    jacobian_spectrum,
    lyapunov_exponent,
)
from attnflow.observe.wasserstein import Cells, Wasserstein, wasserstein

__all__ = [
    "Cells",
    "ClusterHistory",
    "Clusters",
    "Eigenbasis",
    "Hull",
    "HullHistory",
    "InnerProducts",
    "Lyapunov",
    "Merge",
    "NeuralCollapse",
    "Rate",
    "Wasserstein",
    "attention",
    "attention_along",
    "boolean_distance",
    "cluster_count",
    "cluster_history",
    "clusters",
    "design_strength",
    "diameter",
    "doubly_exponential_rate",
    "dual_coordinates",
    "effective_rank",
    "eigenbasis",
    "energy",
    "energy_rate",
    "entropy",
    "exponential_rate",
    "gradient",
    "hessian",
    "hull",
    "hull_history",
    "inner_products",
    "jacobian",
    "jacobian_spectrum",
    "leaders",
    "lyapunov_exponent",
    "neural_collapse",
    "order_parameter",
    "overlap_histogram",
    "overlaps",
    "pairs_clustered",
    "rank",
    "saddle_index",
    "span_dimension",
    "staircase",
    "wasserstein",
]
