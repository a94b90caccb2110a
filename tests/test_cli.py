"""The command line, typed as a user would."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import attnflow as af
from attnflow import sweep
from attnflow.cli.check import QUICK_COMPILATION
from command import call
from small_sweep import contents, spec

SPEC = """
title = "A small run"
key = 3
[system]
name = "SA"
beta = 2.0
[start]
n = 8
d = 3
[times]
stop = 10.0
count = 21
"""


pytestmark = pytest.mark.usefixtures("folder")


def test_a_run_reports_and_writes_everything(folder):
    (folder / "spec.toml").write_text(SPEC)
    code, said = call(
        "run",
        "spec.toml",
        "--out",
        "a.png",
        "--gif",
        "a.gif",
        "--store",
        "a.zarr",
        "--json",
        "a.json",
    )
    assert code == 0, said
    assert "SA(beta=2)" in said
    assert "n = 8 in R^3" in said
    assert Image.open("a.png").width > 1000
    assert Image.open("a.gif").n_frames == 21
    numbers = json.loads((folder / "a.json").read_text())
    traj = af.Trajectory.load("a.zarr")
    counts = [af.observe.clusters(x, numbers["tolerance"]).count for x in traj.xs]
    assert numbers["clusters"] == counts
    assert counts[-1] == 1
    energies = [float(af.observe.energy(x, 2.0)) for x in traj.xs]
    assert np.allclose(numbers["energy"], energies, rtol=1e-12)


def test_a_run_that_cannot_go_on_keeps_its_part(folder):
    (folder / "spec.toml").write_text(SPEC + '[method]\nname = "Adaptive"\nmax_steps = 15\n')
    code, said = call("run", "spec.toml", "--out", "a.png", "--json", "a.json")
    assert code == 1
    assert "stopped:" in said
    assert "Raise max_steps" in said
    numbers = json.loads((folder / "a.json").read_text())
    assert 2 <= len(numbers["times"]) < 21
    assert (folder / "a.png").exists()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("none.toml",), "none.toml: there is no such file"),
        (("--out", "picture.jpg"), "must end in .pdf or .png or .svg"),
        (("--gif", "film.mp4"), "must end in .gif"),
        (("--out", "nowhere/a.png"), "there is no folder"),
    ],
)
def test_bad_input_gets_one_sentence_and_code_2(args, said):
    code, output = call("run", *args)
    assert code == 2
    assert said in output
    assert "Traceback" not in output


def test_a_wrong_spec_names_the_field(folder):
    (folder / "spec.toml").write_text(SPEC.replace("beta", "bta"))
    code, said = call("run", "spec.toml")
    assert code == 2
    assert "system.bta" in said
    assert "did you mean 'beta'" in said


def test_the_list_names_every_system_with_its_source():
    code, said = call("run", "--list")
    assert code == 0
    for name, system in af.SYSTEMS.items():
        assert name in said
        assert system.source.split(",")[0] in said


def test_help_has_an_example_and_version_is_told():
    code, said = call("run", "--help")
    assert code == 0
    assert "attnflow run examples/circle.toml" in said
    assert call("--version") == (0, f"attnflow {af.__version__} ")
    assert "run" in call()[1]


@pytest.mark.slow
def test_as_a_module_without_arguments_it_shows_the_metastable_run(folder):
    done = subprocess.run(
        [sys.executable, "-m", "attnflow", "run"],
        capture_output=True,
        text=True,
        env=os.environ | {"COLUMNS": "200", "XLA_FLAGS": "", "ATTNFLOW_CACHE": "cache"},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "SA(beta=9)" in done.stdout
    assert "64 (t = 0)" in done.stdout
    assert (folder / "attnflow-run.png").stat().st_size > 50_000
    assert any(file.is_file() for file in (folder / "cache").rglob("*"))


def test_a_run_does_not_replace_what_is_no_run(folder):
    sweep.run(spec(), "sweep.zarr")
    before = contents(folder / "sweep.zarr")
    code, said = call("run", "--store", "sweep.zarr")
    assert code == 2
    assert "sweep.zarr exists and is no store of a run" in said
    assert contents(folder / "sweep.zarr") == before
    assert not (folder / "attnflow-run.png").exists()


@pytest.mark.parametrize("option", ["--out", "--store", "--json"])
def test_a_place_that_cannot_be_written_is_refused_before_any_work(option, folder, monkeypatch):
    monkeypatch.setattr(sys.modules["attnflow.simulation"], "simulate", None)
    place = f"{'x' * 248}.png"  # may be the name of a file, but not with a word before it
    code, said = call("run", option, place)
    assert code == 2
    assert "could not be written: File name too long" in said


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_a_full_standard_output_is_one_sentence():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "attnflow", "check", "--list"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 2
    assert done.stderr == "error: No space left on device.\n"


def test_threads_of_blas_are_limited_before_anything_has_loaded_it():
    program = (
        "from attnflow.cli.threads import one_blas_thread\n"
        "with one_blas_thread():\n"
        "    import numpy, scipy.linalg, threadpoolctl\n"
        "    print({library['num_threads'] for library in threadpoolctl.threadpool_info()})\n"
    )
    assert _said(program, OPENBLAS_NUM_THREADS="2") == "{1}\n"


@pytest.mark.parametrize(
    ("flags", "said"),
    [({}, f"False {QUICK_COMPILATION}\n"), ({"XLA_FLAGS": ""}, "False \n")],
)
def test_checks_compile_quickly_unless_flags_are_given(flags, said):
    program = (
        "import importlib, os, jax\n"
        "check = importlib.import_module('attnflow.cli.check')\n"
        "def look():\n"
        "    started = jax._src.xla_bridge.backends_are_initialized()\n"
        "    print(started, os.environ['XLA_FLAGS'])\n"
        "    raise SystemExit\n"
        "check.mend_cache = look\n"
        "check._check(['T6.8'], 0, False, None)\n"
    )
    assert _said(program, **flags) == said


def _said(program, **environment):
    """What a program of its own prints, without the flags of XLA that tests have."""
    inherited = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    return subprocess.run(
        [sys.executable, "-c", program],
        env=inherited | environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
