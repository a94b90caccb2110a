"""Time measurements that can be compared: contenders take turns, and warm-up does not count."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from attnflow.bench.contenders import Call
from attnflow.bench.result import Spread

OnProgress = Callable[[str], None]
"""Called with a line about what is being measured."""


@dataclass(frozen=True)
class TimingBudget:
    """How long contenders are timed.

    Attributes:
        rounds: number of rounds; every contender has one turn in each.
        round_seconds: seconds of a turn, about. Short calls are repeated, at most 100 times.
        max_seconds: a contender stops after this many seconds, if it has had two turns.
    """

    rounds: int
    round_seconds: float
    max_seconds: float


FULL_BUDGET = TimingBudget(rounds=9, round_seconds=0.4, max_seconds=6.0)
QUICK_BUDGET = TimingBudget(rounds=3, round_seconds=0.1, max_seconds=1.0)


def time_side_by_side(
    calls: Mapping[str, Call],
    budget: TimingBudget = FULL_BUDGET,
    on_progress: OnProgress = lambda _: None,
) -> dict[str, list[float]]:
    """Seconds of one call of each contender in each round.

    Contenders take turns, in reverse order in every second round, so that disturbances hit all of
    them alike. The first call of each does not count, because it may compile. The time of a turn
    is that of its fastest call, because disturbances only make calls slower. Slow contenders take
    part in fewer rounds, at least two.

    Args:
        calls: the calls of the contenders, by name.
        budget: how long contenders are timed.
        on_progress: called with a line about what is being measured.
    """
    timed = {}
    for name, call in calls.items():
        on_progress(f"{name}: warming up")
        timed[name] = TimedCall(call, budget)
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for k in range(budget.rounds):
        for name in list(calls) if k % 2 == 0 else reversed(list(calls)):
            if k < timed[name].rounds:
                on_progress(f"{name}: round {k + 1} of {timed[name].rounds}")
                seconds[name].append(timed[name].seconds())
    return seconds


class TimedCall:
    """A contender's turn: how many calls it has, and how many turns there is time for."""

    def __init__(self, call: Call, budget: TimingBudget = FULL_BUDGET):
        self.call = call
        once = seconds_of(call)
        if once < budget.max_seconds / 6:
            once = seconds_of(call)
        self.repeats = min(100, max(1, math.ceil(budget.round_seconds / once)))
        self.rounds = min(budget.rounds, max(2, int(budget.max_seconds / (once * self.repeats))))

    def seconds(self) -> float:
        """Seconds of the fastest call.

        The first of several calls is dropped: threads of the previous contender may still be busy.
        """
        times = [seconds_of(self.call) for _ in range(self.repeats)]
        return min(times[1:] or times)


def seconds_of(call: Call) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def spread(values: Sequence[float]) -> Spread:
    """The median with the smallest and the largest value.

    >>> spread([3.0, 1.0, 2.0])
    Spread(median=2.0, low=1.0, high=3.0)
    """
    return Spread(float(np.median(values)), float(min(values)), float(max(values)))


def ratios(theirs: Sequence[float], ours: Sequence[float]) -> Spread:
    """The ratio of their time to ours in each round, and its median.

    >>> ratios([4.0, 6.0], [2.0, 1.0, 1.0])
    Spread(median=4.0, low=2.0, high=6.0)
    """
    return spread([a / b for a, b in zip(theirs, ours, strict=False)])


def exponent(sizes: Sequence[int], values: Sequence[float]) -> float:
    """The p in `value ∝ size^p`, by a least-squares fit of the logarithms.

    Only sizes within a factor of 20 of the largest are used, to exclude fixed costs.

    >>> round(exponent([100, 200, 400], [1.0, 4.0, 16.0]), 12)
    2.0
    """
    large = 20 * np.asarray(sizes) >= max(sizes)
    slope, _ = np.polyfit(np.log(sizes)[large], np.log(values)[large], deg=1)
    return float(slope)
