"""The arithmetic of timings, on a clock that the tests move."""

import math

import numpy as np
import pytest

from attnflow.bench import timing
from attnflow.bench.result import Spread

BUDGET = timing.TimingBudget(rounds=7, round_seconds=0.1, max_seconds=6.0)


class Clock:
    """Time passes only while a contender computes."""

    def __init__(self):
        self.now = 0.0
        self.log = []

    def perf_counter(self):
        return self.now

    def contender(self, name, *durations):
        """Takes these seconds at its first calls, and the last of them ever after."""
        left = list(durations)

        def call():
            self.now += left.pop(0) if len(left) > 1 else left[0]
            self.log.append(name)

        return call


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(timing, "time", clock)
    return clock


def test_a_race_counts_no_warm_up_and_takes_turns(clock):
    seconds = timing.time_side_by_side(
        {"a": clock.contender("a", 50.0, 0.5), "b": clock.contender("b", 0.75)}, BUDGET
    )
    assert seconds["a"] == [0.5] * len(seconds["a"])
    assert seconds["b"] == [0.75] * BUDGET.rounds
    raced = clock.log[3:]
    assert raced[:4] == ["a", "b", "b", "a"]


def test_slow_contenders_have_few_turns_and_quick_ones_many_calls(clock):
    calls = {"slow": clock.contender("slow", 20.0), "quick": clock.contender("quick", 0.01)}
    seconds = timing.time_side_by_side(calls, BUDGET)
    assert seconds["slow"] == [20.0, 20.0]
    assert len(seconds["quick"]) == BUDGET.rounds
    assert np.allclose(seconds["quick"], 0.01)
    assert clock.log.count("slow") == 3
    assert clock.log.count("quick") == pytest.approx(10 * BUDGET.rounds, abs=BUDGET.rounds + 2)


def test_a_turn_counts_with_its_fastest_call_but_the_first(clock):
    turn = timing.TimedCall(clock.contender("a", 0.03, 0.03, 0.001, 0.06, 0.05, 0.07), BUDGET)
    assert turn.repeats == 4
    assert turn.seconds() == pytest.approx(0.05)


def test_ratios_are_taken_round_by_round():
    assert timing.ratios([2.0, 12.0, 8.0], [1.0, 3.0, 2.0]) == Spread(4.0, 2.0, 4.0)
    assert timing.ratios([6.0], [2.0, 1.0]) == Spread(3.0, 3.0, 3.0)


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
def test_the_exponent_of_growth_is_found_in_spite_of_fixed_costs(power):
    sizes = [2**k for k in range(4, 16)]
    times = [1e-9 * n**power for n in sizes]
    assert timing.exponent(sizes, times) == pytest.approx(power)
    fixed = [t + times[4] for t in times]
    assert timing.exponent(sizes, fixed) == pytest.approx(power, abs=0.04)
    assert not math.isclose(timing.exponent(sizes[:6], fixed[:6]), power, abs_tol=0.2)
