"""The backends by name, and which one is taken when none is named."""

from __future__ import annotations

from typing import Any

from attnflow.attention.blocked import Blocked
from attnflow.attention.dense import Dense
from attnflow.attention.spectral import HARMONICS, Spectral
from attnflow.attention.task import Backend
from attnflow.errors import InputError, unknown

MAX_DENSE_SCORES = 2**20
"""Up to this many scores (heads × n × n) they are held at once. More leave the processor's cache,
and blocks of them are several times faster."""

BACKENDS: dict[str, type[Backend]] = {"dense": Dense, "blocked": Blocked, "spectral": Spectral}
"""The backends by name."""


def as_backend(backend: Any) -> Backend | None:
    """A backend from its name or itself; None leaves the choice to the size."""
    if backend is None or isinstance(backend, Backend):
        return backend
    if not isinstance(backend, str):
        raise InputError(f"backend must be a name or a Backend, not {backend!r}.")
    if backend not in BACKENDS:
        raise unknown("backend", backend, BACKENDS)
    return BACKENDS[backend]()


def choose(
    n: int, heads: int | None = None, sphere: int | None = None, exact: bool = False
) -> Backend:
    """The backend for n tokens: dense while all scores are few, above it spectral or blocked.

    Args:
        n: the number of tokens.
        heads: the number of heads, if there are several.
        sphere: d where queries and keys are unit vectors of R^d and there is no mask, else None.
        exact: whether forces on a sphere must be exact however small.
    """
    if (heads or 1) * n * n <= MAX_DENSE_SCORES:
        return Dense()
    return Spectral() if sphere in HARMONICS and not exact else Blocked(exact=exact)
