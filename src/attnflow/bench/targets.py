"""The numbers that attnflow must reach, each a small object that judges an outcome."""

from __future__ import annotations

import abc
from dataclasses import dataclass

from attnflow.bench.result import Outcome, Spread, TargetResult


class Target(abc.ABC):
    """Something that a row must reach."""

    @abc.abstractmethod
    def judge(self, outcome: Outcome) -> TargetResult:
        """What was measured, beside what is wanted."""


@dataclass(frozen=True)
class Faster(Target):
    """The first entry is at least `factor` times as fast as another."""

    factor: float
    than: str

    def judge(self, outcome: Outcome) -> TargetResult:
        """The ratio of that entry."""
        theirs = outcome.entry(self.than)
        ratio = None if theirs is None else theirs.ratio
        return TargetResult(self.than, "≥", self.factor, " ×", ratio)


@dataclass(frozen=True)
class Accurate(Target):
    """The error of the first entry."""

    bound: float

    def judge(self, outcome: Outcome) -> TargetResult:
        """Its largest deviation from the exact answer."""
        return TargetResult("error", "≤", self.bound, "", _single(outcome.entries[0].error), False)


@dataclass(frozen=True)
class Compiles(Target):
    """The first entry compiles within a time."""

    seconds: float

    def judge(self, outcome: Outcome) -> TargetResult:
        """The seconds it needed before the first call."""
        return TargetResult(
            "compiling", "≤", self.seconds, " s", _single(outcome.entries[0].prepare)
        )


@dataclass(frozen=True)
class Takes(Target):
    """The first entry is done within a time."""

    seconds: float

    def judge(self, outcome: Outcome) -> TargetResult:
        """Its seconds."""
        return TargetResult("time", "≤", self.seconds, " s", outcome.entries[0].seconds)


@dataclass(frozen=True)
class Needs(Target):
    """A contender needs no more than some memory."""

    megabytes: float
    contender: str

    def judge(self, outcome: Outcome) -> TargetResult:
        """Its peak memory."""
        entry = outcome.entry(self.contender)
        measured = None if entry is None else _single(entry.megabytes)
        quantity = f"memory, {self.contender},"
        return TargetResult(quantity, "≤", self.megabytes, " MB", measured, False)


@dataclass(frozen=True)
class Grows(Target):
    """The time of the first entry grows no faster than a power of n."""

    power: float

    def judge(self, outcome: Outcome) -> TargetResult:
        """The exponent of the row's curve."""
        found = [curve.exponent for curve in outcome.curves[:1]]
        return TargetResult("growth exponent", "≤", self.power, "", _single(*found or [None]))


def _single(value: float | None) -> Spread | None:
    return None if value is None else Spread(value, value, value)
