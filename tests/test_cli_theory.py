"""`attnflow check` and `attnflow search`, typed as a user would."""

import json
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

from attnflow.theory.checks import CHECKS, Draw, Quantity, Trial
from attnflow.theory.checks.base import Check
from attnflow.theory.search import QUESTIONS, Finding, Question
from command import call, threads_of_blas

pytestmark = pytest.mark.usefixtures("folder")


class Claim(Check):
    """That small numbers are below a bound."""

    id = "claim"
    source = "nowhere"
    hypothesis = "a number"
    conclusion = "it is at most 1"
    settings = "no horizon"

    def __init__(self, *values):
        self.values = values

    def trials(self, key):
        for value in self.values:
            yield Trial({"value": value, "key": key})

    def judge(self, trial):
        value = trial.about["value"]
        if value is None:
            return [Draw(trial.about, unresolved="it was not drawn")]
        return [Draw(trial.about, (Quantity("value", value, "≤", 1.0),))]


class Guess(Claim):
    """The same, unproven."""

    proven = False


class Stopping(Claim):
    """Someone presses Ctrl-C."""

    def judge(self, trial):
        raise KeyboardInterrupt


class Counting(Claim):
    """That BLAS has one thread."""

    def judge(self, trial):
        threads = max(threads_of_blas())
        return [Draw(trial.about, (Quantity("threads", threads, "≤", 1.0),))]


def test_threads_of_blas_do_not_wait_for_each_other(monkeypatch):
    monkeypatch.setitem(CHECKS, "claim", Counting(0.25))
    with threadpool_limits(2, "blas"):
        code, said = call("check", "claim")
    assert code == 0, said


def test_a_check_that_holds(monkeypatch):
    monkeypatch.setitem(CHECKS, "claim", Claim(0.25, 0.5, 0.75, None))
    code, said = call("check", "claim", "--json", "a.json", "--verbose")
    assert code == 0, said
    assert "claim holds in 3 of 4 draws, 1 unresolved" in said
    assert "a number → it is at most 1 (no horizon)" in said
    assert "value 0.75 ≤ 1 margin 0.25" in said
    assert "unresolved: value = None, key = 0: it was not drawn" in said
    assert "1 of 1 statements hold" in said
    [record] = json.loads(Path("a.json").read_text())
    assert record["verdict"] == "holds"
    assert record["counts"] == {"holds": 3, "fails": 0, "unresolved": 1}
    assert record["draws"][1]["quantities"][0]["margin"] == 0.5


def test_a_check_that_fails_exits_with_1(monkeypatch):
    monkeypatch.setitem(CHECKS, "claim", Claim(0.5, 2.0))
    code, said = call("check", "claim", "-v")
    assert code == 1
    assert "claim fails (the theorem) in 1 of 2 draws, 1 failed" in said
    assert "fails: value = 2, key = 0: value: 2, not ≤ 1" in said
    assert "Not: claim" in said


@pytest.mark.parametrize("value", [None, float("nan")])
def test_nothing_resolved_and_nan_do_not_hold(monkeypatch, value):
    monkeypatch.setitem(CHECKS, "claim", Claim(value))
    assert call("check", "claim")[0] == 1


def test_a_conjecture_may_be_contradicted(monkeypatch):
    monkeypatch.setitem(CHECKS, "claim", Guess(2.0))
    code, said = call("check", "claim")
    assert code == 0
    assert "claim contradicted" in said
    monkeypatch.setitem(CHECKS, "claim", Guess(0.5))
    assert "claim seen" in call("check", "claim")[1]


def test_ctrl_c_keeps_what_was_checked(monkeypatch):
    stopping = Stopping(1.0)
    stopping.id = "later"
    monkeypatch.setitem(CHECKS, "claim", Claim(0.5))
    monkeypatch.setitem(CHECKS, "later", stopping)
    code, said = call("check", "claim", "later", "--json", "a.json")
    assert code == 130
    assert "stopped after 1 of 2 checks" in said
    assert len(json.loads(Path("a.json").read_text())) == 1


def test_a_real_check_and_the_list():
    code, said = call("check", "t6.7", "--key", "3")
    assert code == 0, said
    assert "T6.7 holds in 4 of 4 draws" in said
    code, said = call("check", "--list")
    assert code == 0
    assert all(id in said for id in CHECKS)


def test_unknown_names_are_refused_before_any_work():
    code, said = call("check", "T9.9")
    assert code == 2
    assert "unknown check 'T9.9'" in said
    code, said = call("search", "C4.3")
    assert code == 2
    assert "did you mean 'C4.2'" in said
    code, said = call("check", "T6.7", "--json", "no/where.json")
    assert code == 2
    assert "there is no folder" in said


class Parity(Question):
    """Even candidates are hits."""

    id = "parity"
    source = "nowhere"
    statement = "every number is odd"
    looks_for = "an even one"
    count = 0

    def draw(self, key):
        import jax

        import attnflow as af

        number = int(jax.random.randint(key, (), 0, 10))
        return Trial({"number": number}, af.SA(1.0), af.initial.circle(4), [0.0, 1.0])

    def look(self, trial):
        even = trial.about["number"] % 2 == 0
        return Finding("even" if even else "odd", even, "it is even" if even else "")


def test_a_search_writes_specs_that_run_and_goes_on(monkeypatch):
    monkeypatch.setitem(QUESTIONS, "parity", Parity())
    code, said = call("search", "parity", "--budget", "6", "--out", "found")
    assert code == 0, said
    assert "6 in all" in said
    record = json.loads(Path("found/parity-0.json").read_text())
    assert record["runs"] == 6
    specs = [f"found/parity-0-run{hit['run']}.toml" for hit in record["hits"]]
    assert specs
    assert f"attnflow run {specs[0]}" in said
    assert "it is even" in Path(specs[0]).read_text()
    code, ran = call("run", specs[0])
    assert code == 0, ran
    code, said = call("search", "parity", "--budget", "4", "--out", "found")
    assert "continuing after 6 runs" in said
    assert "4 runs in" in said
    assert "10 in all" in said
    both = json.loads(Path("found/parity-0.json").read_text())
    assert both["hits"][: len(record["hits"])] == record["hits"]
    code, said = call("search", "parity", "--budget", "2", "--out", "found", "--fresh")
    assert "2 in all" in said


@pytest.mark.parametrize("budget", ["0", "-3", "1.5", "ten", "0s", "5 minutes"])
def test_a_wrong_budget_is_refused(budget):
    code, said = call("search", "C4.2", f"--budget={budget}")
    assert code == 2
    assert "budget must be a number of runs such as 100, or a time such as 30s" in said


def test_the_questions_are_listed():
    code, said = call("search")
    assert code == 0
    assert all(id in said for id in QUESTIONS)


@pytest.mark.parametrize("key", [-(2**63) - 1, 2**64])
@pytest.mark.parametrize("command", [("check", "T6.7"), ("search", "C4.2")])
def test_a_key_has_64_bits(command, key, folder):
    code, said = call(*command, "--key", key)
    assert code == 2
    assert "key must be an integer of 64 bits" in said
    assert not list(folder.glob("attnflow-search"))


def test_a_key_may_be_negative():
    assert call("check", "Gin", "--key", -1)[0] in (0, 1)
