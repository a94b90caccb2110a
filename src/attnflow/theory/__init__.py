"""What the numbers should be: closed forms, constants, and the classification of weights."""

from attnflow.theory.gamma import gamma, gap, transition_time
from attnflow.theory.gegenbauer import dirac_energy, gegenbauer_coefficients, uniform_energy
from attnflow.theory.wendel import in_hemisphere, wendel

__all__ = [
    "dirac_energy",
    "gamma",
    "gap",
    "gegenbauer_coefficients",
    "in_hemisphere",
    "transition_time",
    "uniform_energy",
    "wendel",
]
