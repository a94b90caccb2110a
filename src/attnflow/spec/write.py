"""Writing a run as a TOML spec that reproduces it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
import tomli_w

from attnflow.attention import BACKENDS, Backend, Causal, ExplicitMask, Mask
from attnflow.checks import require_finite
from attnflow.errors import InputError
from attnflow.retired import renamed_arguments
from attnflow.simulation import METHODS, Method
from attnflow.spec.read import LARGEST, parse_spec
from attnflow.systems import SYSTEMS, System
from attnflow.weights.couplings import COUPLINGS

ARGUMENTS = {
    "h": "an angle",
    "phi": "distance",
    "W": "a vector",
    "objective": "a point",
    "sigma": "a number",
}
"""What the functions in a system's parameters depend on; all others depend on time."""

ROW = re.compile(r"\[\n([^\[\]{}\"]*),\n *\]")
"""A list of numbers over several lines; a string has no line break that is not escaped."""


@renamed_arguments(seed="key")
def write_spec(
    system: System,
    x0: Any,
    ts: Any,
    method: Method | None = None,
    title: str | None = None,
    key: int | None = None,
) -> str:
    """The text of a spec with these weights, tokens and times, to the last digit.

    It raises for what a spec cannot hold: a weight that is a function of time; your own objective,
    potential, coupling, mask, backend, method or system; several starts at once. The text is read
    back to make sure that it describes the same run.

    Args:
        system: the system.
        x0: the start, shape (n, d).
        ts: the save times, shape (T,).
        method: how to integrate. By default the system's own method.
        title: a title for pictures.
        key: the integer from which noise is drawn.

    >>> import attnflow as af
    >>> print(write_spec(af.SA(beta=4.0, V=-1.0), np.eye(2), [0.0, 1.0]), end="")
    [system]
    name = "SA"
    beta = 4.0
    V = -1.0
    <BLANKLINE>
    [start]
    tokens = [
        [1.0, 0.0],
        [0.0, 1.0],
    ]
    <BLANKLINE>
    [times]
    values = [0.0, 1.0]
    """
    tokens, times = _start(x0), np.asarray(ts, dtype=float)
    require_finite(tokens, "x0")
    require_finite(times, "ts")
    fields = {
        "title": title or None,
        "key": key,
        "dtype": "float32" if tokens.dtype == np.float32 else None,
        "system": _described(system),
        "start": {"tokens": tokens},
        "times": {"values": times},
    }
    if method is not None:
        fields["method"] = {"name": _known(method, METHODS, "methods")} | vars(method)
    text = toml_of(given(fields))
    _require_same(text, system, tokens, times, method)
    return text


def toml_of(fields: dict[str, Any]) -> str:
    """The text of a spec from a table of tables.

    >>> print(toml_of({"key": 1, "system": {"name": "SA", "beta": 4.0}}), end="")
    key = 1
    <BLANKLINE>
    [system]
    name = "SA"
    beta = 4.0
    """
    return ROW.sub(_in_one_line, tomli_w.dumps(_plain(fields)))


def given(fields: dict[str, Any]) -> dict[str, Any]:
    """A spec without the fields that are None, because TOML has no null.

    >>> given({"key": None, "system": {"name": "SA", "V": None}})
    {'system': {'name': 'SA'}}
    """
    return {
        key: given(value) if isinstance(value, dict) else value
        for key, value in fields.items()
        if value is not None
    }


def _plain(value: Any) -> Any:
    """Numbers and lists of Python, as TOML has no arrays."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return np.asarray(value).tolist() if hasattr(value, "dtype") else value


def _in_one_line(row: re.Match[str]) -> str:
    return f"[{', '.join(number.strip() for number in row[1].split(','))}]"


def _start(x0: Any) -> np.ndarray:
    """The tokens of one start."""
    tokens = np.asarray(x0)
    if tokens.ndim != 2:
        raise InputError(
            f"x0 must be one start of shape (n, d) for a spec, but its shape is {tokens.shape}: "
            "write a spec for each start of a batch."
        )
    return tokens


def _known(value: Any, table: Mapping[str, Any], what: str) -> str:
    """The name of a value's class, if the name stands for this very class."""
    name = type(value).__name__
    if table.get(name) is not type(value):
        raise InputError(f"{name} is not in the table of {what}, so no spec can name it.")
    return name


def _described(system: System) -> dict[str, Any]:
    name = _known(system, SYSTEMS, "systems")
    fields = {name: _parameter(name, value) for name, value in system.parameters().items()}
    return {"name": name, **fields}


def _parameter(name: str, value: Any) -> Any:
    if isinstance(value, System):
        return _described(value)
    for family, coupling in COUPLINGS.items():
        if type(value) is coupling:
            return {"family": family, **vars(value)}
    if callable(value):
        what = ARGUMENTS.get(name, "time")
        raise InputError(f"{name} is a function of {what}, which a spec cannot hold.")
    return _called(name, value) if isinstance(value, (Mask, Backend)) else value


def _require_same(
    text: str, system: System, x0: np.ndarray, ts: np.ndarray, method: Method | None
) -> None:
    """Read a spec as others will, and refuse it where another run comes back."""
    if len(text.encode()) > LARGEST:
        raise InputError(f"the spec would be larger than {LARGEST >> 20} MiB, which is not read.")
    refusal = "a spec cannot hold this run, as it is not read again"
    try:
        run = parse_spec(tomllib.loads(text)).build()
    except InputError as error:
        raise error.at(refusal) from None
    except ValueError as error:
        raise InputError(error, where=refusal) from None
    pairs: dict[str, Any] = {"x0": (x0, run.x0), "ts": (ts, run.ts), "method": (method, run.method)}
    ours, theirs = system.parameters(), run.system.parameters()
    pairs |= {name: (value, theirs.get(name)) for name, value in ours.items()}
    pairs[type(system).__name__] = system, run.system
    for name, (given, read) in pairs.items():
        if not _same(given, read):
            raise InputError(f"a spec cannot hold {name}, which would be read as {read!r:.80}.")


def _same(a: Any, b: Any) -> bool:
    """Whether two values have equal numbers, whatever their precision, and the same functions.

    The key that a system draws from is no part of it: a spec has its own.
    """
    a, b = (jax.tree.map(_keyless, c) for c in (a, b))
    form: Any = jax.tree.structure(a)
    if form != jax.tree.structure(b):
        return False
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return all(u is v or np.array_equal(u, v) for u, v in pairs)


def _keyless(leaf: Any) -> Any:
    drawn_from = jax.dtypes.issubdtype(getattr(leaf, "dtype", float), jax.dtypes.prng_key)
    return None if drawn_from else leaf


def _called(name: str, value: Mask | Backend) -> Any:
    """What a spec says for a mask or a backend."""
    if isinstance(value, ExplicitMask):
        return value.allowed
    known = {"causal": Causal} | BACKENDS
    for word, kind in known.items():
        if value == kind():
            return word
    raise InputError(f"{name} is {value!r}, for which a spec has no word.")
