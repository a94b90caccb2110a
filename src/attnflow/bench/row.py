"""What a row of the benchmark is, and the targets that it must reach."""

from __future__ import annotations

import abc
from dataclasses import dataclass, replace

from attnflow.bench.machine import OtherPrograms, wait_for_quiet
from attnflow.bench.result import MAX_OTHER_CORES, Entry, Outcome, Spread, Verdict
from attnflow.bench.timing import OnProgress


class Target(abc.ABC):
    """Something that a row must reach."""

    @abc.abstractmethod
    def judge(self, outcome: Outcome) -> Verdict:
        """What was measured, beside what is wanted."""


@dataclass(frozen=True)
class Faster(Target):
    """The first entry is at least `factor` times as fast as another."""

    factor: float
    than: str

    def judge(self, outcome: Outcome) -> Verdict:
        """The ratio of that entry."""
        theirs = outcome.entry(self.than)
        ratio = None if theirs is None else theirs.ratio
        return Verdict(self.than, "≥", self.factor, " ×", ratio)


@dataclass(frozen=True)
class Accurate(Target):
    """The error of the first entry."""

    bound: float

    def judge(self, outcome: Outcome) -> Verdict:
        """Its largest deviation from the exact answer."""
        return Verdict("error", "≤", self.bound, "", _single(outcome.entries[0].error), False)


@dataclass(frozen=True)
class Compiles(Target):
    """The first entry compiles within a time."""

    seconds: float

    def judge(self, outcome: Outcome) -> Verdict:
        """The seconds it needed before the first call."""
        return Verdict("compiling", "≤", self.seconds, " s", _single(outcome.entries[0].prepare))


@dataclass(frozen=True)
class Takes(Target):
    """The first entry is done within a time."""

    seconds: float

    def judge(self, outcome: Outcome) -> Verdict:
        """Its seconds."""
        return Verdict("time", "≤", self.seconds, " s", outcome.entries[0].seconds)


@dataclass(frozen=True)
class Needs(Target):
    """A contender needs no more than some memory."""

    megabytes: float
    contender: str

    def judge(self, outcome: Outcome) -> Verdict:
        """Its peak memory."""
        entry = outcome.entry(self.contender)
        measured = None if entry is None else _single(entry.megabytes)
        quantity = f"memory, {self.contender},"
        return Verdict(quantity, "≤", self.megabytes, " MB", measured, False)


@dataclass(frozen=True)
class Grows(Target):
    """The time of the first entry grows no faster than a power of n."""

    power: float

    def judge(self, outcome: Outcome) -> Verdict:
        """The exponent of the row's curve."""
        found = [curve.exponent for curve in outcome.curves[:1]]
        return Verdict("growth exponent", "≤", self.power, "", _single(*found or [None]))


def _single(value: float | None) -> Spread | None:
    return None if value is None else Spread(value, value, value)


class Row(abc.ABC):
    """Something to measure, and what it must reach. A row is an object in the list `ROWS`."""

    name: str
    targets: tuple[Target, ...]

    @property
    @abc.abstractmethod
    def title(self) -> str:
        """What is measured, with its sizes."""

    @abc.abstractmethod
    def measure(self, on_progress: OnProgress) -> Outcome:
        """Measure it, telling what is being done."""

    @abc.abstractmethod
    def quick(self) -> Row:
        """The same at a size that takes seconds, without targets."""

    def run(self, on_progress: OnProgress) -> Outcome:
        """Measure it, judge its targets, and note what other programs did meanwhile.

        A row that fails says so and loses nothing of the others.
        """
        others = OtherPrograms()
        try:
            outcome = self.measure(on_progress)
        except Exception as error:
            note = f"failed: {first_line(error)}"
            outcome = Outcome(self.name, self.title, [Entry("attnflow", note=note)])
        verdicts = [target.judge(outcome) for target in self.targets]
        return replace(outcome, verdicts=verdicts, others=others.cores())


def measure_undisturbed(row: Row, attempts: int, on_progress: OnProgress) -> Outcome:
    """The outcome of a row, measured again while other programs disturb it, `attempts` times.

    With more than one attempt, each waits for a quiet moment first.
    """
    for k in range(attempts):
        if attempts > 1:
            on_progress(f"attempt {k + 1}: waiting for other programs")
            wait_for_quiet(MAX_OTHER_CORES)
        outcome = row.run(on_progress)
        if not outcome.disturbed:
            break
    return outcome


def first_line(error: Exception) -> str:
    r"""What an error says, short enough for a table.

    >>> first_line(ValueError("no such thing\nat line 3"))
    'no such thing'
    """
    return str(error).partition("\n")[0][:80] or type(error).__name__
