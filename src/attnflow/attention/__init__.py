"""From scores to weighted means: `attend`, the kinds of weights, masks, and the backends."""

from typing import TYPE_CHECKING

from attnflow.attention.attend import attend, attention_weights
from attnflow.attention.backends import BACKENDS
from attnflow.attention.blocked import Blocked
from attnflow.attention.dense import Dense
from attnflow.attention.kinds import Kind, Rowwise, Softmax, Unnormalised
from attnflow.attention.masks import Causal, ExplicitMask, Mask, Window, as_mask
from attnflow.attention.sinkhorn import Sinkhorn
from attnflow.attention.spectral import Spectral
from attnflow.attention.task import Backend, Task
from attnflow.retired import renamed_names

__all__ = [
    "BACKENDS",
    "Backend",
    "Blocked",
    "Causal",
    "Dense",
    "ExplicitMask",
    "Kind",
    "Mask",
    "Rowwise",
    "Sinkhorn",
    "Softmax",
    "Spectral",
    "Task",
    "Unnormalised",
    "Window",
    "as_mask",
    "attend",
    "attention_weights",
]

if not TYPE_CHECKING:  # a type checker would take every name for a known one
    __getattr__ = renamed_names(__name__, {"Given": "ExplicitMask"})
