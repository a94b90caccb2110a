"""Coverage-guided attacks on the readers of files: `python tests/fuzz/atheris_targets.py spec`.

Needs atheris, and `tests` on PYTHONPATH. Arguments after the target's name go to libFuzzer, such as
`-max_total_time=300`. It begins with a file that is right. An error that is not an `InputError`
ends it, with the bytes that caused it.
"""

import contextlib
import shutil
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(
    include=[
        "attnflow.spec",
        "attnflow.models",
        "attnflow.files",
        "attnflow.records",
        "attnflow.stores",
        "attnflow.sweep.store",
    ]
):
    import attnflow as af
    from attnflow import sweep
    from attnflow.errors import InputError
    from attnflow.models.encoding import encode, read_tokenizer
    from attnflow.models.load import load
    from attnflow.spec import read_spec, read_sweep
    from attnflow.theory.search.record import Record

import small_sweep
from checkpoints import HERE, TEXTS

EXAMPLES = Path(__file__).parents[2] / "examples"
TARGETS = {
    "spec": ("spec.toml", lambda folder: read_spec(folder / "spec.toml")),
    "sweep": ("sweep.toml", lambda folder: read_sweep(folder / "sweep.toml")),
    "run-store": ("run.zarr/zarr.json", lambda folder: af.Trajectory.load(folder / "run.zarr")),
    "run-array": ("run.zarr/x/zarr.json", lambda folder: af.Trajectory.load(folder / "run.zarr")),
    "sweep-store": ("sweep.zarr/zarr.json", lambda folder: sweep.load(folder / "sweep.zarr")),
    "sweep-record": (
        "sweep.zarr/blocks/0.json",
        lambda folder: sweep.status(folder / "sweep.zarr"),
    ),
    "config": ("config.json", load),
    "index": ("model.safetensors.index.json", load),
    "weights": ("model-00001-of-00003.safetensors", load),
    "tokenizer": ("tokenizer.json", lambda folder: encode(read_tokenizer(folder), TEXTS, 0)),
    "record": ("record.json", lambda folder: Record.load(folder / "record.json")),
}


def lay_out(folder):
    """A folder with a right file of every kind but a search's record."""
    shutil.copytree(HERE / "mistral", folder)
    shutil.copy(EXAMPLES / "hyperplanes.toml", folder / "spec.toml")
    shutil.copy(EXAMPLES / "sweeps" / "circle.toml", folder / "sweep.toml")
    af.simulate(af.SA(2.0), af.initial.sphere(4, 3, key=0), [0.0, 1.0]).save(folder / "run.zarr")
    sweep.run(small_sweep.spec(), folder / "sweep.zarr")


def main(target):
    file, read = TARGETS[target]
    root = Path(tempfile.mkdtemp())
    folder, corpus = root / "folder", root / "corpus"
    lay_out(folder)
    corpus.mkdir()
    if (folder / file).exists():
        shutil.copy(folder / file, corpus / "right")

    def attack(data):
        (folder / file).write_bytes(data)
        with contextlib.suppress(InputError):
            read(folder)

    atheris.Setup([sys.argv[0], *sys.argv[2:], str(corpus)], attack)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1])
