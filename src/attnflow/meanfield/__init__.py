"""The limit of many tokens: the flow of their density, solved and not sampled."""

from attnflow.meanfield import bbgky
from attnflow.meanfield.circle import CircleDensity
from attnflow.meanfield.convergence import MeanFieldRun, draw, mean_field_run
from attnflow.meanfield.densities import density, histogram, single_mode, von_mises
from attnflow.meanfield.dobrushin import dobrushin_constant, lipschitz_constants
from attnflow.meanfield.emergence import FirstClusters, first_clusters
from attnflow.meanfield.modes import CircleModes, modes
from attnflow.meanfield.volumes import continuity_rate, limited_slopes, positive_step
from attnflow.meanfield.zonal import ZonalModes, zonal_modes

__all__ = [
    "CircleDensity",
    "CircleModes",
    "FirstClusters",
    "MeanFieldRun",
    "ZonalModes",
    "bbgky",
    "continuity_rate",
    "density",
    "dobrushin_constant",
    "draw",
    "first_clusters",
    "histogram",
    "limited_slopes",
    "lipschitz_constants",
    "mean_field_run",
    "modes",
    "positive_step",
    "single_mode",
    "von_mises",
    "zonal_modes",
]
