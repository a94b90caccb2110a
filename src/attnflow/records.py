"""JSON files: written whole, and read with care, as they may not be what they claim."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from attnflow.errors import InputError
from attnflow.files import atomic_write_text

MAX_JSON_BYTES = 2**26
"""No JSON file that is read whole has more bytes than this."""

MAX_DEPTH = 64
"""Tables inside tables, so often; what is deeper can neither be shown nor compared."""

MAX_INTEGER_BITS = 10_000
"""Bits of a whole number; Python refuses to show one that is longer."""

Kind = TypeVar("Kind")


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON; whoever reads the file sees all of it, or what was there before."""
    atomic_write_text(path, json_text(value))


def json_text(value: Any) -> str:
    """A value as the text of a JSON file.

    >>> print(json_text({"β": float("nan")}), end="")
    {
     "β": "nan"
    }
    """
    return json.dumps(plain(value), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def plain(value: Any, not_finite: Callable[[float], Any] = str) -> Any:
    """A value in the terms of JSON.

    Dataclasses and named tuples become tables, arrays lists, complex numbers pairs. What is not
    finite, for which JSON has no number, becomes what `not_finite` makes of it: a word.

    >>> plain({"r": np.array([0.5, np.inf]), "z": 1 + 2j})
    {'r': [0.5, 'inf'], 'z': [1.0, 2.0]}
    """
    if is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    elif isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    elif isinstance(value, complex):
        value = [value.real, value.imag]
    elif hasattr(value, "tolist"):
        return plain(np.asarray(value).tolist(), not_finite)
    if isinstance(value, dict):
        return {str(key): plain(entry, not_finite) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry, not_finite) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return not_finite(value)
    return value


def read_json(path: Path) -> Any:
    """What a JSON file holds, or an error that names the file and says what is wrong with it."""
    try:
        if not path.is_file():
            raise InputError(f"{path}: there is no such file.")
        if path.stat().st_size > MAX_JSON_BYTES:
            raise InputError(f"{path} has {path.stat().st_size:,} bytes, too many for such a file.")
        data = json.loads(path.read_text(encoding="utf-8"))
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{error}.", where=f"{path} is no JSON") from None
    require_modest(data, str(path))
    return data


def read_record(path: Path, kind: type[Kind], what: str) -> Kind:
    """A dataclass from the JSON file of its fields; an error says that it is no `what`, and why."""
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(kind).validate_python(read_json(path))
    except InputError as error:
        raise error.at(f"{path} is no {what}") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = [".".join(map(str, first["loc"]))] if first["loc"] else []
        raise InputError(f"{refusal(first)}.", where=(f"{path} is no {what}", *place)) from None


def refusal(details: Any) -> str:
    """Why pydantic refuses a field: in the words of our validator, or in its own.

    >>> refusal({"msg": "Value error, no", "ctx": {"error": ValueError("no")}})
    'no'
    >>> refusal({"msg": "Input should be greater than 0", "ctx": {"gt": 0}})
    'input should be greater than 0'
    """
    ours = details.get("ctx", {}).get("error")
    if isinstance(ours, Exception):
        return str(ours)
    first, *rest = details["msg"]
    return "".join([first.lower(), *rest])


def require_modest(data: Any, name: str) -> None:
    """Refuse tables and lists nested deeper, and numbers longer, than anyone would write them."""
    level = [data]
    for _ in range(MAX_DEPTH):
        if any(isinstance(value, int) and value.bit_length() > MAX_INTEGER_BITS for value in level):
            raise InputError(f"{name}: a whole number in it has more than {MAX_INTEGER_BITS} bits.")
        level = [inner for value in level for inner in _inside(value)]
        if not level:
            return
    raise InputError(f"{name}: tables and lists are nested more than {MAX_DEPTH} deep.")


def _inside(value: Any) -> Any:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, (list, tuple)) else ()
