"""The dynamics of the papers, one class each, and the table that names them."""

from attnflow.systems.angular import AngularSA, AngularUSA
from attnflow.systems.base import Map, System
from attnflow.systems.coupling import CircleCoupling
from attnflow.systems.ellipsoid import EllipsoidAttention
from attnflow.systems.kuramoto import Kuramoto
from attnflow.systems.normalised import PostNorm, PreNorm
from attnflow.systems.pure import PureAttention
from attnflow.systems.rescaled import RescaledAttention
from attnflow.systems.sa import SA
from attnflow.systems.usa import USA

SYSTEMS: dict[str, type[System]] = {
    system.__name__: system
    for system in (
        SA,
        USA,
        PureAttention,
        RescaledAttention,
        EllipsoidAttention,
        PostNorm,
        PreNorm,
        AngularSA,
        AngularUSA,
        Kuramoto,
        CircleCoupling,
    )
}
"""Every system by name, as specs call it."""

__all__ = [
    "SA",
    "SYSTEMS",
    "USA",
    "AngularSA",
    "AngularUSA",
    "CircleCoupling",
    "EllipsoidAttention",
    "Kuramoto",
    "Map",
    "PostNorm",
    "PreNorm",
    "PureAttention",
    "RescaledAttention",
    "System",
]
