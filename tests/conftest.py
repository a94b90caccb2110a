import ctypes
import mmap
from pathlib import Path

import jax
import jaxtyping
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import attnflow  # noqa: F401

jax.config.update("jax_numpy_dtype_promotion", "strict")
# Threads of BLAS spin while they wait: on busy cores a small matrix costs 40 times as much.
threadpool_limits(1, "blas")

FULL = 3 * 2**30
"""Bytes of a process from which on compiled code is dropped after a module."""


@pytest.fixture(autouse=True, scope="module")
def bounded_memory():
    """Modules share little compiled code, and all of it together is many gigabytes."""
    yield
    pages = Path("/proc/self/statm")
    if pages.exists() and int(pages.read_text().split()[1]) * mmap.PAGESIZE > FULL:
        jax.clear_caches()
        # The C library keeps what is freed until it is asked for it.
        getattr(ctypes.CDLL(None), "malloc_trim", id)(0)


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
