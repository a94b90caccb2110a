"""What the numbers should be: closed forms, limit geometries, the theorems, and open questions."""

from attnflow.theory import checks, search
from attnflow.theory.checks import CHECKS, check
from attnflow.theory.configurations import (
    Configuration,
    log_pair_sum,
    optimal_configuration,
)
from attnflow.theory.constants import (
    concentration_bound,
    concentration_probability,
    large_beta,
    lipschitz,
    log_lipschitz,
    tau_star,
)
from attnflow.theory.gamma import gamma, gap, transition_time
from attnflow.theory.gegenbauer import dirac_energy, gegenbauer_coefficients, uniform_energy
from attnflow.theory.geometry import LimitGeometry, limit_geometry
from attnflow.theory.growth import fastest_mode, linear_growth
from attnflow.theory.limits import MeasuredGeometry, measured_geometry
from attnflow.theory.master import MasterEquation
from attnflow.theory.sharp import Sharp, known_sharp, recognised, sharp
from attnflow.theory.wendel import in_hemisphere, wendel

__all__ = [
    "CHECKS",
    "Configuration",
    "LimitGeometry",
    "MasterEquation",
    "MeasuredGeometry",
    "Sharp",
    "check",
    "checks",
    "concentration_bound",
    "concentration_probability",
    "dirac_energy",
    "fastest_mode",
    "gamma",
    "gap",
    "gegenbauer_coefficients",
    "in_hemisphere",
    "known_sharp",
    "large_beta",
    "limit_geometry",
    "linear_growth",
    "lipschitz",
    "log_lipschitz",
    "log_pair_sum",
    "measured_geometry",
    "optimal_configuration",
    "recognised",
    "search",
    "sharp",
    "tau_star",
    "transition_time",
    "uniform_energy",
    "wendel",
]
