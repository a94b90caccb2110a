"""How large a run the page takes: beyond these sizes it says so before any work."""

from __future__ import annotations

from attnflow.errors import InputError

TOKENS, DIMENSIONS, HEADS = 2000, 64, 16
TIME, NOISE = 1e6, 10.0
TYPED = 20_000
"""Letters of a typed matrix."""

LAYERS = 400
FRAMES = 81
"""Moments that are kept of a flow."""

NUMBERS = 2_000_000
"""Entries of all tokens at all moments."""

BODY = 2**20
"""Bytes of a request."""

SECONDS = 60.0
"""A run that takes longer is ended."""


def check_layers(until: float) -> None:
    """Refuse too many layers, and none."""
    if until > LAYERS:
        raise InputError(f"until: at most {LAYERS} layers are run here, but it is {until:g}.")
    if until < 1:
        raise InputError(f"until: layers are counted by whole numbers, but it is {until:g}.")


def check_size(n: int, d: int, moments: int) -> None:
    """Refuse more numbers than are kept."""
    numbers = moments * n * d
    if numbers > NUMBERS:
        raise InputError(
            f"n: {n} tokens in R^{d} at {moments} moments are {numbers:,} numbers; at most "
            f"{NUMBERS:,} are kept here. `attnflow run` has no such limit."
        )
