import ctypes
import mmap
import os
import signal
from pathlib import Path

import jax
import jaxtyping
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

# One folder of compiled programs for all workers and all the processes that tests start, kept from
# one session to the next. It must be named before attnflow is imported.
os.environ.setdefault("ATTNFLOW_CACHE", str(Path(__file__).parents[1] / ".pytest_cache/compiled"))

from attnflow.cli.check import QUICK_COMPILATION

# Tests compile much and run little: without optimisation they take less than half the time. An
# empty XLA_FLAGS compiles as for users; so do the tests of `.ci/elsewhere`.
os.environ.setdefault("XLA_FLAGS", QUICK_COMPILATION)
jax.config.update("jax_numpy_dtype_promotion", "strict")
# Threads of BLAS spin while they wait: on busy cores a small matrix costs 40 times as much.
threadpool_limits(1, "blas")
# A shell lets what runs in the background ignore Ctrl-C, and so do all processes that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config, items):
    """What takes a night runs only when it is asked for by its marker."""
    if "overnight" not in config.option.markexpr.replace("not overnight", ""):
        night = [item for item in items if item.get_closest_marker("overnight")]
        items[:] = [item for item in items if not item.get_closest_marker("overnight")]
        config.hook.pytest_deselected(items=night)


FULL, MAPPED = 3 * 2**30, 30_000
"""Bytes, and pieces of memory, of a process from which on compiled code is dropped after a module:
every program that is compiled has some pieces, and Linux ends a process with more than 65,530."""


@pytest.fixture(autouse=True, scope="module")
def bounded_memory():
    """Modules share little compiled code, and all of it together is many gigabytes."""
    yield
    pages, maps = Path("/proc/self/statm"), Path("/proc/self/maps")
    if not pages.exists():
        return
    bytes_held = int(pages.read_text().split()[1]) * mmap.PAGESIZE
    if bytes_held > FULL or maps.read_bytes().count(b"\n") > MAPPED:
        jax.clear_caches()
        # The C library keeps what is freed until it is asked for it.
        getattr(ctypes.CDLL(None), "malloc_trim", id)(0)


@pytest.fixture
def programs():
    """The names of the programs that are compiled while a test runs."""
    names = []

    def compiled(event, seconds, **details):
        if event == "/jax/core/compile/backend_compile_duration":
            names.append(details["fun_name"])

    jax.monitoring.register_event_duration_secs_listener(compiled)
    yield names
    jax.monitoring.unregister_event_duration_listener(compiled)


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
