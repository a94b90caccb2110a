"""Targets: the numbers that attnflow must reach."""

from __future__ import annotations

import abc
from dataclasses import dataclass

from attnflow.bench.result import Outcome, Spread, TargetResult


class Target(abc.ABC):
    """Something that a row must reach."""

    @abc.abstractmethod
    def judge(self, outcome: Outcome) -> TargetResult:
        """Compare what was measured with the target."""


@dataclass(frozen=True)
class Faster(Target):
    """The first entry is at least `factor` times as fast as another."""

    factor: float
    than: str

    def judge(self, outcome: Outcome) -> TargetResult:
        theirs = outcome.entry(self.than)
        ratio = None if theirs is None else theirs.ratio
        return TargetResult(self.than, "≥", self.factor, " ×", ratio)


@dataclass(frozen=True)
class Accurate(Target):
    """The error of the first entry is at most `bound`."""

    bound: float

    def judge(self, outcome: Outcome) -> TargetResult:
        return TargetResult("error", "≤", self.bound, "", _single(outcome.entries[0].error), False)


@dataclass(frozen=True)
class Compiles(Target):
    """The first entry compiles within `seconds`."""

    seconds: float

    def judge(self, outcome: Outcome) -> TargetResult:
        return TargetResult(
            "compiling", "≤", self.seconds, " s", _single(outcome.entries[0].prepare)
        )


@dataclass(frozen=True)
class Takes(Target):
    """The first entry takes at most `seconds`."""

    seconds: float

    def judge(self, outcome: Outcome) -> TargetResult:
        return TargetResult("time", "≤", self.seconds, " s", outcome.entries[0].seconds)


@dataclass(frozen=True)
class Needs(Target):
    """A contender needs at most this much memory."""

    megabytes: float
    contender: str

    def judge(self, outcome: Outcome) -> TargetResult:
        entry = outcome.entry(self.contender)
        measured = None if entry is None else _single(entry.megabytes)
        quantity = f"memory, {self.contender},"
        return TargetResult(quantity, "≤", self.megabytes, " MB", measured, False)


@dataclass(frozen=True)
class Grows(Target):
    """The time of the first entry grows at most like `n^power`."""

    power: float

    def judge(self, outcome: Outcome) -> TargetResult:
        found = [curve.exponent for curve in outcome.curves[:1]]
        return TargetResult("growth exponent", "≤", self.power, "", _single(*found or [None]))


def _single(value: float | None) -> Spread | None:
    return None if value is None else Spread(value, value, value)
