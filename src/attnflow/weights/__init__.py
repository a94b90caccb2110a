"""The matrices of heads and feed-forward layers, families of random ones, schedules in time.

For oscillators on the circle: `frequencies`, `graphs` and `couplings`.
"""

from attnflow.weights import couplings, frequencies, graphs
from attnflow.weights.affine import AffineHeads
from attnflow.weights.breaks import Breaks
from attnflow.weights.families import (
    FAMILIES,
    bias,
    ginibre,
    goe,
    identity,
    paranormal,
    perron,
    spectrum,
    wigner,
    wishart,
)
from attnflow.weights.feedforward import ACTIVATIONS, FeedForward
from attnflow.weights.heads import AbstractHeads, Heads, Weight, apply
from attnflow.weights.norms import LayerNorm, RMSNorm
from attnflow.weights.rotary import Rotary, rotary_frequencies
from attnflow.weights.schedules import Grouped, PerLayer, Redrawn, Scheduled
from attnflow.weights.spectra import invariant_subspace

__all__ = [
    "ACTIVATIONS",
    "FAMILIES",
    "AbstractHeads",
    "AffineHeads",
    "Breaks",
    "FeedForward",
    "Grouped",
    "Heads",
    "LayerNorm",
    "PerLayer",
    "RMSNorm",
    "Redrawn",
    "Rotary",
    "Scheduled",
    "Weight",
    "apply",
    "bias",
    "couplings",
    "frequencies",
    "ginibre",
    "goe",
    "graphs",
    "identity",
    "invariant_subspace",
    "paranormal",
    "perron",
    "rotary_frequencies",
    "spectrum",
    "wigner",
    "wishart",
]
