"""Models by their name on the hub, from a cache that was made by hand, without any network."""

import os
import shutil
import subprocess
import sys

import pytest

import attnflow as af
from checkpoints import HERE

SCRIPT = """
import sys
import attnflow as af
extras = {"safetensors", "tokenizers", "huggingface_hub", "torch", "transformers"}
print(sorted(extras & set(sys.modules)))
print(repr(af.models.load("someone/tiny").config["model_type"]))
print(repr(af.models.load("someone/tiny", revision="v1").config["model_type"]))
for name, revision in (("someone/tiny", "v2"), ("someone/absent", None), ("gpt2", None)):
    try:
        af.models.load(name, revision=revision)
    except af.ModelError as error:
        print(error)
print(sorted({"torch", "transformers"} & set(sys.modules)))
"""


def test_a_cached_model_is_found_offline(tmp_path):
    cached = tmp_path / "models--someone--tiny"
    (cached / "refs").mkdir(parents=True)
    for branch, commit, name in (("main", "a" * 40, "bert"), ("v1", "b" * 40, "gpt2")):
        (cached / "refs" / branch).write_text(commit)
        shutil.copytree(HERE / name, cached / "snapshots" / commit)
    given = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(tmp_path)}
    said = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=given, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert said[0] == "[]", "importing attnflow imports no extra"
    assert said[1:3] == ["'bert'", "'gpt2'"]
    assert "someone/tiny at revision 'v2' is not a folder here" in said[3]
    assert all("could not be loaded from the hub or its cache" in line for line in said[3:6])
    assert said[6] == "[]", "no PyTorch at run time"


@pytest.mark.parametrize(
    ("package", "name"),
    [("safetensors", HERE / "bert"), ("tokenizers", HERE / "bert"), ("huggingface_hub", "gpt2")],
)
def test_a_missing_package_is_named_with_its_extra(package, name, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(af.InputError, match=rf'needs {package}.*pip install "attnflow\[models\]"'):
        af.models.load(name)
