"""Writing a run as a TOML spec that reproduces it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from attnflow.attention import BACKENDS, Backend, Causal, Given, Mask
from attnflow.errors import InputError
from attnflow.simulate import Method
from attnflow.systems import SYSTEMS, System
from attnflow.weights.couplings import COUPLINGS


def write_spec(
    system: System,
    x0: Any,
    ts: Any,
    method: Method | None = None,
    title: str | None = None,
    seed: int | None = None,
) -> str:
    """The text of a spec with these weights, tokens and times, to the last digit.

    A weight that is a function of time, or a mask or backend of one's own, is refused. The seed is
    what noise is drawn from.

    >>> import attnflow as af
    >>> print(write_spec(af.SA(beta=4.0, V=-1.0), np.eye(2), [0.0, 1.0]))
    [system]
    name = "SA"
    beta = 4.0
    V = -1.0
    <BLANKLINE>
    [start]
    tokens = [[1.0, 0.0], [0.0, 1.0]]
    <BLANKLINE>
    [times]
    values = [0.0, 1.0]
    <BLANKLINE>
    """
    tokens = np.asarray(x0)
    parts = [f"title = {_text(title)}\n"] if title else []
    if seed is not None:
        parts.append(f"seed = {seed}\n")
    if tokens.dtype == np.float32:
        parts.append('dtype = "float32"\n')
    parts.append(_table("system", _described(system)))
    parts.append(_table("start", {"tokens": tokens}))
    parts.append(_table("times", {"values": np.asarray(ts, dtype=float)}))
    if method is not None:
        numbers = {k: v for k, v in vars(method).items() if v is not None}
        parts.append(_table("method", {"name": type(method).__name__, **numbers}))
    return "\n".join(parts)


def toml_of(fields: dict[str, Any]) -> str:
    """The text of a spec that is given as a table of tables.

    >>> print(toml_of({"seed": 1, "system": {"name": "SA", "beta": 4.0}}))
    seed = 1
    <BLANKLINE>
    [system]
    name = "SA"
    beta = 4.0
    <BLANKLINE>
    """
    loose = [f"{key} = {_text(value)}\n" for key, value in fields.items() if not _is_table(value)]
    tables = [_table(key, value) for key, value in fields.items() if _is_table(value)]
    return "\n".join(["".join(loose), *tables])


def given(fields: dict[str, Any]) -> dict[str, Any]:
    """A spec without what it does not say, as TOML has no word for nothing.

    >>> given({"seed": None, "system": {"name": "SA", "V": None}})
    {'system': {'name': 'SA'}}
    """
    return {
        key: given(value) if _is_table(value) else value
        for key, value in fields.items()
        if value is not None
    }


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def _described(system: System) -> dict[str, Any]:
    name = type(system).__name__
    if name not in SYSTEMS:
        raise InputError(f"{name} is not in the table of systems, so no spec can name it.")
    fields = {name: _parameter(name, value) for name, value in system.parameters().items()}
    return {"name": name, **fields}


def _parameter(name: str, value: Any) -> Any:
    if isinstance(value, System):
        return _described(value)
    for family, coupling in COUPLINGS.items():
        if type(value) is coupling:
            return {"family": family, **vars(value)}
    if callable(value):
        what = {"h": "an angle", "phi": "distance", "W": "a vector"}.get(name, "time")
        raise InputError(f"{name} is a function of {what}, which a spec cannot hold.")
    return _called(name, value) if isinstance(value, (Mask, Backend)) else value


def _called(name: str, value: Mask | Backend) -> Any:
    """What a spec says for a mask or a backend."""
    if isinstance(value, Given):
        return value.allowed
    known = {"causal": Causal} | BACKENDS
    for word, kind in known.items():
        if value == kind():
            return word
    raise InputError(f"{name} is {value!r}, for which a spec has no word.")


def _table(name: str, fields: dict[str, Any]) -> str:
    lines = [f"{key} = {_text(value)}" for key, value in fields.items()]
    return "\n".join([f"[{name}]", *lines, ""])


def _text(value: Any) -> str:
    """A number, string or list as TOML writes it, as JSON does; a table with its equals signs."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {_text(v)}" for k, v in value.items()) + " }"
    plain = value if isinstance(value, (str, int)) else np.asarray(value).tolist()
    return json.dumps(plain, ensure_ascii=False)
