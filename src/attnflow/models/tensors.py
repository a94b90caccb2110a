"""`Tensors`: the weights in a folder's safetensors files, read one at a time and checked.

A safetensors file is a table of shapes followed by numbers. It cannot contain code.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from attnflow.checks import require_memory
from attnflow.errors import ModelError
from attnflow.extras import import_optional
from attnflow.models.config import read_json

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
FLOATS = ("F64", "F32", "F16", "BF16")

OTHER_FORMATS = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.h5", "*.msgpack")
"""Weight files that are never opened: a pickle runs whatever code its author put there."""


class Tensors:
    """The tensors of a folder by name, without the prefix that task-specific models add.

    Args:
        folder: the folder with the safetensors files.
        prefix: removed from the start of names, such as `"bert."`.
        dtype: the precision in which tensors are returned.
    """

    def __init__(self, folder: Path, prefix: str, dtype: np.dtype):
        self.folder = folder
        self.dtype = dtype
        self._open: dict[str, Any] = {}
        self._where: dict[str, tuple[str, str]] = {}
        for file, names in _listed(folder, self._file):
            for name in names:
                self._place(_plain(name, prefix), file, name)
        self._check_memory()

    def __contains__(self, name: str) -> bool:
        return name in self._where

    def read(self, name: str, *shape: int) -> np.ndarray:
        """A tensor. Raises if its shape is not the given one or an entry is not finite."""
        file, stored = self._find(name)
        entry = self._file(file).get_slice(stored)
        found = tuple(entry.get_shape())
        if found != shape:
            raise ModelError(
                f"{self.folder / file}: {stored} has shape {found}, but config.json asks for "
                f"{shape}."
            )
        if entry.get_dtype() not in FLOATS:
            raise ModelError(
                f"{self.folder / file}: {stored} holds {entry.get_dtype()}, but weights must be "
                f"one of {', '.join(FLOATS)}."
            )
        array = self._file(file).get_tensor(stored).astype(self.dtype)
        bad = int(np.sum(~np.isfinite(array)))
        if bad:
            raise ModelError(
                f"{self.folder / file}: {stored} has {bad} NaN or infinite entries "
                f"(as {self.dtype})."
            )
        return array

    def stack(self, names: Iterable[str], *shape: int) -> np.ndarray:
        """Tensors of the same shape, stacked on a new first axis."""
        return np.stack([self.read(name, *shape) for name in names])

    def _place(self, plain: str, file: str, stored: str) -> None:
        """Note where a tensor is. Two tensors with the same name are an error."""
        if plain in self._where:
            raise ModelError(
                f"{self.folder} holds {plain} twice, as {self._where[plain][1]} and as {stored}: "
                "keep one of them."
            )
        self._where[plain] = file, stored

    def _find(self, name: str) -> tuple[str, str]:
        if name not in self._where:
            raise ModelError(f"{self.folder}: the weights lack the tensor {name}.")
        return self._where[name]

    def _file(self, file: str) -> Any:
        """An open file, of which only the table of shapes has been read."""
        if file not in self._open:
            safetensors = import_optional(
                "safetensors", "models", "a trained model needs safetensors"
            )
            try:
                self._open[file] = safetensors.safe_open(self.folder / file, framework="numpy")
            except (safetensors.SafetensorError, OSError, ValueError) as error:
                raise ModelError(
                    f"{self.folder / file} is not a complete safetensors file: {error}."
                ) from None
        return self._open[file]

    def _check_memory(self) -> None:
        shapes = (self._file(file).get_slice(name) for file, name in self._where.values())
        entries = sum(math.prod(entry.get_shape()) for entry in shapes)
        size = f"{entries * self.dtype.itemsize / 2**30:.1f} GiB of weights"
        double = self.dtype == np.float64
        remedy = 'dtype="float32" needs half of it' if double else "take a smaller model"
        require_memory(2 * entries * self.dtype.itemsize, f"{self.folder}, {size},", remedy)


def _plain(name: str, prefix: str) -> str:
    """A name without its prefix, with today's names for the parameters of a norm."""
    name = name.removeprefix(prefix)
    for old, new in (("LayerNorm.gamma", "LayerNorm.weight"), ("LayerNorm.beta", "LayerNorm.bias")):
        name = name.removesuffix(old) + new if name.endswith(old) else name
    return name


def _listed(folder: Path, opened: Any) -> list[tuple[str, list[str]]]:
    """The weight files of a folder, each with the names of its tensors."""
    if (folder / SINGLE).is_file():
        return [(SINGLE, list(opened(SINGLE).keys()))]
    if (folder / INDEX).is_file():
        return _sharded(folder, opened)
    others = sorted(path.name for pattern in OTHER_FORMATS for path in folder.glob(pattern))
    what = f"only {', '.join(others)}, which is not read" if others else "no weights"
    raise ModelError(
        f"{folder} has no {SINGLE}; it has {what}. A pickle can run any code, so weights are only "
        "read from safetensors. If you trust the files, and PyTorch and transformers are "
        "installed, transformers.AutoModel.from_pretrained(OLD).save_pretrained(NEW) converts "
        "them."
    )


def _sharded(folder: Path, opened: Any) -> list[tuple[str, list[str]]]:
    """The shards of an index: files next to it that hold the tensors it lists."""
    index = folder / INDEX
    placed = read_json(index).get("weight_map")
    if not isinstance(placed, dict) or not all(isinstance(f, str) for f in placed.values()):
        raise ModelError(f"{index}: weight_map must name a file for each tensor.")
    shards: dict[str, list[str]] = {}
    for name, file in placed.items():
        shards.setdefault(file, []).append(name)
    for file, names in shards.items():
        if Path(file).name != file or "\\" in file or not file.endswith(".safetensors"):
            raise ModelError(
                f"{index}: {file!r} is not a safetensors file next to the index, so it is not "
                "opened."
            )
        if not (folder / file).is_file():
            raise ModelError(f"{index} names the shard {file}, which is missing.")
        absent = sorted(set(names) - set(opened(file).keys()))
        if absent:
            raise ModelError(f"{folder / file} lacks {absent[0]}, which {INDEX} says it holds.")
    return list(shards.items())
