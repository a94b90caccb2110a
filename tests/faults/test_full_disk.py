"""A disk that is full: a sentence, nothing that only looks whole, and a re-run that completes."""

import os
import subprocess

import numpy as np
import pytest
from PIL import Image

import attnflow as af
from attnflow import sweep
from attnflow.errors import WriteError
from attnflow.files import atomic_write_text
from checkpoints import HERE
from command import call
from small_sweep import contents, records, spec, toml

SIZE = 2**20


@pytest.fixture
def disk(tmp_path):
    """A file system of a megabyte, with a function that fills it up to some free bytes."""
    place = tmp_path / "disk"
    place.mkdir()
    made = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(place)]
    if os.name != "posix" or subprocess.run(made, capture_output=True).returncode:
        pytest.skip("a small file system cannot be mounted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def fill(disk, free):
    """Leave so many bytes free; what fills the disk is the file `ballast`."""
    found = os.statvfs(disk)
    with (disk / "ballast").open("ab") as file:
        file.write(b"0" * (found.f_bavail * found.f_frsize - free))


def named(folder):
    return sorted(p.name for p in folder.iterdir())


def test_a_file_keeps_what_it_had(disk):
    atomic_write_text(disk / "a.txt", "before")
    fill(disk, 8192)
    with pytest.raises(WriteError, match=r"a\.txt could not be written: No space left on device"):
        atomic_write_text(disk / "a.txt", "x" * 100_000)
    assert (disk / "a.txt").read_text() == "before"
    assert named(disk) == ["a.txt", "ballast"]


def test_a_trajectory_keeps_what_it_had(disk):
    def run(beta):
        x0 = af.initial.sphere(n=64, d=3, key=0)
        return af.simulate(af.SA(beta), x0, np.linspace(0, 1, 41), method=af.Fixed(0.1))

    one, two = run(1.0), run(4.0)
    one.save(disk / "run.zarr")
    fill(disk, 40_000)
    with pytest.raises(WriteError, match="No space left"):
        two.save(disk / "run.zarr")
    assert np.array_equal(af.Trajectory.load(disk / "run.zarr").xs, one.xs)
    assert named(disk) == ["ballast", "run.zarr"]
    (disk / "ballast").unlink()
    two.save(disk / "run.zarr")
    assert np.array_equal(af.Trajectory.load(disk / "run.zarr").xs, two.xs)


@pytest.mark.parametrize("free", [0, 20_000, 200_000])
def test_a_sweep_goes_on_when_there_is_room(disk, tmp_path, monkeypatch, free):
    """Full from the start, within the creation of the store, and after some blocks."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "spec.toml").write_text(toml(count=24, dt=0.5))
    arguments = ("sweep", tmp_path / "spec.toml", "--store", disk / "store")
    sweep.run(tmp_path / "spec.toml", tmp_path / "whole")
    fill(disk, free)
    code, said = call(*arguments)
    assert code == 2
    assert "error:" in said
    assert "No space left on device" in said
    before = records(disk / "store") if (disk / "store").exists() else {}
    assert bool(before) == (free == 200_000)
    assert len(before) < 24
    (disk / "ballast").unlink()
    assert call(*arguments)[0] == 0
    assert contents(disk / "store") == contents(tmp_path / "whole")
    assert before.items() <= records(disk / "store").items()
    assert named(disk) == ["store"]


def test_a_failure_that_cannot_be_noted_is_told(disk):
    keep = {"K": {"observable": "hull_vertices"}}
    start = {"name": "sphere", "n": 12}
    bad = spec(keep=keep, start=start, axes={"d": [9], "beta": [1.0]})
    sweep.driver.prepare(bad, disk / "store")
    fill(disk, 0)
    with pytest.raises(WriteError, match="No space left"):
        sweep.run(bad, disk / "store")
    (disk / "ballast").unlink()
    assert len(sweep.run(bad, disk / "store").failures) == 1


SPEC = """
[system]
name = "SA"
beta = 1.0
[start]
name = "sphere"
n = 8
d = 3
[times]
stop = 1.0
count = 5
[method]
name = "Fixed"
dt = 0.1
"""


@pytest.mark.parametrize("option", ["--out", "--json", "--gif", "--store"])
def test_run(disk, folder, option):
    file = disk / {"--out": "a.png", "--json": "a.json", "--gif": "a.gif"}.get(option, "a.zarr")
    (folder / "spec.toml").write_text(SPEC)
    others = () if option == "--out" else ("--out", folder / "other.png")
    fill(disk, 0)
    code, said = call("run", "spec.toml", *others, option, file)
    assert code == 2
    assert f"error: {file} could not be written: No space left on device." in said
    assert named(disk) == ["ballast"]
    (disk / "ballast").unlink()
    assert call("run", "spec.toml", *others, option, file)[0] == 0
    assert named(disk) == [file.name]


@pytest.mark.slow
def test_check(disk, folder):
    fill(disk, 0)
    code, said = call("check", "T3.1", "--json", disk / "a.json")
    assert code == 2
    assert "a.json could not be written: No space left on device." in said
    assert named(disk) == ["ballast"]


@pytest.mark.slow
def test_search(disk, folder):
    arguments = ("search", "C4.2-printed", "--budget", "2", "--out", disk)
    assert call(*arguments)[0] == 0
    before = (disk / "C4.2-printed-0.json").read_bytes()
    fill(disk, 0)
    code, said = call(*arguments)
    assert code == 2
    assert "could not be written: No space left on device." in said
    (disk / "ballast").unlink()
    assert (disk / "C4.2-printed-0.json").read_bytes() == before
    code, said = call(*arguments)
    assert code == 0
    assert "continuing after 2 runs" in said


@pytest.mark.slow
def test_model(disk, folder):
    (folder / "text.txt").write_text("the cat sat on a mat")
    arguments = ("model", HERE / "bert", "--text", "text.txt", "--out", disk / "a.html")
    fill(disk, 0)
    code, said = call(*arguments)
    assert code == 2
    assert "a.html could not be written: No space left on device." in said
    assert named(disk) == ["ballast"]


@pytest.mark.slow
def test_figures(disk, folder):
    """The figure that does not fit is told; the older one of the same name is still whole."""
    arguments = ("figures", "P-gamma", "--workers", 1, "--no-film", "--out", disk)
    assert call(*arguments)[0] in (0, 1)
    before = contents(disk)
    fill(disk, 20_000)
    code, said = call(*arguments)
    assert code in (1, 2)
    assert "could not be written: No space left on device." in said
    (disk / "ballast").unlink()
    assert contents(disk) == before
    with Image.open(disk / "P-gamma.png") as image:
        image.load()
