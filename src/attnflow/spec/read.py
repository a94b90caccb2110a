"""Reading specs from TOML, with errors that name the field and the nearest right value."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from attnflow.errors import InputError, unknown
from attnflow.records import require_modest
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
            raise InputError(f"{path}: a spec must not be larger than {LARGEST >> 20} MiB.")
        text = data.decode("utf-8")
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as text: {error}") from None
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError also for a number that is too long
        raise InputError(f"{path}: not valid TOML: {error}") from None
    try:
        return _parse(table, model)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


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
        raise InputError("; ".join(_sentence(e, model) for e in error.errors())) from None


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


def _sentence(error: Any, model: type[BaseModel]) -> str:
    place = [str(part) for part in error["loc"] if part not in KINDS]
    where = ".".join(place) or "the spec"
    if error["type"] == "extra_forbidden":
        tables: dict[str, type[BaseModel]] = {"times": Times, "axes": Range}
        known = tables.get(place[0], model) if len(place) > 1 else model
        return f"{where}: {unknown('field', place[-1], known.model_fields)}"
    if error["type"] == "missing":
        return f"{where}: missing"
    if error["type"] == "literal_error":
        choices = [choice.strip("'") for choice in error["ctx"]["expected"].split(" or ")]
        return f"{where}: {unknown('value', error['input'], choices)}"
    message = error["msg"].removeprefix("Value error, ")
    given = "" if isinstance(error["input"], (dict, list)) else f" (it is {error['input']!r})"
    return f"{where}: {message[0].lower()}{message[1:]}{given}"
