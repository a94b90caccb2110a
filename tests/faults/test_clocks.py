"""Clocks on the wall that jump by years: durations and order do not depend on them."""

import itertools
import os
import time

import pytest

from attnflow import sweep
from attnflow.simulation.progress import bar_for
from attnflow.sweep.status import status
from attnflow.theory.search import search
from command import call
from small_sweep import contents, spec

YEARS = 3e8
GIVEN = {"axes": {"beta": [0.5, 1.0, 2.0, 4.0]}, "realisations": 300}


@pytest.fixture(params=[YEARS, -YEARS], ids=["ahead", "back"])
def jumping(request, monkeypatch):
    """Every look at the clock on the wall finds it years away from the last one."""
    right, count = time.time, itertools.count()
    monkeypatch.setattr(time, "time", lambda: right() + next(count) * request.param)
    return request.param


def test_a_sweep(jumping, tmp_path, monkeypatch):
    """The files of its blocks have times that jump too."""
    given = spec(**GIVEN)

    def shift(progress):
        for k, file in enumerate(sorted((tmp_path / "store" / "blocks").glob("[0-9]*.json"))):
            os.utime(file, (1e9 + k, 1e9 + k + (k == 3) * jumping))

    for on_progress in (shift, lambda progress: None):
        progress = sweep.run(given, tmp_path / "store", on_progress=on_progress)
    assert (progress.before, progress.done) == (4, 0)
    monkeypatch.undo()
    sweep.run(given, tmp_path / "whole")
    assert contents(tmp_path / "store") == contents(tmp_path / "whole")
    found = status(tmp_path / "store")
    assert found.cells_per_second == pytest.approx(1.0)
    assert found.seconds_since_last is None or found.seconds_since_last >= 0
    code, said = call("sweep", "--status", tmp_path / "store")
    assert code == 0
    assert "4 of 4 cells" in said


def test_blocks_from_the_future_have_no_age(tmp_path):
    sweep.run(spec(**GIVEN), tmp_path / "store")
    for file in (tmp_path / "store" / "blocks").glob("[0-9]*.json"):
        os.utime(file, (time.time() + YEARS,) * 2)
    assert status(tmp_path / "store").seconds_since_last is None


@pytest.mark.slow
def test_the_budget_of_a_search(jumping):
    begun = time.monotonic()
    record = search("C4.2-printed", seconds=1.0)
    assert record.runs >= 1
    assert time.monotonic() - begun >= 1.0


def test_the_bar_of_a_run_goes_on(monkeypatch):
    bar = bar_for(progress=True)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    time.sleep(0.15)
    bar.update(50.0)
    assert bar.format_dict["elapsed"] > 0
    assert bar.last_print_n == 50, "what has changed is drawn"
    bar.close()
