"""`load`: a trained model from the hub, its cache or a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np

from attnflow.errors import InputError, ModelError, unknown
from attnflow.models.architectures import ARCHITECTURES
from attnflow.models.config import Config
from attnflow.models.encoding import read_tokenizer
from attnflow.models.folder import locate
from attnflow.models.model import Model
from attnflow.models.tensors import Tensors

DTYPES = ("float32", "float64")


def load(name: str | Path, *, dtype: Any = "float32", revision: str | None = None) -> Model:
    """A trained Transformer, by its name on the hub or from a folder with the hub's files.

    A folder has `config.json`, `model.safetensors` (or shards with `model.safetensors.index.json`)
    and `tokenizer.json`. From the hub these are fetched once, by huggingface_hub, and kept in its
    cache; `revision` is a branch, tag or commit. Nothing that is read can hold code: no pickle is
    opened, and PyTorch is not needed. `dtype` is float32, as models are trained, or float64.

    >>> load("no/such/folder/here")
    Traceback (most recent call last):
    attnflow.errors.InputError: no/such/folder/here is neither a folder here nor a name such as \
'albert-xlarge-v2'.
    """
    kind = _as_dtype(dtype)
    folder = locate(name, revision)
    config = Config.read(folder / "config.json")
    model_type = config.word("model_type")
    if model_type not in ARCHITECTURES:
        error = unknown("model_type", model_type, ARCHITECTURES)
        raise ModelError.of(error, str(config.path))
    prefix, build = ARCHITECTURES[model_type]
    tensors = Tensors(folder, prefix, kind)
    try:
        parts = build(config, tensors)
    except ModelError:
        raise
    except InputError as error:
        raise ModelError.of(error, str(folder)) from None
    return Model(str(name), config.fields, read_tokenizer(folder), **parts._asdict())


def _as_dtype(dtype: Any) -> np.dtype:
    try:
        kind = np.dtype(dtype)
    except TypeError:
        kind = None
    if kind is None or kind.name not in DTYPES:
        raise InputError(f"dtype must be 'float32' or 'float64', not {dtype!r}.")
    if jax.dtypes.canonicalize_dtype(kind) != kind:
        raise InputError("dtype float64 is turned off by JAX_ENABLE_X64=0.")
    return kind
