"""What goes wrong, in sentences for the person who can put it right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


class InputError(ValueError):
    """Something that was passed in is wrong; the message names it and says what would be right."""


class ModelError(InputError):
    """A file of a trained model is not what it should be; the message names the file."""


class IncompleteRun(RuntimeError):
    """A run could not go on.

    `time` is how far it got (the smallest over a batch) and `trajectory` holds everything up to
    there: the saves that were reached, NaN where a member of a batch did not reach one, and the
    last state as `trajectory.final`.
    """

    def __init__(self, message: str, *, time: float, trajectory: Any):
        super().__init__(message)
        self.time = time
        self.trajectory = trajectory


class Interrupted(KeyboardInterrupt):
    """A run was stopped by the user; `time` and `trajectory` are as in `IncompleteRun`."""

    def __init__(self, message: str, *, time: float, trajectory: Any):
        super().__init__(message)
        self.time = time
        self.trajectory = trajectory


def unknown(what: str, name: object, known: Iterable[str]) -> InputError:
    """The error for a name that is not known, with the nearest one that is.

    >>> str(unknown("mask", "casual", ["causal"]))
    "unknown mask 'casual': did you mean 'causal'? Known: causal"
    """
    names = sorted(known)
    folded = {n.lower(): n for n in names}
    near = difflib.get_close_matches(str(name).lower(), folded, n=1, cutoff=0.4)
    hint = f": did you mean '{folded[near[0]]}'?" if near else "."
    return InputError(f"unknown {what} {name!r}{hint} Known: {', '.join(names)}")
