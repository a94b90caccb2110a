"""Results on disk, in tables and in a picture."""

import json
from dataclasses import replace

import pytest
from PIL import Image

from attnflow.bench import Outcome, Results, plot, tables
from attnflow.bench.machine import Machine, this_machine
from attnflow.bench.result import Curve, Entry, Spread, TargetResult
from attnflow.errors import InputError

MACHINE = Machine("A processor", 2, 23.5, "Linux", "3.11", {"jax": "0.10"})
RATIO = Spread(2.85, 2.7, 3.1)
CURVES = [
    Curve("attnflow spectral", "circle", [1000, 10_000], [1e-4, 1e-3], 1.0),
    Curve("NumPy", "S²", [1000, 4000], [1e-2, 1.6e-1], 2.0),
    Curve("KeOps", "S²", [1000], [5e-2], None),
]
RESULTS = Results(
    MACHINE,
    False,
    [
        Outcome(
            "d3",
            "drift, n = 16,384",
            [
                Entry("attnflow", Spread(0.1, 0.09, 0.12), Spread(1.0, 1.0, 1.0), 4e-7, 34.0, 0.2),
                Entry("PyTorch SDPA", Spread(0.285, 0.27, 0.3), RATIO, 8e-7, 3.0, 0.1),
                Entry("KeOps", note="not installed"),
            ],
            verdicts=[
                TargetResult("PyTorch SDPA", "≥", 2.5, " ×", RATIO),
                TargetResult("KeOps", "≥", 10.0, " ×", None),
                TargetResult("error", "≤", 1e-12, "", Spread(2e-12, 2e-12, 2e-12), timed=False),
            ],
            others=0.01,
        ),
        Outcome("growth", "time against n", [Entry("SDPA", note="not installed")], CURVES),
    ],
)


def title(outcome):
    return outcome.title


def test_json_goes_there_and_back(tmp_path):
    RESULTS.save(tmp_path / "a.json")
    assert Results.load(tmp_path / "a.json") == RESULTS
    numbers = json.loads((tmp_path / "a.json").read_text())
    assert numbers["outcomes"][0]["entries"][1]["ratio"]["median"] == 2.85


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "attnflow bench 0"}'])
def test_other_files_are_refused(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(InputError, match=r"a\.json is no result of"):
        Results.load(tmp_path / "a.json")


def test_entries_become_a_table_without_empty_columns():
    grid = tables.of_entries(RESULTS.outcomes[0])
    assert grid.head == ["contender", "time", "× the first", "error", "memory", "note"]
    assert grid.rows[1] == ["PyTorch SDPA", "285 ms", "2.85 (2.70–3.10)", "8e-07", "3 MB", ""]
    assert grid.rows[2] == ["KeOps", "", "", "", "", "not installed"]
    alone = Outcome("x", "x", [Entry("attnflow", Spread(1.5, 1.4, 1.6))])
    assert tables.of_entries(alone).head == ["contender", "time"]


def test_targets_become_a_table_with_verdicts():
    rows = tables.of_targets(RESULTS, title).rows
    assert rows == [
        ["drift, n = 16,384", "≥ 2.5 × PyTorch SDPA", "2.85 (2.70–3.10) ×", "met"],
        ["", "≥ 10 × KeOps", "—", "not measured"],
        ["", "error ≤ 1e-12", "2e-12", "missed by 100 %"],
    ]


def test_no_time_is_judged_on_a_busy_machine():
    busy = replace(RESULTS.outcomes[0], others=0.8)
    rows = tables.of_targets(replace(RESULTS, outcomes=[busy]), title).rows
    assert [row[-1] for row in rows] == ["machine was busy", "machine was busy", "missed by 100 %"]
    assert rows[0][2] == "2.85 (2.70–3.10) ×"


def test_curves_become_a_table_with_exponents():
    rows = tables.of_curves(RESULTS.outcomes[1]).rows
    assert rows[1] == ["NumPy", "S²", "2.00", "4,000", "160 ms"]
    assert rows[2] == ["KeOps", "S²", "", "1,000", "50 ms"]
    assert rows[3] == ["SDPA", "", "not installed", "", ""]


def test_markdown_has_a_line_for_each_row():
    lines = tables.of_curves(RESULTS.outcomes[1]).markdown().splitlines()
    assert lines[0] == "| method | where | exponent | largest n | time there |"
    assert lines[1] == "| --- | --- | ---: | ---: | ---: |"
    assert lines[3] == "| NumPy | S² | 2.00 | 4,000 | 160 ms |"
    assert len(lines) == 6


def test_the_picture_shows_every_curve(tmp_path):
    figure = plot.growth(CURVES, tmp_path / "a.png")
    assert Image.open(tmp_path / "a.png").width > 1000
    [ax] = figure.axes
    drawn = [line for line in ax.lines if not line.get_label().startswith("_")]
    assert {tuple(line.get_ydata()) for line in drawn} == {tuple(c.seconds) for c in CURVES}
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert [name.split(",")[0] for name in names] == ["KeOps", "NumPy", "attnflow spectral"]
    assert "1.00" in names[2]


def test_the_machine_is_named_without_naming_its_owner():
    machine = this_machine()
    assert machine.cores >= 1
    assert machine.versions["jax"]
    assert f"{machine.cores} cores" in str(machine)
