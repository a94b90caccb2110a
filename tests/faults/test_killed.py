"""SIGKILL at random moments: nothing finished is lost or done twice, and a re-run completes."""

import json
import os
import time
import warnings
from functools import partial

import numpy as np
import pytest
from PIL import Image

from attnflow import Trajectory, sweep
from processes import finish, kill, often, start, wait_until
from small_sweep import contents, records, toml

SAVE = """
import sys
import jax.numpy as jnp
from attnflow import Trajectory
def run(k):
    xs = jnp.full((40, 50, 30), float(k))
    zero = jnp.asarray(0)
    return Trajectory(jnp.arange(40.0), xs, xs[-1], None, zero, zero, "k", str(k))
runs = [run(k) for k in range(8)]
print("ready", flush=True)
for k in range(int(sys.argv[2])):
    runs[k % 8].save(sys.argv[1])
    print(k, flush=True)
"""

FIGURES = """
from matplotlib.figure import Figure
from attnflow.figures.export import RECIPES
from attnflow.figures.recipe import Picture, Recipe
from attnflow.verdicts import Quantity
def make(size):
    figure = Figure()
    figure.subplots().plot(range(9))
    return Picture(figure, {"a": [1.0] * 5000}, (Quantity("a", 1, "≥", 1),))
RECIPES.clear()
RECIPES.update({f"F{k}": Recipe(f"F{k}", "[T]", "a line", make) for k in range(6)})
from attnflow.cli import run_command
run_command()
"""


def moments(count, life):
    """Random times, spread over the life of a process."""
    rng = np.random.default_rng(count)
    return rng.permuted((np.arange(count) + rng.uniform(size=count)) * life / count)


@pytest.mark.parametrize("kills", often(5, 50))
def test_a_sweep(tmp_path, kills):
    """Half of the kills are early in the life of a process, half in the middle of its blocks."""
    (tmp_path / "spec.toml").write_text(toml(count=4 * kills, dt=0.02))
    assert sweep.run(tmp_path / "spec.toml", tmp_path / "whole").complete
    store = tmp_path / "store"
    command = ("sweep", "spec.toml", "--store", "store")
    before, at_work = {}, 0
    for k, moment in enumerate(moments(kills, 2.0)):
        process = start(tmp_path, *command)
        if k % 2:
            wait_until(partial(_more, store, before), process)
        time.sleep(moment if k % 2 else 2 * moment)
        said = kill(process)
        assert "Traceback" not in said
        if not store.exists():
            continue
        after = records(store)
        assert before.items() <= after.items(), "nothing was lost or computed twice"
        at_work += len(after) > len(before)
        before = after
        found = sweep.status(store)
        assert (found.done, found.running) == (len(before), False)
    assert at_work >= kills // 2
    assert len(before) < 4 * kills, "it was killed in the middle"
    assert finish(start(tmp_path, *command))[0] == 0
    assert before.items() <= records(store).items()
    assert contents(store) == contents(tmp_path / "whole")
    assert not list(tmp_path.glob(".unfinished-*"))


def _more(store, before):
    return store.exists() and len(records(store)) > len(before)


@pytest.mark.parametrize("kills", often(5, 50))
def test_saving_a_trajectory(tmp_path, kills):
    """The store at the path is always one that was saved, and whole."""
    begun = time.monotonic()
    finish(start(tmp_path, "run.zarr", 20, program=("-c", SAVE)))
    each = (time.monotonic() - begun) / 20
    killed = 0
    for moment in moments(kills, 5 * each):
        process = start(tmp_path, "run.zarr", 10**6, program=("-c", SAVE))
        said = [process.stdout.readline() for _ in range(2)]
        assert said == ["ready\n", "0\n"], "from here on it is nearly always saving"
        time.sleep(moment)
        kill(process)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            run = Trajectory.load(tmp_path / "run.zarr")
        assert (run.xs == float(run.method)).all()
        assert (run.final == float(run.method)).all()
        killed += bool(list(tmp_path.glob(".unfinished-*")))
    assert killed, "a save was cut in two"
    finish(start(tmp_path, "run.zarr", 1, program=("-c", SAVE)))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.zarr"]
    assert Trajectory.load(tmp_path / "run.zarr").method == "0"


@pytest.mark.slow
def test_a_cache_that_was_cut_off_heals(tmp_path, monkeypatch):
    """JAX does not write compiled code in one step, and never replaces what it wrote."""
    monkeypatch.setenv("ATTNFLOW_CACHE", str(tmp_path / "cache"))
    (tmp_path / "spec.toml").write_text(toml(count=1))
    for k in range(3):
        code, said = finish(start(tmp_path, "sweep", "spec.toml", "--store", f"store-{k}"))
        assert code == 0, said
        assert "Warning" not in said
        if k == 0:
            (cache,) = (tmp_path / "cache").iterdir()
            files = list(cache.iterdir())
            assert files
            for file in files:
                os.truncate(file, file.stat().st_size // 2)
    assert list(cache.iterdir()), "there is a cache again"
    assert contents(tmp_path / "store-2") == contents(tmp_path / "store-0")


@pytest.mark.parametrize("kills", often(5, 50))
def test_figures(tmp_path, kills):
    """Every file is whole, and where the JSON is, all files of the figure are."""
    command = ("figures", "all", "--workers", 1, "--out", "out")
    out = tmp_path / "out"
    assert finish(start(tmp_path, *command, program=("-c", FIGURES)))[0] == 0
    whole = _drawn(out)
    assert len(whole) == 12
    assert len(list(out.glob("F*.json"))) == 6
    cut = 0
    for moment in moments(kills, 1.0):
        process = start(tmp_path, *command, program=("-c", FIGURES))
        wait_until(lambda: list(out.glob(".unfinished-*")), process)
        time.sleep(moment)
        kill(process)
        now = _drawn(out)
        assert now == whole, "an older figure stays until the new one is drawn"
        for record in out.glob("F*.json"):
            told = json.loads(record.read_text())
            assert all((out / file).exists() for file in told["files"])
        cut += bool(list(out.glob(".unfinished-*")))
    assert cut, "a figure was cut in two"
    assert finish(start(tmp_path, *command, program=("-c", FIGURES)))[0] == 0
    assert _drawn(out) == whole
    names = {*whole, *(f"F{k}.json" for k in range(6)), "index.html"}
    assert {p.name for p in out.iterdir()} == names, "nothing unfinished is left"


def _drawn(folder):
    """The pictures of a folder, which can be read to the end."""
    for file in folder.glob("F*.png"):
        with Image.open(file) as image:
            image.load()
    assert all(f.read_bytes().endswith(b"%%EOF\n") for f in folder.glob("F*.pdf"))
    return {f.name: f.read_bytes() for f in folder.glob("F*.p[nd][gf]")}
