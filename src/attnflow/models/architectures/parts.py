"""What every architecture provides, and how tensors become weights of heads and layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from attnflow.models.config import Config
from attnflow.models.embedding import Embedding
from attnflow.models.tensors import Tensors
from attnflow.models.variants import Blocks
from attnflow.systems import PostNormTransformer, PreNormTransformer
from attnflow.weights.norms import Norm


class Parts(NamedTuple):
    """A model without its tokenizer.

    Attributes:
        embedding: where tokens start.
        system: the layers.
        layers: number of layers that the model was trained with.
        final_norm: applied once after the last layer; None for none.
        shared: whether all layers have the same weights.
    """

    embedding: Embedding
    system: PostNormTransformer | PreNormTransformer
    layers: int
    final_norm: Norm | None = None
    shared: bool = False


class Architecture(NamedTuple):
    """How models of one type are read.

    Attributes:
        prefix: what the names of tensors may start with, such as `"bert."`.
        build: turns config and tensors into `Parts`.
    """

    prefix: str
    build: Callable[[Config, Tensors], Parts]


class LayerReader:
    """Reads a tensor of all layers, with the layers on the first axis.

    Args:
        tensors: the weights of a model.
        pattern: the start of a layer's names, with `{}` for its number.
        layers: number of layers.
    """

    def __init__(self, tensors: Tensors, pattern: str, layers: int):
        self.tensors = tensors
        self.pattern = pattern
        self.layers = layers

    def read(self, name: str, *shape: int) -> np.ndarray:
        """The tensor `name` of every layer."""
        names = (self.pattern.format(layer) + name for layer in range(self.layers))
        return self.tensors.stack(names, *shape)

    def linear(self, name: str, rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
        """The matrix and the bias of a linear map in every layer."""
        return self.read(f"{name}.weight", rows, columns), self.read(f"{name}.bias", rows)

    def norms(self, names: tuple[str, str], d: int) -> dict[str, np.ndarray]:
        """Gain and shift of the two norms of every layer, shape (layers, 2, d)."""
        gains, shifts = (
            np.stack([self.read(f"{name}.{what}", d) for name in names], axis=1)
            for what in ("weight", "bias")
        )
        return {"gain": gains, "shift": shifts}


def by_rows(W: np.ndarray, H: int) -> np.ndarray:
    """Split rows into heads: (L, H k, …) to (L, H, k, …).

    >>> by_rows(np.zeros((1, 6, 5)), 2).shape
    (1, 2, 3, 5)
    """
    return W.reshape(len(W), H, -1, *W.shape[2:])


def by_columns(W: np.ndarray, H: int) -> np.ndarray:
    """Split columns into heads: (L, d, H k) to (L, H, d, k).

    >>> by_columns(np.zeros((1, 5, 6)), 2).shape
    (1, 2, 5, 3)
    """
    return W.reshape(*W.shape[:2], H, -1).swapaxes(1, 2)


def made(kind: type[Blocks], beta: float, **given: Any) -> Blocks:
    """`kind(beta, …)`; type checkers do not see its inherited __init__."""
    constructor: Any = kind
    return constructor(beta, **given)


def scheduled(
    weights: dict[str, np.ndarray], schedule: Callable[[np.ndarray], Any]
) -> dict[str, Any]:
    """Apply a schedule to each weight, whose first axis is that of layers."""
    return {name: schedule(W) for name, W in weights.items()}
