"""JSON files that may not be what they claim."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

from attnflow.errors import InputError

MAX_JSON_BYTES = 2**26
"""No JSON file that is read whole has more bytes than this."""

MAX_DEPTH = 64
"""Tables inside tables, so often; what is deeper can neither be shown nor compared."""

MAX_INTEGER_BITS = 10_000
"""Bits of a whole number; Python refuses to show one that is longer."""

Kind = TypeVar("Kind")


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
        raise InputError(f"{path} is no JSON: {error}.") from None
    require_modest(data, str(path))
    return data


def read_record(path: Path, kind: type[Kind], what: str) -> Kind:
    """A dataclass from the JSON file of its fields; an error says that it is no `what`, and why."""
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(kind).validate_python(read_json(path))
    except InputError as error:
        raise InputError(f"{path} is no {what}: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        said = f"{place}: {first['msg']}" if place else first["msg"]
        raise InputError(f"{path} is no {what}: {said}.") from None


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
