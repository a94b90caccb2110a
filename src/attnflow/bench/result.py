"""What a benchmark measured: plain numbers that go to JSON and back."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from attnflow.bench.machine import Machine
from attnflow.errors import InputError
from attnflow.files import atomic_write_text
from attnflow.records import read_json, read_record

FORMAT = "attnflow bench 1"
MAX_OTHER_CORES = 0.25
"""Other programs may use this much of a core without being mentioned."""


@dataclass(frozen=True)
class Spread:
    """The median over the rounds, with the smallest and the largest value."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Entry:
    """What one contender did in a row; None where it was not measured.

    `seconds` are those of one computation, `ratio` says how many times as long as the row's first
    entry it took, `error` is the largest deviation from the exact answer, `megabytes` the peak
    memory beyond its input, `prepare` the seconds that compiling took. `note` says what else a
    reader must know, or why there are no numbers.
    """

    contender: str
    seconds: Spread | None = None
    ratio: Spread | None = None
    error: float | None = None
    megabytes: float | None = None
    prepare: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Curve:
    """The time of a method against the number of tokens, and the exponent of its growth."""

    contender: str
    label: str
    sizes: list[int]
    seconds: list[float]
    exponent: float | None


@dataclass(frozen=True)
class Verdict:
    """A target, `quantity ≥ bound` or `quantity ≤ bound`, and what was measured, if it could be.

    `timed` says that it is a matter of time, so that other programs can spoil it.
    """

    quantity: str
    sense: str
    bound: float
    unit: str
    measured: Spread | None
    timed: bool = True

    @property
    def met(self) -> bool | None:
        """Whether the median meets the target; None without a measurement."""
        if self.measured is None:
            return None
        median = self.measured.median
        return median >= self.bound if self.sense == "≥" else median <= self.bound


@dataclass(frozen=True)
class Outcome:
    """One row of the benchmark.

    `others` is how many cores other programs used meanwhile, where the system tells.
    """

    name: str
    title: str
    entries: list[Entry] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    others: float | None = None

    @property
    def disturbed(self) -> bool:
        """Whether other programs used so much of the machine that the numbers mean little."""
        return self.others is not None and self.others > MAX_OTHER_CORES

    def entry(self, contender: str) -> Entry | None:
        """What a contender did, if it took part."""
        return next((e for e in self.entries if e.contender == contender), None)


@dataclass(frozen=True)
class Results:
    """A whole benchmark. `quick` says that sizes were small, so that no target was judged."""

    machine: Machine
    quick: bool
    outcomes: list[Outcome]

    @property
    def curves(self) -> list[Curve]:
        """The curves of the row that compares growth."""
        return [c for o in self.outcomes if o.name == "growth" for c in o.curves]

    def to_json(self) -> dict[str, Any]:
        """Everything, for `--json`."""
        return {"format": FORMAT} | asdict(self)

    def save(self, path: Path) -> None:
        """Write it as JSON."""
        atomic_write_text(path, json.dumps(self.to_json(), indent=1, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: Path) -> Results:
        """Read what `save` wrote."""
        results = read_record(path, cls, "result of attnflow bench")
        if read_json(path).get("format") != FORMAT:
            raise InputError(f"{path} is no result of this version of attnflow bench.")
        return results
