"""What may happen to wrong input: it is refused with a sentence, at once, at no cost."""

import contextlib
import resource
import signal
import time

from attnflow.errors import IncompleteRun, InputError

SECONDS = 60
"""No input may take so long; a compilation on busy cores takes several seconds."""

MEGABYTES = 1024
"""No input may make the process grow by so much."""

FOREIGN = ("Traceback", "pydantic", "0x7f", "jaxtyping", "site-packages", "Tracer<")
"""Words of other packages that a sentence for people does not have."""


class TooSlow(KeyboardInterrupt):
    """Passes through `except Exception`."""


def refused(action, *args):
    """The sentence with which an action refuses its input, or None if it took it.

    Any other error than `InputError`, a wait or a large allocation is a defect.
    """
    with bounded():
        try:
            action(*args)
        except InputError as error:
            require_sentence(str(error))
            return str(error)
        except IncompleteRun as error:
            return str(error)
    return None


@contextlib.contextmanager
def bounded():
    """Fail where the block takes long or much memory."""

    def stop(*_):
        raise TooSlow(f"took more than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    size, begun = _peak(), time.monotonic()
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - begun < SECONDS
    assert _peak() - size < MEGABYTES, f"grew by {_peak() - size:.0f} MB"


def require_sentence(said):
    """It says something, in words of this package, and not at endless length."""
    assert said.strip(), "an error without a word"
    assert len(said) < 4000, f"{len(said)} characters: {said[:300]}…"
    for word in FOREIGN:
        assert word not in said, said


def _peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
