"""The dynamics of the papers, one class each, and the table that names them."""

from attnflow.systems.aggregation import Aggregation
from attnflow.systems.base import Map, System
from attnflow.systems.ellipsoid import EllipsoidAttention
from attnflow.systems.normalised import PostNorm, PreNorm
from attnflow.systems.normed_transformer import PostNormTransformer, PreNormTransformer
from attnflow.systems.pure import PureAttention
from attnflow.systems.rescaled import RescaledAttention
from attnflow.systems.resnet import ResNet
from attnflow.systems.sa import SA
from attnflow.systems.transformer import Transformer
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
        Transformer,
        PostNormTransformer,
        PreNormTransformer,
        ResNet,
        Aggregation,
    )
}
"""Every system by name, as specs call it."""

__all__ = [
    "SA",
    "SYSTEMS",
    "USA",
    "Aggregation",
    "EllipsoidAttention",
    "Map",
    "PostNorm",
    "PostNormTransformer",
    "PreNorm",
    "PreNormTransformer",
    "PureAttention",
    "ResNet",
    "RescaledAttention",
    "System",
    "Transformer",
]
