import json
from pathlib import Path

import pytest

from attnflow.spec import read_sweep
from attnflow.sweep.check import check
from command import call
from small_sweep import contents, toml

EXAMPLES = sorted((Path(__file__).parents[1] / "examples" / "sweeps").glob("*.toml"))


@pytest.fixture
def sweep_file(folder):
    (folder / "small.toml").write_text(toml(count=3))
    return folder / "small.toml"


def test_a_sweep_and_its_status(sweep_file, folder):
    code, said = call("sweep", sweep_file, "--json", "a.json", "--out", "phase.png")
    assert code == 0, said
    assert "small.zarr: 3 of 3 cells, each of 512 runs." in said
    assert "picture: phase.png" in said
    found = json.loads((folder / "a.json").read_text())
    assert (found["cells"], found["done"], found["failures"]) == (3, 3, [])
    code, said = call("sweep", "--status", "small.zarr")
    assert code == 0
    assert "3 of 3 cells" in said
    (folder / "small.toml").write_text(toml(count=3, key=4))
    code, said = call("sweep", sweep_file)
    assert code == 2
    assert "key: 0 in the store, 4 now" in said


def test_a_chunk_with_other_bytes_is_told_and_computed_again(sweep_file, folder):
    assert call("sweep", sweep_file)[0] == 0
    before = contents(folder / "small.zarr")
    chunk = next(path for path in (folder / "small.zarr/together/c").rglob("*") if path.is_file())
    data = bytearray(chunk.read_bytes())
    data[-6] ^= 1  # within the numbers, before the sum
    chunk.write_bytes(data)
    code, said = call("sweep", "--status", "small.zarr", "--out", "phase.png")
    assert code == 2
    assert "small.zarr is damaged and cannot be read" in said
    assert not (folder / "phase.png").exists()
    assert call("sweep", sweep_file, "--out", "phase.png")[0] == 0
    assert contents(folder / "small.zarr") == before


def test_quantiles_in_any_order(sweep_file, folder):
    sweep_file.write_text(toml(count=3).replace("[0.1, 0.9]", "[0.9, 0.1]"))
    code, said = call("sweep", sweep_file)
    assert code == 0, said


def test_a_plan_runs_nothing(sweep_file, folder):
    code, said = call("sweep", sweep_file, "--plan", "--json", "plan.json")
    assert code == 0, said
    assert "3 cells, 1,536 runs in 3 tasks; 1 to compile; at most 1.88 kB in the store." in said
    assert json.loads((folder / "plan.json").read_text())["runs"] == 1536
    assert not (folder / "small.zarr").exists()


def test_failures_are_shown(folder):
    """Qhull refuses d = 9, which is seen only when it runs."""
    text = toml(count=1).replace("n = 8", "n = 12").replace("= 512", "= 2")
    text = text.replace('"energy"', '"hull_vertices"').replace("[axes]", "[axes]\nd = [2, 9]")
    (folder / "bad.toml").write_text(text)
    code, said = call("sweep", "bad.toml")
    assert code == 1
    assert "failed 1 cells from d = 9, beta = 0.5" in said
    assert "1 of 2 cells" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give a spec"),
        (("none.toml",), "there is no such file"),
        (("--status", "none.zarr"), "not the store of a sweep"),
        (("small.toml", "--out", "a.txt"), "must end in"),
        (("small.toml", "--workers", "0"), "workers"),
    ],
)
def test_bad_input(sweep_file, arguments, said):
    code, output = call("sweep", *arguments)
    assert code == 2
    assert said in output


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_can_be_swept(path):
    assert check(read_sweep(path))
