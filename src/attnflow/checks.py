"""Checks of values at the boundary, before any work starts. Traced values pass unseen."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attnflow.errors import InputError

NO_NUMBERS = (TypeError, ValueError, OverflowError)
"""What is raised where something cannot be made an array of numbers."""


SHARED_DTYPES = {np.dtype(name) for name in "?bhilqBHILQefd"}
"""Types of NumPy's arrays that JAX has, too."""


def is_traced(tree: Any) -> bool:
    """Whether any leaf is a tracer, so that its value cannot be looked at."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(tree))


def as_array(value: Any) -> Array:
    """A copy on the device, as of `jnp.asarray`, which compiles a program for each new shape.

    >>> print(as_array([1, 2]))
    [1 2]
    """
    if isinstance(value, jax.Array):
        return value
    if isinstance(value, (float, int)):
        return jax.device_put(value)
    plain = isinstance(value, (list, tuple)) and all(
        isinstance(leaf, (float, int)) for leaf in jax.tree.leaves(value)
    )
    if not plain and not (type(value) is np.ndarray and value.dtype.kind in "biuf"):
        return jnp.asarray(value)
    array = np.array(value)
    if array.dtype not in SHARED_DTYPES:
        array = array.astype(float if array.dtype.kind == "f" else int)
    dtype = jax.dtypes.canonicalize_dtype(array.dtype)
    if array.dtype.kind in "iu" and (array != array.astype(dtype)).any():
        raise OverflowError(f"integers that {dtype} cannot hold")
    return jax.device_put(array)


def as_floats(value: Any) -> Array:
    """An array of floats: integers are converted, floats keep their precision.

    >>> print(as_floats([1, 2]))
    [1. 2.]
    """
    array = as_array(value)
    if jnp.issubdtype(array.dtype, jnp.floating):
        return array
    whole = jnp.issubdtype(array.dtype, jnp.integer)
    return on_host(lambda x: x.astype(float), array) if whole else array.astype(float)


def are_numpys(*arrays: Array) -> bool:
    """Whether the values of all arrays are known, and of types that are NumPy's own."""
    return not is_traced(arrays) and all(array.dtype.kind in "biuf" for array in arrays)


def on_host(fn: Callable[..., Any], *arrays: Array) -> Array:
    """`fn` of arrays by NumPy: what is done once is not worth a compiled program.

    Traced arrays, and those of types that NumPy does not know, are given to `fn` as they are.

    Args:
        fn: a function of NumPy's arrays and of JAX's alike.
        arrays: its arguments; the result is where the first of them is.
    """
    if not are_numpys(*arrays):
        return fn(*arrays)
    result = fn(*(np.asarray(array) for array in arrays))
    return jax.device_put(result, arrays[0].sharding if arrays[0].committed else None)


def as_number(value: Any, name: str) -> Array:
    """A single real number as an array leaf, so that a new value recompiles nothing.

    >>> print(as_number(2, "beta"))
    2.0
    """
    whole = isinstance(value, int) and not isinstance(value, bool)
    try:
        array = as_array(float(value) if whole else value)
    except NO_NUMBERS:
        raise InputError(f"{name} must be a number, not {value!r}.") from None
    if array.ndim != 0 or array.dtype.kind not in "fiu":
        raise InputError(f"{name} must be a single real number, not {value!r}.")
    array = as_floats(array)
    require_finite(array, name)
    return array


def require_state(
    x: Any, masses: Any = None, name: str = "x", name_of_masses: str = "masses"
) -> None:
    """Refuse anything but tokens (n, d) and, where there are any, masses (n,)."""
    shape = np.shape(x)
    if len(shape) != 2 or 0 in shape:
        raise InputError(
            f"{name} must have shape (n, d), one row for each token, but its shape is {shape}."
        )
    if masses is not None and np.shape(masses) != shape[:1]:
        raise InputError(
            f"{name_of_masses} must have shape {shape[:1]}, one for each token, but its shape is "
            f"{np.shape(masses)}."
        )


def require_finite(value: Any, name: str) -> None:
    """Refuse NaN and infinity, saying where the first one is."""
    if value is None or is_traced(value):
        return
    bad = ~np.isfinite(np.asarray(value))
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        place = f" at index {where}" if where else ""
        raise InputError(
            f"{name} must be finite, but it has {int(bad.sum())} NaN or infinite "
            f"{'entry' if bad.sum() == 1 else 'entries'}{place}."
        )


def require_directions(x: Any, name: str = "x0") -> None:
    """Refuse a token at the origin, which cannot be normalised."""
    if not is_traced(x) and not bool(np.all(np.any(np.asarray(x) != 0, axis=-1))):
        raise InputError(f"{name} has a token at the origin, which cannot be normalised.")


def require_positive(value: Any, name: str) -> None:
    """Refuse anything but a single number that is finite and above zero."""
    if is_traced(value):
        return
    try:
        right = np.ndim(value) == 0 and np.asarray(value).dtype.kind in "fiu"
        right = right and 0 < float(value) < math.inf
    except NO_NUMBERS:
        right = False
    if not right:
        raise InputError(f"{name} must be a finite number above 0, but it is {value!r}.")


def as_positive(value: Any, name: str) -> Array:
    """A single number above zero, as an array of the default precision."""
    require_positive(value, name)
    if is_traced(value):
        return jnp.asarray(value, float)
    return jax.device_put(np.array(value, jax.dtypes.canonicalize_dtype(float)))


def require_nonnegative(value: Any, name: str) -> None:
    """Refuse a number, or an array with an entry, that is not finite or is below zero."""
    if is_traced(value):
        return
    require_finite(value, name)
    least = np.min(np.asarray(value), initial=0)
    if least < 0:
        raise InputError(f"{name} must be at least 0, but it is {float(least):g}.")


def require_count(value: Any, name: str, least: int = 1, bits: int | None = 63) -> int:
    """A whole number of at least `least`, and below 2^bits where `bits` are given; or an error."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}, not {value!r}.")
    if bits is not None and value >= 2**bits:
        raise InputError(f"{name} must be a whole number below 2^{bits}.")
    return int(value)


def available_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def available_memory() -> int | None:
    """Bytes of memory that a new allocation could get, where the system tells."""
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def require_memory(needed: float | int, what: str, remedy: str) -> None:
    """Refuse work that would need more memory than there is, with the numbers."""
    available = available_memory()
    if available is not None and needed > available:
        raise InputError(
            f"{what} would need about {needed / 2**30:,.1f} GiB of memory and "
            f"{available / 2**30:,.1f} GiB are available: {remedy}."
        )
