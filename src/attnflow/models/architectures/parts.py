"""What every architecture gives, and how its tensors become weights of heads and layers."""

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
    """A model without its text: start, layers, and the normalisation after the last one.

    `layers` is how many the model was trained with; `shared` says that all have the same weights.
    """

    embedding: Embedding
    system: PostNormTransformer | PreNormTransformer
    layers: int
    final_norm: Norm | None = None
    shared: bool = False


class Architecture(NamedTuple):
    """How models of one type are read: what their tensors' names begin with, and all the rest."""

    prefix: str
    build: Callable[[Config, Tensors], Parts]


class LayerReader:
    """Tensors of the same name in all layers, on a leading axis of layers."""

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
        """Gain and shift of the two normalisations of every layer, (layers, 2, d)."""
        gains, shifts = (
            np.stack([self.read(f"{name}.{what}", d) for name in names], axis=1)
            for what in ("weight", "bias")
        )
        return {"gain": gains, "shift": shifts}


def by_rows(W: np.ndarray, H: int) -> np.ndarray:
    """Heads that are side by side in the rows: (L, H k, …) to (L, H, k, …).

    >>> by_rows(np.zeros((1, 6, 5)), 2).shape
    (1, 2, 3, 5)
    """
    return W.reshape(len(W), H, -1, *W.shape[2:])


def by_columns(W: np.ndarray, H: int) -> np.ndarray:
    """Heads that are side by side in the columns: (L, d, H k) to (L, H, d, k).

    >>> by_columns(np.zeros((1, 5, 6)), 2).shape
    (1, 2, 5, 3)
    """
    return W.reshape(*W.shape[:2], H, -1).swapaxes(1, 2)


def made(kind: type[Blocks], beta: float, **given: Any) -> Blocks:
    """`kind(beta, …)`, whose inherited __init__ a type checker does not see."""
    constructor: Any = kind
    return constructor(beta, **given)


def scheduled(
    weights: dict[str, np.ndarray], schedule: Callable[[np.ndarray], Any]
) -> dict[str, Any]:
    """Weights with a leading axis of layers as functions of time, or as what they all share."""
    return {name: schedule(W) for name, W in weights.items()}
