"""What a row of the benchmark is."""

from __future__ import annotations

import abc
from dataclasses import replace

from attnflow.bench.machine import Neighbours, wait_for_quiet
from attnflow.bench.result import DISTURBING, Entry, Outcome
from attnflow.bench.targets import Target
from attnflow.bench.timing import OnProgress
from attnflow.errors import first_line


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
        neighbours = Neighbours()
        try:
            outcome = self.measure(on_progress)
        except Exception as error:
            note = f"failed: {first_line(error):.80}"
            outcome = Outcome(self.name, self.title, [Entry("attnflow", note=note)])
        verdicts = [target.judge(outcome) for target in self.targets]
        return replace(outcome, verdicts=verdicts, others=neighbours.cores())


def undisturbed(row: Row, attempts: int, on_progress: OnProgress) -> Outcome:
    """The outcome of a row, measured again while other programs disturb it, `attempts` times.

    With more than one attempt, each waits for a quiet moment first.
    """
    for k in range(attempts):
        if attempts > 1:
            on_progress(f"attempt {k + 1}: waiting for other programs")
            wait_for_quiet(DISTURBING)
        outcome = row.run(on_progress)
        if not outcome.disturbed:
            break
    return outcome
