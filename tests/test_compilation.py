"""Compiled programs on disk: where they are, how many, and what happens where there is no place."""

import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import jax
import pytest

from attnflow import compilation
from attnflow.cli.shared import mend_cache

RUN = """
import jax
import numpy as np
from jax._src import monitoring

hits = []
monitoring.register_event_listener(lambda event, **k: hits.append(event))
import attnflow as af

x0 = af.initial.sphere(n=5, d=3, key=0)
traj = af.simulate(af.SA(2.0), x0, np.linspace(0, 1, 3))
print(float(traj.final[0, 0]), jax.config.values["jax_compilation_cache_dir"])
print(sum("cache_misses" in event for event in hits), sum("cache_hits" in event for event in hits))
"""


def process(cache, **more):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("JAX_COMPILATION")}
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", RUN],
        env=kept | {"ATTNFLOW_CACHE": str(cache)} | more,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    said, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    (value, folder), counts = (line.split() for line in said.splitlines())
    return float(value), folder, [int(count) for count in counts]


def test_a_second_process_compiles_nothing_that_the_first_one_did(tmp_path):
    """No program of a run calls back to Python: JAX would not keep it."""
    value, folder, (missed, found) = finish(process(tmp_path))
    assert Path(folder).parent == tmp_path
    assert missed
    assert not found
    again, _, (missed, found) = finish(process(tmp_path))
    assert again == value
    assert not missed
    assert found


def test_processes_at_once_share_a_folder(tmp_path):
    several = [process(tmp_path) for _ in range(3)]
    assert len({finish(one)[0] for one in several}) == 1


@pytest.mark.parametrize("word", ["off", "0", "No"])
def test_it_is_switched_off_by_one_word(monkeypatch, word):
    monkeypatch.setenv(compilation.SETTING, word)
    assert compilation.cache_folder() is None


def test_a_folder_of_ones_own_is_left_alone(tmp_path):
    _, folder, _ = finish(process(tmp_path, JAX_COMPILATION_CACHE_DIR=str(tmp_path / "mine")))
    assert folder == str(tmp_path / "mine")


def test_a_place_that_is_no_folder_costs_nothing_but_the_cache(tmp_path):
    (tmp_path / "file").write_text("")
    _, folder, _ = finish(process(tmp_path / "file"))
    assert folder == "None"


def test_a_user_without_a_home_has_no_cache(monkeypatch):
    monkeypatch.delenv(compilation.SETTING)
    monkeypatch.setattr(Path, "home", classmethod(lambda cls: (_ for _ in ()).throw(RuntimeError)))
    for variable in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(variable, raising=False)
    assert compilation.cache_folder() is None


def test_a_folder_stays_where_it_was_named(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(compilation.SETTING, "here")
    assert compilation.cache_folder().parent == tmp_path / "here"
    monkeypatch.setenv(compilation.SETTING, "~/there")
    assert compilation.cache_folder().parent == Path.home() / "there"


def test_what_was_cut_off_is_compiled_again(tmp_path):
    """Also where warnings are errors."""
    value, folder, _ = finish(process(tmp_path))
    for file in Path(folder).iterdir():
        os.truncate(file, file.stat().st_size // 2)
    assert finish(process(tmp_path))[0] == value


def test_a_command_mends_no_folder_but_ours(tmp_path, monkeypatch):
    monkeypatch.setenv(compilation.SETTING, str(tmp_path))  # JAX has another one
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    before = warnings.showwarning
    mend_cache()
    assert warnings.showwarning is before


def test_another_processor_has_another_folder(monkeypatch):
    here = compilation.cache_folder()
    monkeypatch.setattr(compilation, "_processor", lambda: "another")
    assert compilation.cache_folder() != here
    assert compilation.cache_folder().parent == here.parent


@pytest.mark.parametrize(
    ("system", "variable", "place"),
    [("linux", "XDG_CACHE_HOME", ""), ("win32", "LOCALAPPDATA", ""), ("darwin", "HOME", "Library")],
)
def test_the_place_is_where_users_look_for_it(monkeypatch, tmp_path, system, variable, place):
    monkeypatch.delenv(compilation.SETTING)
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setenv(variable, str(tmp_path))
    assert compilation.cache_folder().is_relative_to(tmp_path / place / ("Caches" if place else ""))


def test_a_folder_that_has_grown_loses_its_oldest_half(tmp_path, monkeypatch):
    monkeypatch.setattr(compilation, "MAX_BYTES", 1000)

    def left():
        return sorted(int(file.name) for file in tmp_path.iterdir() if file.name.isdigit())

    for k in range(10):
        (tmp_path / str(k)).write_bytes(bytes(100))
        os.utime(tmp_path / str(k), (k, k))
    compilation._bound(tmp_path)
    assert left() == list(range(10))
    (tmp_path / "10").write_bytes(bytes(100))
    compilation._bound(tmp_path)
    assert left() == list(range(11)), "it was looked at today"
    os.utime(tmp_path / "looked", (time.time() - 2 * compilation.DAY,) * 2)
    compilation._bound(tmp_path)
    assert left() == [6, 7, 8, 9, 10]


def test_the_tests_use_it():
    assert jax.config.values["jax_compilation_cache_dir"] == str(compilation.cache_folder())
