"""From scores to weighted means: `attend`, the kinds of weights, masks, and the backends."""

from attnflow.attention.attend import attend, attention_weights
from attnflow.attention.backends import BACKENDS, Backend, Blocked, Dense
from attnflow.attention.kinds import Kind, Softmax, Unnormalised
from attnflow.attention.masks import Causal, Given, Mask, as_mask

__all__ = [
    "BACKENDS",
    "Backend",
    "Blocked",
    "Causal",
    "Dense",
    "Given",
    "Kind",
    "Mask",
    "Softmax",
    "Unnormalised",
    "as_mask",
    "attend",
    "attention_weights",
]
