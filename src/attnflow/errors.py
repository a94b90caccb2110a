"""What goes wrong, in sentences for the person who can put it right."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from functools import partial
from typing import Any

from attnflow.retired import FIELDS

__all__ = ["IncompleteRun", "InputError", "Interrupted", "ModelError", "NotConverged", "WriteError"]

LONGEST = 2000
"""No sentence has more letters: what it quotes may be a whole file."""


class InputError(ValueError):
    """Something that was passed in is wrong; the message names it and says what would be right.

    Where it quotes something long, its middle is left out.
    """

    def __init__(self, message: object):
        said = str(message)
        if len(said) > LONGEST:
            said = f"{said[: LONGEST // 2]} … {said[-LONGEST // 4 :]}"
        super().__init__(said)


class NotConverged(InputError):
    """An iteration inside an equation did not converge; the message says for which values."""


class ModelError(InputError):
    """A file of a trained model is not what it should be; the message names the file."""


class WriteError(InputError, OSError):
    """A file could not be written; what was there before is still there."""


class _Partial(BaseException):
    """A run that ended early, with what it has reached."""

    def __init__(self, message: str, *, time: float, trajectory: Any):
        super().__init__(message)
        self.time = time
        self.trajectory = trajectory

    def __reduce__(self) -> Any:
        """How it travels from one process to another, where keywords would be lost."""
        kept = partial(type(self), time=self.time, trajectory=self.trajectory)
        return kept, self.args


class IncompleteRun(_Partial, RuntimeError):
    """A run could not go on.

    `time` is how far it got (the smallest over a batch) and `trajectory` holds everything up to
    there: the saves that were reached, NaN where a member of a batch did not reach one, and the
    last state as `trajectory.final`.
    """


class Interrupted(_Partial, KeyboardInterrupt):
    """A run was stopped by the user; `time` and `trajectory` are as in `IncompleteRun`."""


def unknown(what: str, name: object, known: Iterable[str]) -> InputError:
    """The error for a name that is not known, with the nearest one that is.

    >>> str(unknown("mask", "casual", ["causal"]))
    "unknown mask 'casual': did you mean 'causal'? Known: causal"
    """
    names = sorted(known)
    if (new := FIELDS.get(str(name))) in names:
        return InputError(f"unknown {what} {name!r}: it is called {new!r} now.")
    folded = {n.lower(): n for n in names}
    near = difflib.get_close_matches(str(name).lower(), folded, n=1, cutoff=0.4)
    hint = f": did you mean '{folded[near[0]]}'?" if near else "."
    return InputError(f"unknown {what} {name!r}{hint} Known: {', '.join(names)}")


def sentence(error: BaseException) -> str:
    r"""An error in one line; of one that quotes a traceback, as XLA's do, the line that says why.

    >>> sentence(ValueError("no"))
    'ValueError: no'
    >>> sentence(RuntimeError("Traceback (most recent call last):\n ...\nOSError: disk full"))
    'OSError: disk full'
    """
    if isinstance(error, InputError):
        return str(error)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if any("Traceback" in line for line in lines):
        return next((li for li in reversed(lines) if re.match(r"[\w.]+: ", li)), lines[0])
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"
