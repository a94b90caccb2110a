"""What a search has done so far, on disk, so that it can go on after it was stopped."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from attnflow.errors import InputError
from attnflow.files import atomic_write_text
from attnflow.records import read_record

MAX_RUNS = 2**31
"""A search has fewer runs."""


@dataclass
class Hit:
    """A confirmed hit: the number of its candidate, what was drawn, and what it showed."""

    run: int
    about: dict[str, Any]
    sentence: str


@dataclass
class Record:
    """The candidates 0 … runs − 1 of a key, what they showed, and the hits among them."""

    id: str
    key: int
    runs: int = 0
    tally: Counter[str] = field(default_factory=Counter)
    hits: list[Hit] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Everything."""
        hits = [asdict(hit) for hit in self.hits]
        return vars(self) | {"tally": dict(self.tally), "hits": hits}

    def save(self, path: Path) -> None:
        """Write it; the file is complete or not there."""
        atomic_write_text(path, json.dumps(self.to_json(), indent=1, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: Path) -> Record:
        """Read what `save` wrote."""
        record = read_record(path, cls, "record of a search")
        if not 0 <= record.runs < MAX_RUNS or any(count < 0 for count in record.tally.values()):
            raise InputError(f"{path} is no record of a search: it counts {record.runs} runs.")
        return record
