"""Attacks are on what a user has: no checks of types at run time, and a small machine."""

import jaxtyping
import pytest

from attnflow import checks

collect_ignore = ["atheris_targets.py"]
"""It needs a package that runs where libFuzzer does."""


@pytest.fixture(autouse=True, scope="module")
def as_a_user_has_it():
    """Without jaxtyping's checks, so that the package's own errors show."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jaxtyping.config, "jaxtyping_disable", True)
        patch.setattr(checks, "available_memory", lambda: 2 * 2**30)
        yield
