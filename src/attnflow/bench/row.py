"""A row of the benchmark."""

from __future__ import annotations

import abc
from dataclasses import replace

from attnflow.bench.machine import Neighbours, wait_for_quiet
from attnflow.bench.result import DISTURBING, Entry, Outcome
from attnflow.bench.targets import Target
from attnflow.bench.timing import OnProgress
from attnflow.errors import first_line


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
        neighbours = Neighbours()
        try:
            outcome = self.measure(on_progress)
        except Exception as error:
            note = f"failed: {first_line(error):.80}"
            outcome = Outcome(self.name, self.title, [Entry("attnflow", note=note)])
        verdicts = [target.judge(outcome) for target in self.targets]
        return replace(outcome, verdicts=verdicts, others=neighbours.cores())


def undisturbed(row: Row, attempts: int, on_progress: OnProgress) -> Outcome:
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
            wait_for_quiet(DISTURBING)
        outcome = row.run(on_progress)
        if not outcome.disturbed:
            break
    return outcome
