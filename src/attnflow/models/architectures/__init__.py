"""One module for each architecture: how its tensors and config become a system of this library."""

from attnflow.models.architectures.albert import ALBERT
from attnflow.models.architectures.bert import BERT
from attnflow.models.architectures.distilbert import DISTILBERT
from attnflow.models.architectures.gpt2 import GPT2
from attnflow.models.architectures.llama import LLAMA
from attnflow.models.architectures.mistral import MISTRAL
from attnflow.models.architectures.parts import Architecture, Parts
from attnflow.models.architectures.roberta import ROBERTA

ARCHITECTURES: dict[str, Architecture] = {
    "albert": ALBERT,
    "bert": BERT,
    "distilbert": DISTILBERT,
    "gpt2": GPT2,
    "llama": LLAMA,
    "mistral": MISTRAL,
    "roberta": ROBERTA,
}
"""The architectures by the `model_type` of their configs."""

__all__ = ["ARCHITECTURES", "Architecture", "Parts"]
