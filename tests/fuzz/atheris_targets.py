"""Coverage-guided attacks on the readers of files: `python tests/fuzz/atheris_targets.py spec`.

Needs atheris, and `tests` on PYTHONPATH. Arguments after the target's name go to libFuzzer, such as
`-max_total_time=300`. An error that is not an `InputError` ends it, with the bytes that caused it.
"""

import contextlib
import shutil
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["attnflow.spec", "attnflow.models", "attnflow.files"]):
    from attnflow.errors import InputError
    from attnflow.models.encoding import encode, read_tokenizer
    from attnflow.models.load import load
    from attnflow.spec import read_spec, read_sweep
    from attnflow.theory.search.record import Record

from checkpoints import HERE, TEXTS

TARGETS = {
    "spec": ("spec.toml", lambda folder: read_spec(folder / "spec.toml")),
    "sweep": ("spec.toml", lambda folder: read_sweep(folder / "spec.toml")),
    "config": ("config.json", load),
    "index": ("model.safetensors.index.json", load),
    "weights": ("model-00001-of-00003.safetensors", load),
    "tokenizer": ("tokenizer.json", lambda folder: encode(read_tokenizer(folder), TEXTS, 0)),
    "record": ("record.json", lambda folder: Record.load(folder / "record.json")),
}


def main(target):
    file, read = TARGETS[target]
    folder = Path(tempfile.mkdtemp()) / "model"
    shutil.copytree(HERE / "mistral", folder)

    def attack(data):
        (folder / file).write_bytes(data)
        with contextlib.suppress(InputError):
            read(folder)

    atheris.Setup([sys.argv[0], *sys.argv[2:]], attack)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1])
