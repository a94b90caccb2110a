"""One module for each architecture: it turns tensors and config into one of our systems."""

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
"""The architectures by the `model_type` in their configs."""

__all__ = ["ARCHITECTURES", "Architecture", "Parts"]
