"""A row of the benchmark, and the targets that it must reach."""

from __future__ import annotations

import abc
from dataclasses import dataclass, replace

from attnflow.bench.machine import OtherPrograms, wait_for_quiet
from attnflow.bench.result import MAX_OTHER_CORES, Entry, Outcome, Spread, TargetResult
from attnflow.bench.timing import OnProgress
from attnflow.errors import first_line


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
    """A contender, by default the first entry, takes at most `seconds`."""

    seconds: float
    contender: str | None = None

    def judge(self, outcome: Outcome) -> TargetResult:
        if self.contender is None:
            return TargetResult("time", "≤", self.seconds, " s", outcome.entries[0].seconds)
        entry = outcome.entry(self.contender)
        measured = None if entry is None else entry.seconds
        return TargetResult(f"time, {self.contender},", "≤", self.seconds, " s", measured)


@dataclass(frozen=True)
class AtMost(Target):
    """A contender takes at most `factor` times as long as the first entry."""

    factor: float
    contender: str

    def judge(self, outcome: Outcome) -> TargetResult:
        entry = outcome.entry(self.contender)
        measured = None if entry is None else entry.ratio
        return TargetResult(self.contender, "≤", self.factor, " ×", measured)


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


class Row(abc.ABC):
    """Something to measure, and its targets. All rows are in the list `ROWS`."""

    name: str
    targets: tuple[Target, ...]

    @property
    @abc.abstractmethod
    def title(self) -> str:
        """What is measured, with its sizes."""

    @abc.abstractmethod
    def measure(self, on_progress: OnProgress) -> Outcome:
        """Measure it; `on_progress` is called with a line about what is being done."""

    @abc.abstractmethod
    def quick(self) -> Row:
        """The same at a size that takes seconds, without targets."""

    def run(self, on_progress: OnProgress) -> Outcome:
        """Measure it, judge its targets, and note what other programs did meanwhile.

        If it fails, the outcome says so.
        """
        others = OtherPrograms()
        try:
            outcome = self.measure(on_progress)
        except Exception as error:
            note = f"failed: {first_line(error):.80}"
            outcome = Outcome(self.name, self.title, [Entry("attnflow", note=note)])
        verdicts = [target.judge(outcome) for target in self.targets]
        return replace(outcome, verdicts=verdicts, others=others.cores())


def measure_undisturbed(row: Row, attempts: int, on_progress: OnProgress) -> Outcome:
    """The outcome of a row, repeated while other programs disturb it.

    Args:
        row: the row.
        attempts: measure it at most this often. With more than one attempt, each first waits until
            the machine is quiet.
        on_progress: called with a line about what is being done.
    """
    for k in range(attempts):
        if attempts > 1:
            on_progress(f"attempt {k + 1}: waiting for other programs")
            wait_for_quiet(MAX_OTHER_CORES)
        outcome = row.run(on_progress)
        if not outcome.disturbed:
            break
    return outcome
