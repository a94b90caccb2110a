"""What goes wrong, in sentences for the person who can put it right."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from attnflow.retired import FIELDS

__all__ = ["IncompleteRun", "InputError", "Interrupted", "ModelError", "NotConverged", "WriteError"]

LONGEST = 2000
"""No sentence has more letters: what it quotes may be a whole file."""

Kind = TypeVar("Kind", bound="InputError")


class Fault(NamedTuple):
    """What went wrong and what to do about it: each a sentence without its full stop.

    >>> str(Fault("the steps collapsed", "use Fixed(dt)"))
    'the steps collapsed. Use Fixed(dt).'
    """

    reason: str
    remedy: str

    def __str__(self) -> str:
        """Two sentences."""
        return f"{self.reason}. {self.remedy[:1].upper()}{self.remedy[1:]}."


class InputError(ValueError):
    """Something that was passed in is wrong; the message names it and says what would be right.

    The message is made of its parts. Where it quotes something long, its middle is left out.

    Args:
        reason: a whole sentence, or its first half if there is a remedy.
        where: the places that lead to the mistake, the outermost first.
        remedy: what to do about it.

    >>> error = InputError("must be above 0", where=("system", "beta"), remedy="take 1")
    >>> str(error), error.where, error.remedy
    ('system: beta: must be above 0: take 1.', ('system', 'beta'), 'take 1')
    """

    def __init__(self, reason: object, *, where: str | Sequence[str] = (), remedy: str = ""):
        self.where = (where,) if isinstance(where, str) else tuple(where)
        self.reason, self.remedy = str(reason), remedy
        fault = self.fault
        said = f"{fault.reason}: {remedy}." if remedy else fault.reason
        if len(said) > LONGEST:
            said = f"{said[: LONGEST // 2]} … {said[-LONGEST // 4 :]}"
        super().__init__(said)

    @property
    def fault(self) -> Fault:
        """The reason with its places, and the remedy."""
        return Fault(": ".join((*self.where, self.reason)), self.remedy)

    def __reduce__(self) -> Any:
        """How it travels between processes, with its parts; Dask would make it without them."""
        return partial(type(self), where=self.where, remedy=self.remedy), (self.reason,)

    @classmethod
    def of(cls: type[Kind], error: InputError, *where: str) -> Kind:
        """The same mistake as an error of this kind, with the places that lead to it."""
        return cls(error.reason, where=(*where, *error.where), remedy=error.remedy)

    def at(self: Kind, *where: str) -> Kind:
        """The same error, with the places that lead to it.

        >>> str(InputError("missing.", where=("beta",)).at("run.toml", "system"))
        'run.toml: system: beta: missing.'
        """
        return self.of(self, *where)


class NotConverged(InputError):
    """An iteration inside an equation did not converge; the message says for which values."""


class ModelError(InputError):
    """A file of a trained model is not what it should be; the message names the file."""


class WriteError(InputError, OSError):
    """A file could not be written; what was there before is still there."""


class _Partial(BaseException):
    """A run that ended early, with what it has reached.

    Args:
        reason: why it ended, in a sentence.
        time: how far it got, the smallest time over a batch.
        trajectory: everything up to there: the saves that were reached, NaN where a member of a
            batch did not reach one, and the last state as `trajectory.final`.
        remedy: what to do, in a sentence.
    """

    def __init__(self, reason: str, *, time: float, trajectory: Any, remedy: str = ""):
        said = reason
        if remedy:
            said = f"{Fault(reason, remedy)} What was reached is in this error's .trajectory."
        super().__init__(said)
        self.reason, self.remedy = reason, remedy
        self.time = time
        self.trajectory = trajectory

    def __reduce__(self) -> Any:
        """How it travels from one process to another, where keywords would be lost."""
        more = {"time": self.time, "trajectory": self.trajectory, "remedy": self.remedy}
        return partial(type(self), **more), (self.reason,)


class IncompleteRun(_Partial, RuntimeError):
    """A run could not go on; what it reached is in its `trajectory`."""


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


def first_line(error: BaseException) -> str:
    r"""The first line of what somebody else's error says, or its name where it says nothing.

    >>> first_line(ValueError("no such thing\nat line 3")), first_line(KeyError())
    ('no such thing', 'KeyError')
    """
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
