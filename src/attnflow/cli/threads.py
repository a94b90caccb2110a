"""Threads of BLAS, of which commands that decompose many small matrices want one."""

from __future__ import annotations

from contextlib import AbstractContextManager


def one_blas_thread() -> AbstractContextManager[object]:
    """A context in which BLAS has one thread.

    Its threads spin while they wait for each other: where cores are busy, a small matrix takes many
    times as long with two threads as with one.
    """
    import scipy.linalg  # noqa: F401, only what is loaded is limited, and jax uses SciPy's BLAS
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1, "blas")
