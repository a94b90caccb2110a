"""Reading specs from TOML, with errors that name the field and the nearest right value."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from attnflow.errors import InputError, unknown
from attnflow.records import refusal, require_modest
from attnflow.spec.model import RunSpec, Times
from attnflow.spec.sweep import KINDS, Range, SweepSpec

Spec = TypeVar("Spec", bound=RunSpec)
LARGEST = 16 * 2**20


def read_spec(path: str | os.PathLike[str]) -> RunSpec:
    """The run that a TOML file describes."""
    return _read(Path(path), RunSpec)


def read_sweep(path: str | os.PathLike[str]) -> SweepSpec:
    """The sweep that a TOML file describes."""
    return _read(Path(path), SweepSpec)


def _read(path: Path, model: type[Spec]) -> Spec:
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
        if len(data) > LARGEST:
            too_large = f"a spec must not be larger than {LARGEST >> 20} MiB."
            raise InputError(too_large, where=str(path))
        text = data.decode("utf-8")
    except FileNotFoundError:
        raise InputError("there is no such file.", where=str(path)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(error, where=(str(path), "cannot be read as text")) from None
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError also for a number that is too long
        raise InputError(error, where=(str(path), "not valid TOML")) from None
    try:
        return _parse(table, model)
    except InputError as error:
        raise error.at(str(path)) from None


def parse_spec(data: dict[str, Any]) -> RunSpec:
    """The run that a dictionary describes.

    >>> spec = parse_spec({"system": {"name": "SA", "beta": 4.0},
    ...                    "start": {"n": 8, "d": 3}, "times": {"stop": 5.0}})
    >>> spec.build().system
    SA(beta=4)
    """
    return _parse(data, RunSpec)


def parse_sweep(data: dict[str, Any]) -> SweepSpec:
    """The sweep that a dictionary describes.

    >>> spec = parse_sweep({"system": {"name": "SA"}, "start": {"n": 8, "d": 3},
    ...                     "times": {"stop": 5.0}, "axes": {"beta": [1.0, 4.0]},
    ...                     "keep": {"E": {"observable": "energy"}}})
    >>> spec.cell({"beta": 4.0}).build().system
    SA(beta=4)
    """
    return _parse(data, SweepSpec)


def _parse(data: dict[str, Any], model: type[Spec]) -> Spec:
    require_modest(data, "the spec")
    try:
        return model.model_validate(data)
    except ValidationError as error:
        found = [_refused(details, model) for details in error.errors()]
        raise found[0] if len(found) == 1 else InputError("; ".join(map(str, found))) from None


def default_spec() -> RunSpec:
    """What `attnflow run` shows by default: SA on S² with n = 64, β = 9, metastable for long."""
    return parse_spec(
        {
            "title": "Metastable clusters on the sphere",
            "key": 0,
            "system": {"name": "SA", "beta": 9.0},
            "start": {"name": "sphere", "n": 64, "d": 3},
            "times": {"stop": 1e4, "first": 0.1, "count": 200, "spacing": "log"},
        }
    )


def _refused(details: Any, model: type[BaseModel]) -> InputError:
    place = [str(part) for part in details["loc"] if part not in KINDS]
    where = ".".join(place) or "the spec"
    tables: dict[str, type[BaseModel]] = {"times": Times, "axes": Range}
    known = (tables.get(place[0], model) if len(place) > 1 else model).model_fields
    if details["type"] == "extra_forbidden":
        return unknown("field", place[-1], known).at(where)
    if details["type"] == "missing":
        return InputError("missing", where=where)
    if details["type"] == "literal_error":
        return unknown("value", details["input"], get_args(known[place[-1]].annotation)).at(where)
    given = details["input"]
    shown = "" if isinstance(given, (dict, list)) else f" (it is {given!r})"
    return InputError(f"{refusal(details)}{shown}", where=where)
