"""The dynamics of the papers, one class each, and the table that names them."""

from attnflow.systems.aggregation import Aggregation
from attnflow.systems.angular import AngularSA, AngularUSA
from attnflow.systems.base import Cost, Diffusive, Map, Random, System
from attnflow.systems.cbo import CBO
from attnflow.systems.consensus import ConsensusAttention
from attnflow.systems.coupling import CircleCoupling
from attnflow.systems.cucker_smale import CuckerSmale
from attnflow.systems.ellipsoid import EllipsoidAttention
from attnflow.systems.hardmax import Hardmax
from attnflow.systems.hegselmann_krause import HegselmannKrause
from attnflow.systems.krause import Krause
from attnflow.systems.kuramoto import Kuramoto
from attnflow.systems.mean_shift import MeanShift
from attnflow.systems.noisy import Noisy
from attnflow.systems.normalised import PostNorm, PreNorm
from attnflow.systems.normed_transformer import PostNormTransformer, PreNormTransformer
from attnflow.systems.pure import PureAttention
from attnflow.systems.rescaled import RescaledAttention
from attnflow.systems.resnet import ResNet
from attnflow.systems.sa import SA
from attnflow.systems.sinkhorn import SinkhornPure, SinkhornSA
from attnflow.systems.transformer import Transformer
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
        Transformer,
        PostNormTransformer,
        PreNormTransformer,
        ResNet,
        SinkhornSA,
        SinkhornPure,
        ConsensusAttention,
        Hardmax,
        Noisy,
        AngularSA,
        AngularUSA,
        Kuramoto,
        CircleCoupling,
        Aggregation,
        Krause,
        HegselmannKrause,
        MeanShift,
        CuckerSmale,
        Vicsek,
        CBO,
    )
}
"""Every system by name, as specs call it."""

__all__ = [
    "CBO",
    "SA",
    "SYSTEMS",
    "USA",
    "Aggregation",
    "AngularSA",
    "AngularUSA",
    "CircleCoupling",
    "ConsensusAttention",
    "Cost",
    "CuckerSmale",
    "Diffusive",
    "EllipsoidAttention",
    "Hardmax",
    "HegselmannKrause",
    "Krause",
    "Kuramoto",
    "Map",
    "MeanShift",
    "Noisy",
    "PostNorm",
    "PostNormTransformer",
    "PreNorm",
    "PreNormTransformer",
    "PureAttention",
    "Random",
    "ResNet",
    "RescaledAttention",
    "SinkhornPure",
    "SinkhornSA",
    "System",
    "Transformer",
    "Vicsek",
]
