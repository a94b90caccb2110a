"""Small JSON files that a later run reads: records of searches, figures and benchmarks."""

import json
from collections import Counter
from dataclasses import asdict

import pytest

from attnflow.bench.machine import Machine
from attnflow.bench.result import Curve, Entry, Outcome, Results, Spread, TargetResult
from attnflow.figures import write_index
from attnflow.figures.export import FigureRecord
from attnflow.theory.search.record import Hit, Record
from fuzz.mutations import mutated_json
from fuzz.verdict import bounded, refused
from tries import tries

RECORD = Record("C4.2", 0, 5, Counter({"one": 5}), [Hit(3, {"d": 2}, "it was seen")])
SPREAD = Spread(1.0, 0.9, 1.1)
RESULTS = Results(
    Machine("a processor", 2, 8.0, "Linux", "3.11", {"jax": "0.10"}),
    False,
    [
        Outcome(
            "growth",
            "time against n",
            [Entry("attnflow", SPREAD, SPREAD, 1e-12, 3.0, 0.5, "a word")],
            [Curve("attnflow", "S²", [10, 100], [0.1, 1.0], 1.0)],
            [TargetResult("error", "≤", 1e-12, "", SPREAD, False)],
            0.1,
        )
    ],
)
SEEN = {"name": "rank", "sense": "≤", "measured": 1.0, "bound": "inf", "margin": 1, "holds": True}
FIGURE = FigureRecord("E-fig1", "[E] Fig. 1", "lines", "quick", True, [SEEN], ["E-fig1.png"], 1.5)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("records")


def test_what_the_attacks_begin_from_is_right(place):
    RECORD.save(place / "a.json")
    assert Record.load(place / "a.json") == RECORD
    RESULTS.save(place / "a.json")
    assert Results.load(place / "a.json") == RESULTS
    (place / "E-fig1.json").write_text(json.dumps(asdict(FIGURE)))
    assert "damaged" not in write_index(place).read_text()


def loaded(kind, path, data):
    """What a reader says of a file, which it must name."""
    path.write_bytes(data)
    said = refused(kind.load, path)
    assert said is None or str(path) in said
    return None if said else kind.load(path)


@tries(200, 10_000, data=mutated_json([json.dumps(RECORD.to_json())]))
def test_a_changed_record_of_a_search(data, place):
    record = loaded(Record, place / "a.json", data)
    if record is not None:
        record.save(place / "b.json")
        assert Record.load(place / "b.json") == record


@tries(200, 10_000, data=mutated_json([json.dumps(RESULTS.to_json())]))
def test_a_changed_result_of_a_benchmark(data, place):
    results = loaded(Results, place / "a.json", data)
    if results is not None:
        assert all(isinstance(c, Curve) for c in results.curves)
        [verdict.met for outcome in results.outcomes for verdict in outcome.verdicts]


@tries(200, 10_000, data=mutated_json([json.dumps(asdict(FIGURE))]))
def test_a_changed_record_of_a_figure(data, place):
    """The page is made all the same, and no letter of the record becomes a mark of the page."""
    (place / "E-fig1.json").write_bytes(data)
    with bounded():
        page = write_index(place).read_text()
    assert page.count("<h1>") == 1
    assert page.endswith("</html>\n")


def test_no_record_becomes_a_mark_of_the_page(place):
    hostile = "<script>alert(1)</script>"
    fields = asdict(FIGURE) | {"size": hostile, "files": [hostile], "name": hostile}
    fields["seen"] = [SEEN | {"measured": hostile, "sense": hostile}]
    (place / "E-fig1.json").write_text(json.dumps(fields))
    assert "<script>" not in write_index(place).read_text()
