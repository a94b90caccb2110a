"""The matrices Q, K, V: `Heads`, named families of random ones, schedules in time.

For oscillators on the circle: `frequencies`, `graphs` and `couplings`.
"""

from attnflow.weights import couplings, frequencies, graphs
from attnflow.weights.families import (
    FAMILIES,
    ginibre,
    goe,
    identity,
    paranormal,
    perron,
    spectrum,
    wigner,
    wishart,
)
from attnflow.weights.heads import Heads, Weight, apply
from attnflow.weights.schedules import Redrawn
from attnflow.weights.spectra import invariant_subspace

__all__ = [
    "FAMILIES",
    "Heads",
    "Redrawn",
    "Weight",
    "apply",
    "couplings",
    "frequencies",
    "ginibre",
    "goe",
    "graphs",
    "identity",
    "invariant_subspace",
    "paranormal",
    "perron",
    "spectrum",
    "wigner",
    "wishart",
]
