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
    """Load a trained Transformer from the hub or from a folder with the hub's files.

    A folder has `config.json`, `model.safetensors` (or shards with `model.safetensors.index.json`)
    and `tokenizer.json`. From the hub, huggingface_hub downloads these once and caches them. None
    of these files can contain code: no pickle is opened, and PyTorch is not needed.

    Args:
        name: a name on the hub such as `"albert-xlarge-v2"`, or the path of a folder.
        dtype: the precision of the weights: `"float32"`, in which models are trained, or
            `"float64"`.
        revision: a branch, tag or commit on the hub. The latest version by default.

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
