import jax
import jaxtyping
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import attnflow  # noqa: F401

jax.config.update("jax_numpy_dtype_promotion", "strict")
# Threads of BLAS spin while they wait: on busy cores a small matrix costs 40 times as much.
threadpool_limits(1, "blas")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def untyped(monkeypatch):
    """Without type checks at run time, as in a user's session: the library's own errors show."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to work in, with its own cache, as a newcomer's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path
