"""BBGKY: the two-point function of many tokens, sampled, and its equation (8.1) with closures."""

from attnflow.meanfield.bbgky.closures import (
    CLOSURES,
    Closure,
    Companions,
    Gaussian,
    Kirkwood,
    MaximumEntropy,
    MolecularChaos,
    ThirdToken,
)
from attnflow.meanfield.bbgky.compare import Comparison, compare
from attnflow.meanfield.bbgky.ensemble import TwoPoint, two_point
from attnflow.meanfield.bbgky.flow import Measured, PairFlow, solve_pairs

__all__ = [
    "CLOSURES",
    "Closure",
    "Companions",
    "Comparison",
    "Gaussian",
    "Kirkwood",
    "MaximumEntropy",
    "Measured",
    "MolecularChaos",
    "PairFlow",
    "ThirdToken",
    "TwoPoint",
    "compare",
    "solve_pairs",
    "two_point",
]
