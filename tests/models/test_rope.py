"""Where a config says the same thing in two places, the one that `transformers` takes counts."""

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest

import attnflow as af
from attnflow.models.architectures.rope import frequencies
from attnflow.models.config import Config
from checkpoints import HERE, ROPE, TEXTS, hidden_states

LINEAR = {"rope_type": "linear", "factor": 3.0}
WITHOUT = {name: value for name, value in ROPE.items() if not name.startswith("original")}
LENGTH = "original_max_position_embeddings"
MOST = "max_position_embeddings"

PLACES = {
    "rope_scaling is before rope_parameters": (
        {"rope_parameters": ROPE, "rope_scaling": LINEAR, "rope_theta": 77.0},
        {"theta": 77.0, "factor": 3.0},
    ),
    "and nothing is taken from the other table": (
        {"rope_parameters": ROPE, "rope_scaling": LINEAR},
        {"theta": 1e4, "factor": 3.0},
    ),
    "an empty table says nothing": (
        {"rope_parameters": ROPE, "rope_scaling": {}},
        {"theta": 50.0, "factor": 4.0, "length": 32},
    ),
    "the length of the config is before that of the table": (
        {"rope_parameters": ROPE, LENGTH: 8},
        {"theta": 50.0, "factor": 4.0, "length": 8},
    ),
    "and stands in for it": (
        {"rope_parameters": WITHOUT, LENGTH: 8},
        {"theta": 50.0, "factor": 4.0, "length": 8},
    ),
    "without either it is that of all texts": (
        {"rope_scaling": WITHOUT},
        {"theta": 50.0, "factor": 4.0, "length": 64},
    ),
}
"""Fields of a config, and what they mean by the rules of `transformers` 5."""


def slowed(theta, factor, length=None, low=1.0, high=4.0, k=6):
    """The frequencies one by one, by the wavelengths of [Llama 3]."""
    found = []
    for i in range(k // 2):
        omega = theta ** (-2 * i / k)
        wave = 2 * math.pi / omega
        if length is None or wave > length / low:
            omega /= factor
        elif wave > length / high:
            share = (length / wave - low) / (high - low)
            omega = (1 - share) * omega / factor + share * omega
        found.append(omega)
    return found


@pytest.mark.parametrize(("fields", "meant"), PLACES.values(), ids=PLACES)
def test_frequencies_are_from_the_place_that_counts(fields, meant):
    config = Config(Path("config.json"), {MOST: 64} | fields)
    assert np.allclose(frequencies(config, 6), slowed(**meant), rtol=1e-14)


def changed(folder, **fields):
    """The small Llama 3 with these fields and no others about rotary places."""
    shutil.copytree(HERE / "llama3", folder)
    table = json.loads((folder / "config.json").read_text())
    kept = {name: value for name, value in table.items() if "rope" not in name}
    (folder / "config.json").write_text(json.dumps(kept | fields))
    return folder


@pytest.mark.parametrize(
    "fields", [PLACES[name][0] for name in list(PLACES)[::3]], ids=list(PLACES)[::3]
)
def test_states_are_those_of_transformers(fields, tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    folder = changed(tmp_path / "model", **fields)
    model = af.models.load(folder, dtype="float64")
    encoded = model.encode(TEXTS)
    theirs = hidden_states(folder, encoded)
    ours = np.asarray(model.states(encoded))[:, :-1]
    gaps = np.abs(ours - theirs[:, :-1]).swapaxes(1, 2)[encoded.mask]
    assert gaps.max() < 1e-12


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"rope_parameters": {"full_attention": LINEAR}}, "has a table for full_attention"),
        ({"rope_parameters": WITHOUT, MOST: None}, f"lacks the field '{MOST}'"),
        ({"rope_parameters": ROPE, LENGTH: "8"}, f"{LENGTH} must be a whole number"),
    ],
)
def test_what_would_be_guessed_is_refused(fields, said, tmp_path):
    with pytest.raises(af.ModelError, match=said):
        af.models.load(changed(tmp_path / "model", **fields))


def test_two_names_of_one_field_must_agree(tmp_path):
    """Of n_layer = 3 and num_hidden_layers = 2 `transformers` takes the latter."""
    folder = shutil.copytree(HERE / "gpt2", tmp_path / "model")
    table = json.loads((folder / "config.json").read_text())
    for layers in (3, 2):
        (folder / "config.json").write_text(json.dumps(table | {"num_hidden_layers": layers}))
        if layers == table["n_layer"]:
            assert af.models.load(folder).layers == 3
        else:
            with pytest.raises(af.ModelError, match="n_layer is 3 and num_hidden_layers is 2"):
                af.models.load(folder)
