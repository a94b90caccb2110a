"""Folders of models whose files are not what they claim: a sentence that names the folder."""

import shutil
import struct

import pytest
from hypothesis import strategies as st

import attnflow as af
from attnflow.models.encoding import encode, read_tokenizer
from checkpoints import HERE, TEXTS
from fuzz.mutations import mutated_bytes, mutated_json
from fuzz.verdict import refused
from tries import tries

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
NAMES = sorted(path.name for path in HERE.iterdir())
CONFIGS = {name: (HERE / name / "config.json").read_text() for name in NAMES}
TOKENIZERS = [(HERE / name / "tokenizer.json").read_text() for name in ("bert", "gpt2")]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A copy of every checkpoint, to be spoilt."""
    root = tmp_path_factory.mktemp("models")
    for name in NAMES:
        shutil.copytree(HERE / name, root / name)
    return root


def use(folder):
    """Load a model and, if it is one, give it a text."""
    model = af.models.load(folder)
    if model.tokenizer is not None:
        model.encode(TEXTS[0])


def cut(folder):
    """Cut a text into tokens."""
    tokenizer = read_tokenizer(folder)
    encode(tokenizer, TEXTS, 0)


def spoilt(folder, file, data, use=use):
    """What a reader says of a folder with another file in it; it is put right again."""
    path = folder / file
    before = path.read_bytes()
    path.write_bytes(data)
    try:
        said = refused(use, folder)
    finally:
        path.write_bytes(before)
    assert said is None or "texts" in said or str(folder) in said, said
    return said


@pytest.mark.parametrize("name", NAMES)
def test_what_the_attacks_begin_from_is_right(name, folders):
    assert refused(use, folders / name) is None


@tries(
    200,
    10_000,
    changed=st.sampled_from(NAMES).flatmap(
        lambda name: st.tuples(st.just(name), mutated_json([CONFIGS[name]]))
    ),
)
def test_a_changed_config(changed, folders):
    name, data = changed
    spoilt(folders / name, "config.json", data)


@tries(200, 10_000, data=mutated_json([(HERE / "mistral" / INDEX).read_text()]))
def test_a_changed_index_of_shards(data, folders):
    spoilt(folders / "mistral", INDEX, data)


@tries(200, 10_000, data=mutated_json(TOKENIZERS))
def test_a_changed_tokenizer(data, folders):
    spoilt(folders / "bert", "tokenizer.json", data, cut)


def parts(data):
    """The table of shapes and the numbers of a safetensors file."""
    size = struct.unpack("<Q", data[:8])[0]
    return data[8 : 8 + size].decode(), data[8 + size :]


HEADER, NUMBERS = parts((HERE / "bert" / WEIGHTS).read_bytes())
lengths = st.none() | st.sampled_from([0, 1, 7, 2**24, 2**31, 2**62, 2**64 - 1])


@tries(200, 10_000, header=mutated_json([HEADER]), length=lengths)
def test_a_changed_table_of_shapes(header, length, folders):
    said = len(header) if length is None else length
    spoilt(folders / "bert", WEIGHTS, struct.pack("<Q", said) + header + NUMBERS)


@tries(200, 10_000, data=mutated_bytes([(HERE / "bert" / WEIGHTS).read_bytes()]))
def test_broken_bytes_of_weights(data, folders):
    spoilt(folders / "bert", WEIGHTS, data)
