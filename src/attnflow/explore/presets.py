"""What the page puts in for each system: its number, a start, a horizon, what else it needs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from attnflow.systems import SYSTEMS, Map

Extra = Callable[[int], dict[str, Any]]


def _nothing(d: int) -> dict[str, Any]:
    return {}


def _diagonal(d: int) -> dict[str, Any]:
    """D from 1.2 to 0.8."""
    return {"D": [1.2 - 0.4 * k / max(1, d - 1) for k in range(d)]}


def _feed_forward(d: int) -> dict[str, Any]:
    return {
        "w": {"family": "ginibre", "rows": d, "d": 4 * d, "scale": 0.3 / (2 * d)},
        "a": {"family": "ginibre", "rows": 4 * d},
        "b": {"family": "bias", "d": 4 * d, "scale": 0.5},
    }


class Preset(NamedTuple):
    """A row of the table below: the number that one turns (β, K, a radius), and a run to see.

    `of_rows` is the d of a state whose rows are not tokens in R^d alone: angles, or places with
    velocities.
    """

    number: str | None
    value: float
    start: str
    until: float
    d: int = 2
    side: float = 10.0
    extra: Extra = _nothing
    of_rows: int | None = None
    method: str = "adaptive"
    n: int = 200


PRESETS: dict[str, Preset] = {
    "SA": Preset("beta", 4.0, "sphere", 12.0, 3),
    "USA": Preset("beta", 2.0, "sphere", 6.0, 3),
    "PureAttention": Preset("beta", 1.0, "cube", 3.0, side=2.0),
    "RescaledAttention": Preset("beta", 1.0, "cube", 10.0, 3),
    "EllipsoidAttention": Preset("beta", 4.0, "ellipsoid", 12.0, 3, extra=_diagonal),
    "PostNorm": Preset("beta", 2.0, "sphere", 48.0, 3, extra=_diagonal),
    "PreNorm": Preset("beta", 2.0, "sphere", 24.0, 3, extra=_diagonal),
    "Transformer": Preset("beta", 4.0, "sphere", 12.0, 3, extra=_feed_forward),
    "PostNormTransformer": Preset("beta", 0.5, "gaussian", 24.0, 8, extra=_feed_forward),
    "PreNormTransformer": Preset("beta", 0.5, "gaussian", 24.0, 8, extra=_feed_forward),
    "ResNet": Preset(None, 0.0, "cube", 6.0, side=4.0, extra=_feed_forward),
    "SinkhornSA": Preset("beta", 4.0, "sphere", 12.0, 3),
    "SinkhornPure": Preset("beta", 1.0, "cube", 2.0, side=2.0),
    "ConsensusAttention": Preset("beta", 1.0, "cube", 10.0, side=4.0),
    "Hardmax": Preset(None, 0.0, "cube", 12.0, side=2.0),
    "AngularSA": Preset("beta", 4.0, "angles", 12.0, of_rows=1),
    "AngularUSA": Preset("beta", 2.0, "angles", 6.0, of_rows=1),
    "Kuramoto": Preset(
        "K",
        2.0,
        "angles",
        20.0,
        of_rows=1,
        extra=lambda d: {"omega": {"family": "lorentzian", "width": 0.5}},
    ),
    "CircleCoupling": Preset(
        "K",
        1.0,
        "angles",
        8.0,
        of_rows=1,
        extra=lambda d: {"h": {"family": "harmonics", "sin": [0.0, 0.0, 1.0]}},
    ),
    "Aggregation": Preset(None, 0.0, "cube", 0.8, side=2.0, method="coarsening", n=40),
    "Krause": Preset("radius", 1.0, "cube", 100.0, side=10.0),
    "HegselmannKrause": Preset("radius", 1.0, "cube", 20.0, side=6.0),
    "MeanShift": Preset("bandwidth", 1.0, "cube", 40.0),
    "CuckerSmale": Preset("K", 2.0, "gaussian", 8.0, of_rows=4),
    "Vicsek": Preset(
        "eta", 0.3, "cube", 100.0, side=5.0, of_rows=3, extra=lambda d: {"speed": 0.1, "box": 5.0}
    ),
    "CBO": Preset(
        "alpha", 50.0, "cube", 10.0, side=6.0, extra=lambda d: {"objective": "rastrigin"}
    ),
}
"""Every system but `Noisy`, which is any of these with noise."""


NAMES = {
    "beta": "β",
    "radius": "Radius",
    "bandwidth": "Bandwidth",
    "eta": "Noise η",
    "alpha": "α",
}


def label_of(name: str) -> str:
    """What the number of a system is called; nothing where it has none.

    >>> label_of("SA"), label_of("Kuramoto"), label_of("Hardmax")
    ('β', 'K', '')
    """
    number = PRESETS[name].number
    return "" if number is None else NAMES.get(number, number)


def takes_matrices(name: str) -> bool:
    """Whether a system has Q, K and V to choose.

    >>> takes_matrices("SA"), takes_matrices("Kuramoto")
    (True, False)
    """
    return {"Q", "K", "V"} <= set(inspect.signature(SYSTEMS[name]).parameters)


def is_map(name: str) -> bool:
    """Whether a system has layers alone, so that its times are whole numbers."""
    return issubclass(SYSTEMS[name], Map)
