"""Looking for counter-examples: `search("C4.2")` and `attnflow search`."""

from __future__ import annotations

import time
from collections.abc import Callable

import jax

from attnflow.checks import require_count, require_positive
from attnflow.errors import InputError
from attnflow.randomness import as_key
from attnflow.retired import renamed_arguments
from attnflow.signals import defer_interrupts
from attnflow.theory.checks.base import Trial
from attnflow.theory.inputs import look_up
from attnflow.theory.search.base import Finding, Question
from attnflow.theory.search.codimension import AnyValue, GoodTriples
from attnflow.theory.search.metastability import Metastability
from attnflow.theory.search.random_weights import RandomWeights
from attnflow.theory.search.record import Hit, Record
from attnflow.theory.search.saddles import Saddles
from attnflow.theory.search.shapes import Shapes

__all__ = ["QUESTIONS", "Finding", "Hit", "Question", "Record", "find", "search"]

QUESTIONS: dict[str, Question] = {
    question.id: question
    for question in (
        GoodTriples(),
        AnyValue(),
        Metastability(),
        RandomWeights(),
        Saddles(),
        Shapes(),
    )
}
"""The questions by id."""

OnCandidate = Callable[[Record, Finding, Trial], object]


def find(name: str) -> Question:
    """The question of an id or of an alias, in any case."""
    return look_up("question", name, QUESTIONS.values())


@renamed_arguments(seed="key", tell="on_candidate")
def search(
    id: str,
    *,
    key: int = 0,
    runs: int | None = None,
    seconds: float | int | None = None,
    record: Record | None = None,
    on_candidate: OnCandidate = lambda record, finding, trial: None,
) -> Record:
    """Draw candidates and look whether one contradicts a conjecture.

    A hit has been seen twice, the second time at a tighter tolerance.

    Args:
        id: the id of a question or an alias of it, such as "C4.2"; `QUESTIONS` has them all.
        key: an integer; by default 0. Candidate k of a key is always the same.
        runs: how many candidates to draw; give this or `seconds`.
        seconds: how long to go on.
        record: an earlier record, which is continued where it ended.
        on_candidate: called after every candidate with the record so far, what was found, and the
            trial that reproduces it.

    >>> record = search("C4.2-printed", runs=3)
    >>> record.runs, sum(record.tally.values())
    (3, 3)
    """
    question = find(id)
    if (runs is None) == (seconds is None):
        raise InputError("give exactly one of runs and seconds, the budget of the search.")
    record = Record(question.id, key) if record is None else record
    if (record.id, record.key) != (question.id, key):
        raise InputError(
            f"record is of {record.id} with key {record.key}, not of {question.id} with key "
            f"{key}: continue it with these, or begin anew."
        )
    last = record.runs + require_count(runs, "runs") if runs is not None else None
    if seconds is not None:
        require_positive(seconds, "seconds")
    begin = time.monotonic()
    while record.runs != last and (seconds is None or time.monotonic() - begin < seconds):
        candidate = jax.random.fold_in(as_key(key), record.runs)
        trial = question.draw(candidate)
        finding = question.examine(trial)
        with defer_interrupts():  # Ctrl-C finds a candidate both counted and reported, or neither
            if finding.hit:
                record.hits.append(Hit(record.runs, trial.about, finding.sentence))
            record.tally[finding.seen] += 1
            record.runs += 1
            on_candidate(record, finding, finding.trial or trial)
    return record
