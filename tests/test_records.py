"""One way to write JSON, whatever is written."""

import json
from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.bench.machine import Machine
from attnflow.bench.result import Entry, Outcome, Results, Spread, TargetResult
from attnflow.records import json_text, plain, read_json, write_json
from attnflow.report import summarise
from attnflow.verdicts import Quantity


@dataclass(frozen=True)
class Inner:
    value: float


class Pair(NamedTuple):
    a: int
    b: Inner


def test_what_json_has_no_word_for():
    value = {
        1: np.float32(0.5),
        "arrays": [np.array([[True, False]]), jnp.arange(2)],
        "pair": Pair(1, Inner(-np.inf)),
        "complex": np.array([1 + 2j]),
        "nan": np.nan,
        "none": None,
    }
    assert plain(value) == {
        "1": 0.5,
        "arrays": [[[True, False]], [0, 1]],
        "pair": {"a": 1, "b": {"value": "-inf"}},
        "complex": [[1.0, 2.0]],
        "nan": "nan",
        "none": None,
    }
    assert plain([np.nan, 1.0], not_finite=lambda _: None) == [None, 1.0]


def refuse(word):
    raise AssertionError(f"{word} is no JSON")


def test_a_file_has_numbers_that_every_reader_of_json_knows(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, {"β": float("inf")})
    assert path.read_text(encoding="utf-8") == '{\n "β": "inf"\n}\n'
    assert read_json(path) == {"β": "inf"}


def test_what_is_neither_is_refused():
    with pytest.raises(TypeError):
        json_text({"a": object()})


def test_a_report_with_an_energy_that_overflows_is_json():
    x0 = af.initial.sphere(n=4, d=3, key=0)
    run = af.simulate(af.SA(1.0), x0, [0.0, 1.0], method=af.Layers(1.0))
    report = summarise(run)
    object.__setattr__(report, "energy", [1.0, float("inf")])
    told = json.loads(json_text(report.to_json()), parse_constant=refuse)
    assert told["energy"] == [1.0, "inf"]


def test_a_benchmark_with_an_infinite_error_is_json_and_comes_back(tmp_path):
    machine = Machine("a", 2, 1.0, "Linux", "3.11", {})
    results = Results(machine, True, [Outcome("d3", "t", [Entry("x", error=float("inf"))])])
    results.save(tmp_path / "bench.json")
    json.loads((tmp_path / "bench.json").read_text(), parse_constant=refuse)
    assert Results.load(tmp_path / "bench.json") == results


def test_a_target_is_judged_as_any_quantity():
    missed = TargetResult("speed", "≥", 2.0, " ×", Spread(1.5, 1.4, 1.6))
    assert missed.median == Quantity("speed", 1.5, "≥", 2.0)
    assert missed.met is False
    assert TargetResult("speed", "≥", 2.0, " ×", None).met is None
