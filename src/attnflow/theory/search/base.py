"""What a search is made of: a question, candidates that are drawn, and findings."""

from __future__ import annotations

import abc
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from attnflow.errors import IncompleteRun, InputError
from attnflow.theory.checks.base import Trial

TIGHTER_FACTOR = 1e-3
"""A hit is run again with tolerances this much smaller."""

TOLERANCES = ("rtol", "atol", "tol")
"""The tolerances that methods have."""

LONGER_FACTOR = 1.6
"""… and for this much longer."""


@dataclass(frozen=True)
class Finding:
    """What one candidate showed.

    Attributes:
        seen: what it was, in a word for the tally.
        hit: whether it contradicts the question's statement.
        sentence: what it showed, in a sentence.
        trial: what reproduces it, if that is not what was drawn (a critical point that was solved
            for).
    """

    seen: str
    hit: bool = False
    sentence: str = ""
    trial: Trial | None = None


MAX_DRAWS = 1000
"""Draws among which one must meet a question's hypothesis."""


class Question(abc.ABC):
    """A conjecture or an open problem, as a statement that a candidate can contradict.

    Attributes:
        id: what `search` is called with.
        source: where it is stated.
        statement: the statement.
        looks_for: what counts as a hit.
        aliases: other names of it.
    """

    id: ClassVar[str]
    source: ClassVar[str]
    statement: ClassVar[str]
    looks_for: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()

    @abc.abstractmethod
    def draw(self, key: Any) -> Trial:
        """A candidate: weights and a start, the same for the same key."""

    @abc.abstractmethod
    def look(self, trial: Trial) -> Finding:
        """Run a candidate and say what it showed."""

    def tighter(self, trial: Trial) -> Trial:
        """The same candidate at a tighter tolerance and for longer, to confirm a hit.

        The method stays of its kind: all its tolerances (rtol, atol, eps) become smaller.
        """
        method = trial.method
        named = [name for name in TOLERANCES if hasattr(method, name)]
        if not named:
            raise InputError(
                f"method {method!r} has no tolerance that could be tightened: a question that runs "
                f"it needs a `tighter` of its own, and {self.id} has none."
            )
        smaller = {name: TIGHTER_FACTOR * float(getattr(method, name)) for name in named}
        method = replace(method, **smaller, max_steps=4 * method.max_steps)
        return replace(trial, ts=LONGER_FACTOR * np.asarray(trial.ts), method=method)

    def examine(self, trial: Trial) -> Finding:
        """`look`; a hit must be seen again at a tighter tolerance before it is one."""
        try:
            found = self.look(trial)
        except IncompleteRun:
            return Finding("could not be run to the end")
        if not found.hit:
            return found
        try:
            again = self.look(self.tighter(trial))
        except IncompleteRun:
            return Finding("hit that could not be confirmed")
        return again if again.hit else Finding("hit that a tighter run did not confirm")
