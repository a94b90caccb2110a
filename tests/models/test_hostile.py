"""Files that are not what they claim: a sentence that names them, and nothing of them is run."""

import io
import json
import os
import pickle
import shutil
import zipfile

import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import attnflow as af
from attnflow.models.tensors import Tensors
from checkpoints import HERE

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(HERE / "bert", tmp_path / "model")


@pytest.fixture
def shards(tmp_path):
    return shutil.copytree(HERE / "mistral", tmp_path / "model")


class Trap:
    """A pickle that leaves a mark when it is opened."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


def refused(folder, *said):
    with pytest.raises(af.ModelError) as caught:
        af.models.load(folder)
    for words in (str(folder), *said):
        assert words in str(caught.value), str(caught.value)


def tensors(folder, change):
    found = load_file(folder / WEIGHTS)
    change(found)
    save_file(found, folder / WEIGHTS)


def config(folder, **fields):
    path = folder / "config.json"
    table = json.loads(path.read_text()) | fields
    path.write_text(json.dumps({key: value for key, value in table.items() if value != "absent"}))


@pytest.mark.parametrize("name", ["pytorch_model.bin", WEIGHTS])
@pytest.mark.parametrize("zipped", [False, True], ids=["plain", "zipped"])
def test_a_pickle_is_never_opened(name, zipped, folder, tmp_path):
    """Neither under its own name nor under that of a safetensors file."""
    mark = tmp_path / "opened"
    (folder / WEIGHTS).unlink()
    payload = pickle.dumps(Trap(mark))
    if zipped:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("archive/data.pkl", payload)
        payload = buffer.getvalue()
    (folder / name).write_bytes(payload)
    if name == WEIGHTS:
        refused(folder, WEIGHTS, "not a complete safetensors file")
    else:
        refused(folder, "only pytorch_model.bin", "save_pretrained(NEW)")
    assert not mark.exists()
    if not zipped:
        pickle.loads(payload)
        assert mark.exists(), "the trap works"


@pytest.mark.parametrize("kept", [0, 5, 100, -1])
def test_a_cut_file_is_refused(kept, folder):
    data = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(data[:kept])
    refused(folder, WEIGHTS, "not a complete safetensors file")


def test_a_damaged_table_of_shapes_is_refused(folder):
    data = bytearray((folder / WEIGHTS).read_bytes())
    data[8:40] = b"\xff" * 32
    (folder / WEIGHTS).write_bytes(bytes(data))
    refused(folder, WEIGHTS, "not a complete safetensors file")
    data[:8] = (2**62).to_bytes(8, "little")
    (folder / WEIGHTS).write_bytes(bytes(data))
    refused(folder, WEIGHTS, "not a complete safetensors file")


QUERY = "bert.encoder.layer.1.attention.self.query.weight"


def _wrong_shape(found):
    found[QUERY] = np.zeros((16, 15), np.float32)


def _transposed(found):
    found["bert.encoder.layer.0.output.dense.weight"] = np.zeros((24, 16), np.float32)


def _missing(found):
    del found[QUERY]


def _nan(found):
    found[QUERY][3, 2] = np.nan


def _infinite(found):
    found[QUERY] = np.full((16, 16), np.inf, np.float32)


def _integers(found):
    found[QUERY] = np.ones((16, 16), np.int64)


def _twice(found):
    found[QUERY.removeprefix("bert.")] = np.zeros((16, 16), np.float32)


def _old_and_new(found):
    found["bert.embeddings.LayerNorm.gamma"] = np.zeros(16, np.float32)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_wrong_shape, ("has shape (16, 15)", "asks for (16, 16)")),
        (_transposed, ("has shape (24, 16)", "asks for (16, 24)")),
        (_missing, ("lack the tensor", "layer.1.attention.self.query.weight")),
        (_nan, (QUERY, "1 NaN or infinite")),
        (_infinite, (QUERY, "256 NaN or infinite")),
        (_integers, (QUERY, "I64")),
        (_twice, ("twice", f"as {QUERY}", f"as {QUERY.removeprefix('bert.')}")),
        (_old_and_new, ("embeddings.LayerNorm.weight twice", "LayerNorm.gamma")),
    ],
)
def test_tensors_that_do_not_fit_are_refused(change, said, folder):
    tensors(folder, change)
    refused(folder, *said)


@pytest.mark.parametrize(
    "text", ["", "{", "[1, 2]", "\x00\x01", "[" * 100_000, '{"hidden_size": 1' + "0" * 5000 + "}"]
)
def test_a_config_that_is_no_table_is_refused(text, folder):
    (folder / "config.json").write_text(text)
    refused(folder, "config.json")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"model_type": "absent"}, "lacks the field 'model_type'"),
        ({"model_type": "bart"}, "did you mean 'bert'? Known: albert, bert"),
        ({"model_type": 7}, "model_type must be a word"),
        ({"hidden_size": "absent"}, "lacks the field 'hidden_size'"),
        ({"hidden_size": "16"}, "hidden_size must be a whole number"),
        ({"hidden_size": -16}, "hidden_size must be a whole number"),
        ({"hidden_size": True}, "hidden_size must be a whole number"),
        ({"hidden_size": 10**30}, "hidden_size must be a whole number"),
        ({"hidden_size": 16_000_000}, "asks for (16000000"),
        ({"num_attention_heads": 3}, "cannot be split into 3 heads"),
        ({"num_hidden_layers": 10**9}, "encoder.layer.3."),
        ({"num_hidden_layers": 0}, "num_hidden_layers must be"),
        ({"intermediate_size": 10**9}, "asks for (1000000000, 16)"),
        ({"vocab_size": 10**9}, "asks for (1000000000, 16)"),
        ({"layer_norm_eps": -1.0}, "layer_norm_eps must be a finite number above 0"),
        ({"layer_norm_eps": float("nan")}, "layer_norm_eps must be a finite number above 0"),
        ({"hidden_act": "quadratic"}, "hidden_act must be one of gelu"),
        ({"position_embedding_type": "relative_key"}, "only absolute positions are supported"),
        ({"is_decoder": True}, "only encoders"),
    ],
)
def test_a_config_with_wrong_fields_is_refused(fields, said, folder):
    config(folder, **fields)
    refused(folder, "config.json" if "encoder" not in said else "", said)


def test_fields_of_decoders_are_looked_at(tmp_path):
    rope = {"rope_type": "yarn", "factor": 2.0, "rope_theta": 1e4}
    wrong = {
        "rope_type must be one of default, linear, llama3": {"rope_parameters": rope},
        "num_key_value_heads is 3, which does not divide 4 heads": {"num_key_value_heads": 3},
        "sliding_window must be": {"sliding_window": 0},
        "mlp_bias is True": {"mlp_bias": True},
        "rope_parameters must be a table": {"rope_parameters": [1]},
        "factor must be a finite number": {
            "rope_parameters": {"rope_type": "linear", "factor": "x"}
        },
        "k must be even": {"head_dim": 3},
    }
    for i, (said, fields) in enumerate(wrong.items()):
        folder = shutil.copytree(HERE / "mistral", tmp_path / str(i))
        config(folder, **fields)
        if "head_dim" in fields:
            _narrow(folder)
        refused(folder, said)


def _narrow(folder):
    """The heads of a decoder with an odd number of rows."""
    config(folder, num_key_value_heads=4)
    for file in folder.glob("*.safetensors"):
        found = load_file(file)
        for key in found:
            for name, shape in {
                "q_": (12, 16),
                "k_": (12, 16),
                "v_": (12, 16),
                "o_": (16, 12),
            }.items():
                if f"{name}proj" in key and "self_attn" in key:
                    found[key] = np.zeros(shape, np.float32)
        save_file(found, file)


@pytest.mark.parametrize(
    "file",
    [
        "../outside.safetensors",
        "/etc/passwd",
        "sub/x.safetensors",
        "..",
        "x.bin",
        "a\\b.safetensors",
    ],
)
def test_a_shard_outside_the_folder_is_not_opened(file, shards):
    shutil.copy(HERE / "bert" / WEIGHTS, shards.parent / "outside.safetensors")
    index = json.loads((shards / INDEX).read_text())
    index["weight_map"] = dict.fromkeys(index["weight_map"], file)
    (shards / INDEX).write_text(json.dumps(index))
    refused(shards, INDEX, repr(file), "not opened")


def test_an_index_that_lies_is_refused(shards):
    index = json.loads((shards / INDEX).read_text())
    placed = index["weight_map"]
    first, *_, last = sorted(set(placed.values()))
    name = next(key for key, file in placed.items() if file == last)
    (shards / INDEX).write_text(json.dumps({"weight_map": placed | {name: first}}))
    refused(shards, first, f"lacks {name}")
    (shards / INDEX).write_text(json.dumps({"weight_map": [first]}))
    refused(shards, INDEX, "weight_map")
    (shards / INDEX).write_text(json.dumps({"weight_map": placed}))
    (shards / last).unlink()
    refused(shards, last, "missing")


@pytest.mark.parametrize("text", ["", "{}", '{"model": {"type": "Pickle"}}', "\x80\x04"])
def test_a_broken_tokenizer_is_refused(text, folder):
    (folder / "tokenizer.json").write_text(text)
    refused(folder, "tokenizer.json", "is not a tokenizer")


def test_what_is_no_model_is_said(tmp_path, folder, untyped):
    refused(tmp_path, "config.json", "no such file")
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    refused(tmp_path, WEIGHTS, "no weights")
    for name, said in (
        (folder / WEIGHTS, "is a file"),
        ("../no/folder", "neither a folder here"),
        ("a name with spaces", "neither a folder here"),
    ):
        with pytest.raises(af.InputError, match=said):
            af.models.load(name)
    with pytest.raises(af.InputError, match="revision is for models from the hub"):
        af.models.load(folder, revision="main")
    for dtype in ("float16", "int32", "floaty"):
        with pytest.raises(af.InputError, match="dtype must be 'float32' or 'float64'"):
            af.models.load(folder, dtype=dtype)


def test_half_precision_is_read_exactly(tmp_path):
    numbers = np.array([1.5, -0.0078125, 96.0], np.float32)
    stored = {"x": np.asarray(jnp.asarray(numbers, jnp.bfloat16)), "y": numbers.astype(np.float16)}
    save_file(stored, tmp_path / WEIGHTS)
    read = Tensors(tmp_path, "", np.dtype("float64"))
    for name in "xy":
        assert read.read(name, 3).dtype == np.float64
        assert np.array_equal(read.read(name, 3), numbers)


def test_older_names_of_norms_are_known(tmp_path):
    ones = np.ones(2, np.float32)
    save_file({"bert.LayerNorm.gamma": ones, "LayerNorm.beta": 0 * ones}, tmp_path / WEIGHTS)
    read = Tensors(tmp_path, "bert.", np.dtype("float32"))
    assert read.read("LayerNorm.weight", 2).tolist() == [1.0, 1.0]
    assert read.read("LayerNorm.bias", 2).tolist() == [0.0, 0.0]


def test_a_tokenizer_that_fails_at_its_work_is_refused(folder):
    """It can be read, but its library panics, or raises, when it is given a text."""
    path = folder / "tokenizer.json"
    right = json.loads(path.read_text())
    panics, raises = json.loads(path.read_text()), json.loads(path.read_text())
    panics["post_processor"]["special_tokens"] = {}
    del raises["model"]["vocab"]["[UNK]"]
    for table in (panics, raises):
        assert table != right
        path.write_text(json.dumps(table))
        with pytest.raises(af.ModelError, match=r"tokenizer\.json"):
            af.models.load(folder).encode("the cat and a word that nobody knows")
