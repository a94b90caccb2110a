"""Rows: from contenders to entries, curves and verdicts."""

from dataclasses import replace

import numpy as np
import pytest

from attnflow.bench import ROWS, select_rows
from attnflow.bench.contenders import Contender, DriftProblem, Scaled
from attnflow.bench.drift import Drift, Growth
from attnflow.bench.machine import OtherPrograms
from attnflow.bench.memory import megabytes
from attnflow.bench.peers import JAX_DENSE, NUMPY
from attnflow.bench.result import Curve, Entry, Outcome, Spread, TargetResult
from attnflow.bench.row import Accurate, Compiles, Faster, Grows, Needs, Takes
from attnflow.bench.runs import FULL_DIMENSION, Metastable, PhaseDiagram
from attnflow.bench.timing import QUICK_BUDGET
from attnflow.errors import InputError

SMALL = DriftProblem(n=40, d=3, beta=4.0, dtype="float64")


class Wrong(Contender):
    name = "wrong"

    def prepare(self, problem, x):
        return lambda: np.zeros_like(x)


class Broken(Contender):
    name = "broken"

    def prepare(self, problem, x):
        raise RuntimeError("no such\ninstruction")


class NotHere(Contender):
    name = "elsewhere"
    package = "a_package_that_nobody_has"

    def prepare(self, problem, x):
        raise AssertionError("it was asked although it is missing")


def quiet(text):
    pass


def drift(*contenders, **options):
    return Drift("test", "drift", SMALL, contenders, budget=QUICK_BUDGET, **options)


def test_a_drift_compares_times_and_answers():
    row = drift(NUMPY, JAX_DENSE, Wrong(), targets=(Faster(1e9, JAX_DENSE.name), Accurate(1e-12)))
    told = []
    outcome = row.run(told.append)
    assert [e.contender for e in outcome.entries] == ["NumPy", "JAX dense", "wrong"]
    ours, theirs, wrong = outcome.entries
    assert ours.ratio == Spread(1.0, 1.0, 1.0)
    assert theirs.ratio.low <= theirs.ratio.median <= theirs.ratio.high
    assert theirs.seconds.median > 0
    assert max(ours.error, theirs.error) < 1e-14
    assert wrong.error > 0.1
    assert [v.met for v in outcome.verdicts] == [False, True]
    assert any("JAX dense: round 1 of" in text for text in told)


def test_who_cannot_take_part_does_not_stop_the_others():
    outcome = drift(NUMPY, NotHere(), Broken(), targets=(Faster(1.0, "elsewhere"),)).run(quiet)
    ours, missing, broken = outcome.entries
    assert ours.seconds is not None
    assert missing == Entry("elsewhere", note="not installed")
    assert broken == Entry("broken", note="failed: no such")
    assert outcome.verdicts == [TargetResult("elsewhere", "≥", 1.0, " ×", None)]
    assert outcome.verdicts[0].met is None


def test_the_time_of_a_smaller_problem_is_scaled_by_the_square():
    plain = drift(Wrong()).measure(quiet).entries[0]
    scaled = drift(Scaled(Wrong(), limit=4)).measure(quiet).entries[0]
    assert scaled.note == "at n = 4, × 100"
    assert 10 < scaled.seconds.median / plain.seconds.median < 1000
    assert plain.note == ""


def test_growth_has_a_curve_for_each_method_and_names_who_is_missing():
    sizes = (64, 128, 256)
    series = ((NUMPY, SMALL, sizes), (NotHere(), SMALL, sizes))
    growth = Growth("growth", "time", series, quick_sizes=(32, 64), budget=QUICK_BUDGET)
    outcome = growth.run(quiet)
    assert outcome.curves[0].sizes == [64, 128, 256]
    assert outcome.curves[0].label == "S²"
    assert 0 < outcome.curves[0].exponent < 4
    assert outcome.entries == [Entry("elsewhere", note="not installed")]
    stopped = replace(growth, limit=0.0).run(quiet)
    assert stopped.curves[0].sizes == [64]
    assert stopped.curves[0].exponent is None


def test_targets_judge_what_was_measured():
    ours = Entry("attnflow", Spread(2.0, 1.0, 3.0), error=1e-13, megabytes=50.0, prepare=3.0)
    theirs = Entry("PyTorch", Spread(5.0, 4.0, 6.0), ratio=Spread(2.5, 2.0, 3.0))
    curve = Curve("attnflow", "S²", [1, 2], [1.0, 2.0], 1.0)
    outcome = Outcome("x", "x", [ours, theirs], [curve])
    met = (
        Faster(2.5, "PyTorch"),
        Accurate(1e-12),
        Compiles(3.0),
        Takes(2.0),
        Needs(50.0, "attnflow"),
        Grows(1.1),
    )
    missed = (
        Faster(2.6, "PyTorch"),
        Accurate(1e-14),
        Compiles(2.9),
        Takes(1.9),
        Needs(49.0, "attnflow"),
        Grows(0.9),
    )
    assert [target.judge(outcome).met for target in met] == [True] * 6
    assert [target.judge(outcome).met for target in missed] == [False] * 6
    nothing = Outcome("x", "x", [Entry("attnflow", note="failed")])
    assert [target.judge(nothing).met for target in met] == [None] * 6


@pytest.mark.slow
def test_a_phase_diagram_agrees_in_both_dimensions():
    row = PhaseDiagram(n=4, d=64, betas=(1.0, 3.0), replicates=2, budget=QUICK_BUDGET)
    row = replace(row, targets=(Faster(1e9, FULL_DIMENSION),))
    outcome = row.run(quiet)
    ours, full = outcome.entries
    assert ours.error < 1e-5
    assert full.ratio.median > 0
    assert outcome.verdicts[0].met is False


def test_a_metastable_run_ends_in_one_cluster():
    row = Metastable(n=4, beta=2.0, stop=1e4, starts=1)
    [entry] = row.run(quiet).entries
    assert entry.note.startswith("1 of 1 starts ended in one cluster, the last at t = ")
    assert 0 < entry.seconds.median < 60
    [early] = replace(row, stop=2.0).run(quiet).entries
    assert early.note == "0 of 1 starts ended in one cluster before t = 2e+00"


def test_memory_is_that_of_the_scores():
    problem = DriftProblem(n=3000, d=2, beta=1.0, dtype="float64")
    scores = 8e-6 * problem.n**2
    assert 2 * scores < megabytes(NUMPY, problem) < 5 * scores


def test_others_are_seen_and_own_work_is_not():
    others = OtherPrograms()
    np.linalg.svd(np.random.default_rng(0).normal(size=(600, 600)))
    assert 0 <= others.cores() < 4


def test_rows_are_chosen_by_name():
    assert select_rows([]) == list(ROWS)
    assert [row.name for row in select_rows(["ensemble", "d3"])] == ["d3", "ensemble"]
    with pytest.raises(InputError, match="did you mean 'ensemble'"):
        select_rows(["ensembel"])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_quick_rows_have_the_same_name_and_no_target(row):
    assert row.quick().name == row.name
    assert row.quick().targets == ()
    assert row.targets or row.name == "growth"
    assert row.title
