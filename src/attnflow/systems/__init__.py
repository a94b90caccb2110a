"""The dynamics of the papers, one class each, and the table that names them."""

from attnflow.systems.base import Diffusive, Map, Random, System
from attnflow.systems.cbo import CBO
from attnflow.systems.cucker_smale import CuckerSmale
from attnflow.systems.ellipsoid import EllipsoidAttention
from attnflow.systems.noisy import Noisy
from attnflow.systems.normalised import PostNorm, PreNorm
from attnflow.systems.pure import PureAttention
from attnflow.systems.rescaled import RescaledAttention
from attnflow.systems.sa import SA
from attnflow.systems.usa import USA
from attnflow.systems.vicsek import Vicsek

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
        Noisy,
        CBO,
        CuckerSmale,
        Vicsek,
    )
}
"""Every system by name, as specs call it."""

__all__ = [
    "CBO",
    "SA",
    "SYSTEMS",
    "USA",
    "CuckerSmale",
    "Diffusive",
    "EllipsoidAttention",
    "Map",
    "Noisy",
    "PostNorm",
    "PreNorm",
    "PureAttention",
    "Random",
    "RescaledAttention",
    "System",
    "Vicsek",
]
