"""The results of a benchmark: plain numbers that can be written to JSON and read back."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from attnflow.bench.machine import Machine
from attnflow.errors import InputError
from attnflow.records import read_json, read_record, write_json
from attnflow.verdicts import Quantity

FORMAT = "attnflow bench 1"
MAX_OTHER_CORES = 0.25
"""Other programs may use this much of a core without a warning."""


@dataclass(frozen=True)
class Spread:
    """The median over the rounds, and the smallest and the largest value."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Entry:
    """What one contender did in a row; None for what was not measured.

    Attributes:
        contender: its name.
        seconds: time of one computation.
        ratio: its time divided by that of the row's first entry.
        error: the largest deviation from the exact answer.
        megabytes: peak memory beyond its input.
        prepare: seconds for compiling.
        note: what else a reader must know, or why there are no numbers.
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
    """The time of a method against the number of tokens.

    Attributes:
        contender: the name of the method.
        label: where the tokens live.
        sizes: the numbers of tokens.
        seconds: the time at each of them.
        exponent: the exponent of its growth; None with fewer than two sizes.
    """

    contender: str
    label: str
    sizes: list[int]
    seconds: list[float]
    exponent: float | None


@dataclass(frozen=True)
class TargetResult:
    """A target, `quantity ≥ bound` or `quantity ≤ bound`, and what was measured, if it could be.

    `timed` says that it is a matter of time, so that other programs can spoil it.
    """

    quantity: str
    sense: Literal["≤", "≥"]
    bound: float
    unit: str
    measured: Spread | None
    timed: bool = True

    @property
    def median(self) -> Quantity | None:
        """The median beside its bound; None without a measurement."""
        if self.measured is None:
            return None
        return Quantity(self.quantity, self.measured.median, self.sense, self.bound)

    @property
    def met(self) -> bool | None:
        """Whether the median meets the target; None without a measurement."""
        return None if self.median is None else self.median.holds


@dataclass(frozen=True)
class Outcome:
    """The result of one row of the benchmark.

    Attributes:
        name: name of the row.
        title: what was measured.
        entries: what each contender did.
        curves: time against the number of tokens.
        verdicts: the targets, and whether they were met.
        others: cores that other programs used meanwhile; None if the system does not tell.
    """

    name: str
    title: str
    entries: list[Entry] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)
    verdicts: list[TargetResult] = field(default_factory=list)
    others: float | None = None

    @property
    def disturbed(self) -> bool:
        """Whether other programs used so much of the machine that the numbers are unreliable."""
        return self.others is not None and self.others > MAX_OTHER_CORES

    def entry(self, contender: str) -> Entry | None:
        """What a contender did, if it took part."""
        return next((e for e in self.entries if e.contender == contender), None)


@dataclass(frozen=True)
class Results:
    """The results of a whole benchmark.

    Attributes:
        machine: the machine that ran it.
        quick: whether sizes were small, so that no target was judged.
        outcomes: the results of the rows.
    """

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
        write_json(path, self.to_json())

    @classmethod
    def load(cls, path: Path) -> Results:
        """Read what `save` wrote."""
        results = read_record(path, cls, "result of attnflow bench")
        if read_json(path).get("format") != FORMAT:
            raise InputError(f"{path} is no result of this version of attnflow bench.")
        return results
