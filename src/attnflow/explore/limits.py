"""How large a run the page takes: beyond these sizes it says so before any work."""

from __future__ import annotations

from attnflow.errors import InputError

MAX_TOKENS, MAX_DIMENSIONS, MAX_HEADS = 2000, 64, 16
MAX_TIME, MAX_NOISE = 1e6, 10.0
MAX_TYPED_CHARS = 20_000
"""Letters of a typed matrix."""

MAX_LAYERS = 400
FRAMES = 81
"""Moments that are kept of a flow."""

MAX_STEP, MAX_STEPS = 0.05, 100_000
"""A fixed step is no longer than this, and a run has no more of them."""

MAX_ENTRIES = 2_000_000
"""Entries of all tokens at all moments."""

MAX_REQUEST_BYTES = 2**20
"""Bytes of a request."""

MAX_SECONDS = 60.0
"""A run that takes longer is ended."""


def check_layers(until: float) -> None:
    """Refuse too many layers, and none."""
    if until > MAX_LAYERS:
        raise InputError(f"Until t: at most {MAX_LAYERS} layers are run here, but it is {until:g}.")
    if until < 1:
        raise InputError(f"Until t: layers are counted by whole numbers, but it is {until:g}.")


def check_steps(until: float) -> None:
    """Refuse more fixed steps than are taken."""
    if until > MAX_STEP * MAX_STEPS:
        raise InputError(
            f"Until t: fixed steps, which noise needs too, are at most {MAX_STEP:g} long and at "
            f"most {MAX_STEPS:,} here, so t goes to {MAX_STEP * MAX_STEPS:,.0f}, "
            f"but it is {until:g}."
        )


def check_size(n: int, d: int, moments: int) -> None:
    """Refuse more numbers than are kept."""
    numbers = moments * n * d
    if numbers > MAX_ENTRIES:
        raise InputError(
            f"Tokens n: {n} tokens in R^{d} at {moments} moments are {numbers:,} numbers; at most "
            f"{MAX_ENTRIES:,} are kept here. `attnflow run` has no such limit."
        )
