"""Searches: the same candidates for a key, hits that are confirmed, records that go on."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow import initial
from attnflow.errors import InputError
from attnflow.simulation import Adaptive, Coarsening
from attnflow.theory.checks import Trial
from attnflow.theory.limits import late
from attnflow.theory.search import QUESTIONS, Finding, Question, Record, find, search
from attnflow.theory.search.saddles import critical_point, on_circle


class Coin(Question):
    """Heads is a hit, and every fourth hit is not confirmed."""

    id = "coin"
    source = "none"
    statement = "no coin shows heads"
    looks_for = "heads"

    def draw(self, key) -> Trial:
        return Trial({"number": int(jax.random.randint(key, (), 0, 8))})

    def look(self, trial: Trial) -> Finding:
        return Finding("tails") if trial.about["number"] % 2 else Finding("heads", True, "it did")

    def tighter(self, trial: Trial) -> Trial:
        return replace(trial, about={"number": 1}) if trial.about["number"] == 0 else trial


@pytest.fixture
def coin(monkeypatch):
    monkeypatch.setitem(QUESTIONS, "coin", Coin())


def test_candidates_depend_on_the_key_alone(coin) -> None:
    whole = search("coin", key=3, runs=40)
    part = search("coin", key=3, runs=15)
    rest = search("coin", key=3, runs=25, record=part)
    assert rest.to_json() == whole.to_json()
    assert search("coin", key=4, runs=40).hits != whole.hits
    assert all(a.run < b.run for a, b in pairwise(whole.hits))


def test_a_hit_counts_only_when_it_is_seen_again(coin) -> None:
    record = search("coin", runs=60)
    assert all(hit.about["number"] in (2, 4, 6) for hit in record.hits)
    assert record.tally["hit that a tighter run did not confirm"] > 0
    assert record.tally["heads"] == len(record.hits) > 0
    assert sum(record.tally.values()) == record.runs == 60


def test_a_budget_of_seconds_ends(coin) -> None:
    assert 1 <= search("coin", seconds=0.2).runs < 100_000


def test_a_record_comes_back_from_disk_and_is_refused_if_it_is_none(coin, tmp_path) -> None:
    record = search("coin", runs=20)
    record.save(tmp_path / "a.json")
    assert Record.load(tmp_path / "a.json") == record
    (tmp_path / "b.json").write_text('{"id": "coin"}')
    with pytest.raises(InputError, match=r"b\.json is no record"):
        Record.load(tmp_path / "b.json")
    with pytest.raises(InputError, match="key 0, not of coin with key 1"):
        search("coin", key=1, runs=1, record=record)


@pytest.mark.parametrize("budget", [{}, {"runs": 1, "seconds": 1.0}, {"runs": 0}, {"seconds": -1}])
def test_a_budget_is_one_positive_number(coin, budget) -> None:
    with pytest.raises(InputError):
        search("coin", **budget)


def test_unknown_questions_get_the_nearest_name() -> None:
    assert find("p3").id == "problem-3"
    with pytest.raises(InputError, match="did you mean"):
        find("problem-33")


def trial_of(V, x0) -> Trial:
    system = af.RescaledAttention(V=V)
    return Trial({"n": len(x0), "d": 2}, system, x0, np.array([0.0, 20.0, 25.0]), late())


@pytest.mark.slow
def test_the_identity_contradicts_the_conjecture_as_printed() -> None:
    x0 = initial.cube(16, 2, side=8.0, key=0)
    found = QUESTIONS["C4.2-printed"].examine(trial_of(np.eye(2), x0))
    assert found.hit
    assert "parallel subspaces" in found.sentence
    calm = QUESTIONS["C4.2-printed"].examine(trial_of(np.diag([1.0, 0.5]), x0))
    assert not calm.hit


@pytest.mark.slow
def test_weights_that_are_hardly_there_yet_are_not_at_rest() -> None:
    """In a time of 25 nothing moves where the largest eigenvalue is 1e-6: that is no rest."""
    x0 = initial.cube(16, 2, side=2.0, key=0)
    found = QUESTIONS["C4.2"].examine(trial_of(np.diag([1e-6, 5e-7]), x0))
    assert (found.hit, found.seen) == (False, "still moving")


@pytest.mark.parametrize("method", [late(), Coarsening(tol=1e-7, solver="tsit5")], ids=str)
def test_a_tighter_trial_keeps_the_kind_of_its_method(method) -> None:
    trial = Trial({}, af.SA(1.0), np.eye(2), np.array([0.0, 1.0]), method)
    tighter = Question.tighter(Coin(), trial).method
    assert type(tighter) is type(method)
    assert tighter.solver == method.solver
    for name in ("rtol", "atol", "eps"):
        if hasattr(method, name):
            assert float(getattr(tighter, name)) == pytest.approx(1e-3 * getattr(method, name))
    kept = QUESTIONS["problem-1"].tighter(trial)
    assert type(kept.method) is type(method)
    with pytest.raises(InputError, match="no tolerance that could be tightened"):
        Question.tighter(Coin(), replace(trial, method=af.Layers()))


def test_no_candidate_outside_the_hypothesis_is_taken(monkeypatch) -> None:
    """Every V that is drawn has a proven limit here: there is nothing to look at."""
    from attnflow.theory.search import shapes

    monkeypatch.setattr(shapes, "MAX_DRAWS", 3)
    monkeypatch.setattr(shapes, "value", lambda kind, d, key: -np.eye(d))
    with pytest.raises(InputError, match="problem-5: none of 3 draws"):
        QUESTIONS["problem-5"].draw(jax.random.key(0))


@pytest.mark.slow
def test_the_search_finds_it() -> None:
    record = search("C4.2-printed", runs=8)
    assert any(hit.about["V"] in ("identity", "paranormal") for hit in record.hits)


@pytest.mark.slow
def test_a_start_in_a_small_cap_has_no_metastable_state() -> None:
    question = QUESTIONS["problem-1"]
    x0 = initial.normalise(initial.gaussian(16, 2, scale=0.05, key=0) + jnp.array([1.0, 0.0]))
    ts = np.concatenate([[0.0], np.geomspace(0.1, 1e16, 120)])
    trial = Trial({"n": 16, "d": 2, "β": 16.0}, af.SA(16.0), x0, ts, Coarsening())
    assert question.examine(trial).hit
    spread = replace(trial, x0=initial.sphere(16, 2, key=0))
    assert not question.examine(spread).hit


def test_critical_points_are_critical_and_polygons_are_strict_saddles() -> None:
    question = QUESTIONS["problem-3"]
    triangle = on_circle(2 * np.pi * jnp.arange(3.0) / 3 + jnp.array([0.05, 0.0, 0.02]))
    x, slope = critical_point(triangle, 2.0)
    assert slope < 1e-13
    np.testing.assert_allclose(np.sort(np.asarray(x @ x.T)[0])[:2], -0.5, atol=1e-8)
    trial = Trial({"n": 3, "β": 2.0}, af.USA(2.0), triangle)
    assert question.examine(trial).seen.startswith("strict saddle")
    together = replace(trial, x0=on_circle(jnp.array([0.0, 0.01, 0.02])))
    assert question.examine(together).seen == "one cluster"


def test_a_maximum_that_is_not_one_cluster_would_be_a_hit(monkeypatch) -> None:
    from attnflow.theory.search import saddles

    monkeypatch.setattr(saddles, "hessian", lambda x, beta: -jnp.eye(len(x)))
    triangle = on_circle(2 * np.pi * jnp.arange(3.0) / 3)
    found = QUESTIONS["problem-3"].look(Trial({"n": 3, "β": 2.0}, af.USA(2.0), triangle))
    assert found.hit
    assert found.trial is not None


@pytest.mark.slow
@pytest.mark.parametrize("id", sorted(QUESTIONS))
def test_every_question_draws_the_same_candidate_for_a_key_and_looks(id: str) -> None:
    question = QUESTIONS[id]
    one, two = (question.draw(jax.random.key(5)) for _ in range(2))
    assert one.about == two.about
    np.testing.assert_array_equal(np.asarray(one.x0), np.asarray(two.x0))
    assert question.examine(one).seen
    harder = question.tighter(one)
    if isinstance(one.method, Adaptive) and id != "problem-3":
        assert float(harder.method.rtol) < float(one.method.rtol)
