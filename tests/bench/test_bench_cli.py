"""`attnflow bench`, typed as a user would."""

import json
import re
from dataclasses import replace

import pytest
from PIL import Image
from typer.testing import CliRunner

from attnflow import bench
from attnflow.bench import ROWS, Outcome, Results, Row, rows
from attnflow.bench import row as row_module
from attnflow.bench.result import Curve, Entry, Spread
from attnflow.cli import app


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def call(*args):
    result = CliRunner().invoke(app, ["bench", *args])
    return result.exit_code, re.sub(r"\s+", " ", result.output)


@pytest.mark.slow
def test_a_quick_row_from_end_to_end(folder):
    code, said = call("--quick", "--only", "d64-float32", "--json", "a.json")
    assert code == 0, said
    assert "drift, n = 1,024, d = 64" in said
    assert "targets are not judged" in said
    results = Results.load(folder / "a.json")
    assert results.quick
    [outcome] = results.outcomes
    assert outcome.verdicts == []
    ours = outcome.entry("attnflow")
    assert ours.error < 1e-6
    assert ours.seconds.median > 0
    for entry in outcome.entries:
        assert (entry.seconds is None) == (entry.note != "")
        assert entry.contender in said


class Fake(Row):
    def __init__(self, name, *, stops=False):
        self.name = name
        self.targets = ()
        self.stops = stops

    @property
    def title(self):
        return f"the row {self.name}"

    def measure(self, on_progress):
        on_progress("measuring")
        if self.stops:
            raise KeyboardInterrupt
        curves = [Curve("attnflow", "S²", [10, 100], [1.0, 2.0], 0.3)]
        return Outcome(self.name, self.title, [Entry("attnflow", Spread(1.0, 1.0, 1.0))], curves)

    def quick(self):
        return self


def test_ctrl_c_keeps_what_was_measured(folder, monkeypatch):
    fakes = (Fake("growth"), Fake("two", stops=True), Fake("three"))
    monkeypatch.setattr(rows, "ROWS", fakes)
    code, said = call("--json", "a.json", "--out", "a.png")
    assert code == 130
    assert "the row growth" in said
    assert "stopped after 1 of 3 rows" in said
    assert [o["name"] for o in json.loads((folder / "a.json").read_text())["outcomes"]] == [
        "growth"
    ]
    assert Image.open("a.png").width > 1000


def test_a_row_that_fails_is_told_and_loses_nothing(folder, monkeypatch):
    class Failing(Fake):
        def measure(self, on_progress):
            raise RuntimeError("the disk is full\nat line 7")

    monkeypatch.setattr(rows, "ROWS", (Failing("one"), Fake("two")))
    code, said = call("--json", "a.json")
    assert code == 0
    assert "failed: the disk is full" in said
    first, second = Results.load(folder / "a.json").outcomes
    assert first.entries == [Entry("attnflow", note="failed: the disk is full")]
    assert second.entries[0].seconds is not None


def test_help_and_list():
    code, said = call("--help")
    assert code == 0
    assert "attnflow bench --only d3" in said
    code, said = call("--list")
    assert code == 0
    for row in ROWS:
        assert row.name in said
    assert bench.ROWS is ROWS


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--only", "ensembel"), "did you mean 'ensemble'"),
        (("--attempts", "0"), "attempts must be a whole number of at least 1"),
        (("--out", "a.jpg"), "must end in .pdf or .png or .svg"),
        (("--json", "nowhere/a.json"), "there is no folder"),
    ],
)
def test_bad_input_gets_one_sentence_and_code_2(args, said):
    code, output = call(*args)
    assert code == 2
    assert said in output
    assert "Traceback" not in output


class Noisy(Fake):
    """A row during which another program works, at its first runs."""

    def __init__(self, name, disturbances):
        super().__init__(name)
        self.disturbances = disturbances
        self.runs = 0

    def run(self, on_progress):
        self.runs += 1
        return replace(
            self.measure(on_progress), others=0.9 if self.runs <= self.disturbances else 0.0
        )


@pytest.mark.parametrize(("attempts", "runs", "busy"), [(1, 1, True), (2, 2, True), (5, 3, False)])
def test_a_disturbed_row_is_measured_again(folder, monkeypatch, attempts, runs, busy):
    waits = []
    monkeypatch.setattr(row_module, "wait_for_quiet", waits.append)
    noisy = Noisy("noisy", disturbances=2)
    monkeypatch.setattr(rows, "ROWS", (noisy,))
    code, said = call("--attempts", str(attempts), "--json", "a.json")
    assert code == 0
    assert noisy.runs == runs
    assert len(waits) == (0 if attempts == 1 else runs)
    assert ("do not trust" in said) == busy
    assert Results.load(folder / "a.json").outcomes[0].disturbed == busy
