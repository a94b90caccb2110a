"""What a search has done so far, on disk, so that it can go on after it was stopped."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attnflow.errors import InputError
from attnflow.records import plain, read_json, read_record, write_json
from attnflow.retired import RenamedAttribute

MAX_RUNS = 2**31
"""The number of runs that a search stays below."""


@dataclass
class Hit:
    """A confirmed hit.

    Attributes:
        run: the number of the candidate.
        about: what was drawn.
        sentence: what it showed.
    """

    run: int
    about: dict[str, Any]
    sentence: str


@dataclass
class Record:
    """The candidates 0 … runs − 1 of a key, what they showed, and the hits among them.

    Attributes:
        id: the id of the question.
        key: the key of the draws.
        runs: how many candidates have been looked at.
        tally: how often each word was seen.
        hits: the confirmed hits.
    """

    id: str
    key: int
    runs: int = 0
    tally: Counter[str] = field(default_factory=Counter)
    hits: list[Hit] = field(default_factory=list)

    seed = RenamedAttribute("key")

    def to_json(self) -> dict[str, Any]:
        """Everything."""
        return plain(self)

    def save(self, path: Path) -> None:
        """Write it; the file is complete or not there."""
        write_json(path, self.to_json())

    @classmethod
    def load(cls, path: Path) -> Record:
        """Read what `save` wrote."""
        try:
            record = read_record(path, cls, "record of a search")
        except InputError:
            found = read_json(path)
            if isinstance(found, dict) and "seed" in found:
                raise InputError(
                    f"{path} is a record of an earlier version: in it, call 'seed' 'key'."
                ) from None
            raise
        if not 0 <= record.runs < MAX_RUNS or any(count < 0 for count in record.tally.values()):
            raise InputError(f"{path} is no record of a search: it counts {record.runs} runs.")
        return record
