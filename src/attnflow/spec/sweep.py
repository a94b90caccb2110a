"""The spec of a sweep: a run, the axes along which it varies, and what to save."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

from attnflow.errors import InputError
from attnflow.spec.model import Named, RunSpec

SHORT = {"beta": "system.beta", "n": "start.n", "d": "start.d"}
"""Short names of axes."""

PLACES = ("system", "start", "method")
MOST_CELLS = 10_000_000
RECORDS = "blocks"
RESERVED = ("time", "unfinished", RECORDS)
"""Names that every store uses: a coordinate, an array and a group."""

Finite = Annotated[float, Field(allow_inf_nan=False)]

SUFFIXES = ("error", "quantiles", "quantile")
"""Next to the mean of E a store has E_error and so on; the dimensions of E are E_0, E_1, …"""


class Range(BaseModel):
    """Evenly spaced numbers.

    Attributes:
        start: the first number.
        stop: the last number.
        count: how many numbers.
        spacing: `"linear"`, or `"log"` for a log scale.

    >>> Range(start=1, stop=100, count=3, spacing="log").values()
    [1.0, 10.0, 100.0]
    """

    model_config = ConfigDict(extra="forbid")

    start: Finite
    stop: Finite
    count: Annotated[int, Field(ge=1, le=10_000_000)]
    spacing: Literal["linear", "log"] = "linear"

    @model_validator(mode="after")
    def _positive(self) -> Range:
        if self.spacing == "log" and not (self.start > 0 and self.stop > 0):
            raise ValueError("log spacing needs start and stop above 0")
        return self

    def values(self) -> list[float]:
        """The numbers."""
        return self.array().tolist()

    def array(self) -> np.ndarray:
        """The numbers as an array."""
        between = np.linspace if self.spacing == "linear" else np.geomspace
        return between(self.start, self.stop, self.count)


class Cases(BaseModel):
    """Named values, each a table of fields of the run such as `system.V`."""

    model_config = ConfigDict(extra="forbid")

    cases: Annotated[dict[str, dict[str, Any]], Field(min_length=1)]


KINDS = ("an axis: a range", "an axis: cases", "an axis: values")


def _kind(given: Any) -> str:
    if isinstance(given, (list, tuple)):
        return KINDS[2]
    cases = isinstance(given, Cases) or (isinstance(given, dict) and "cases" in given)
    return KINDS[1] if cases else KINDS[0]


Values = Annotated[
    Annotated[Range, Tag(KINDS[0])]
    | Annotated[Cases, Tag(KINDS[1])]
    | Annotated[list[Any], Field(min_length=1), Tag(KINDS[2])],
    Discriminator(_kind),
]
"""The ways to give the values of an axis."""


class Keep(BaseModel):
    """An observable to save, with its own parameters as further fields.

    Mean and standard error over the realisations are always saved.

    Attributes:
        observable: the name of a function of `observe`.
        quantiles: quantiles over the realisations to save as well, from 0 to 1.
    """

    model_config = ConfigDict(extra="allow")

    observable: str
    quantiles: list[Annotated[float, Field(ge=0, le=1)]] = []

    @model_validator(mode="after")
    def _different(self) -> Keep:
        if len(set(self.quantiles)) < len(self.quantiles):
            raise ValueError("quantiles: one of them appears twice")
        return self

    def parameters(self) -> dict[str, Any]:
        """The parameters of the observable other than the state."""
        return dict(self.model_extra or {})


class SweepSpec(RunSpec):
    """A grid of runs: every combination of values on the axes, with several realisations each.

    It has all fields of `RunSpec`, and these:

    Attributes:
        realisations: number of runs in each cell, with different random numbers.
        axes: the values of each axis, by the field that varies: `beta`, `system.V`, ….
        keep: the observables to save, by the names they get in the store.
    """

    realisations: Annotated[int, Field(ge=1, le=10_000_000)] = 1
    axes: dict[str, Values]
    keep: Annotated[dict[str, Keep], Field(min_length=1)]

    @model_validator(mode="after")
    def _places(self) -> SweepSpec:
        for name, given in self.axes.items():
            paths = [name]
            if isinstance(given, Cases):
                paths = [field for case in given.cases.values() for field in case]
            for each in paths:
                place, _, field = path(each).partition(".")
                if place not in PLACES or not field:
                    raise ValueError(
                        f"axes.{name}: {each!r} must say where it belongs, such as system.beta, "
                        "start.n or method.rtol"
                    )
        return self

    @model_validator(mode="after")
    def _sizes(self) -> SweepSpec:
        cells = math.prod(self.size(axis) for axis in self.axes)
        if cells > MOST_CELLS:
            raise ValueError(f"axes: {cells:,} cells are more than {MOST_CELLS:,}")
        return self

    @model_validator(mode="after")
    def _fields(self) -> SweepSpec:
        """No two axes set the same field, and no axis repeats a value."""
        setters: dict[str, str] = {}
        for axis, given in self.axes.items():
            cases = given.cases if isinstance(given, Cases) else {"": {axis: None}}
            for case, table in cases.items():
                own: dict[str, str] = {}
                for name in table:
                    for field, first in (setters | own).items():
                        if f"{field}.".startswith(f"{path(name)}."):
                            raise ValueError(
                                f"axes.{axis}: {name} sets {field}, which {first} sets already: "
                                "leave out one of them"
                            )
                    own[path(name)] = f"{name} of the case {case}"
            setters |= {path(name): f"axes.{axis}" for table in cases.values() for name in table}
            if twice := _repeated(given):
                raise ValueError(f"axes.{axis}: {twice[0]!r} appears twice")
        return self

    @model_validator(mode="after")
    def _names(self) -> SweepSpec:
        """All names in a store are different."""
        taken = dict.fromkeys(RESERVED, "every store")
        for axis in self.axes:
            if axis in taken or "/" in axis:
                raise ValueError(
                    f"axes.{axis}: choose another name, without a slash and not one of "
                    f"{', '.join(RESERVED)}"
                )
            taken[axis] = f"axes.{axis}"
        for name in self.keep:
            if not name.isidentifier():
                raise ValueError(f"keep.{name}: choose another name, of letters, digits and _")
            for made in (name, *(f"{name}_{suffix}" for suffix in SUFFIXES)):
                if made in taken:
                    raise ValueError(
                        f"keep.{name}: choose another name, because {taken[made]} also has {made}"
                    )
                taken[made] = f"keep.{name}"
        for name in (*self.axes, *self.keep):
            stem, _, number = name.rpartition("_")
            if stem in self.keep and number.isdecimal():
                raise ValueError(
                    f"keep.{stem}: choose another name, because {taken[name]} has the name of one "
                    "of its dimensions"
                )
        return self

    def size(self, axis: str) -> int:
        """The number of values of an axis."""
        given = self.axes[axis]
        if isinstance(given, Range):
            return given.count
        return len(given.cases if isinstance(given, Cases) else given)

    def values(self, axis: str) -> list[Any]:
        """The values of an axis, or the names of its cases."""
        given = self.axes[axis]
        if isinstance(given, Cases):
            return list(given.cases)
        return given.values() if isinstance(given, Range) else list(given)

    def cell(self, values: Mapping[str, Any]) -> RunSpec:
        """The run at the given values of the axes. Values may be traced."""
        fields = {name: getattr(self, name) for name in RunSpec.model_fields}
        parts = {place: fields[place] for place in PLACES}
        for axis, value in values.items():
            given = self.axes[axis]
            changes = given.cases[value] if isinstance(given, Cases) else {axis: value}
            for name, new in changes.items():
                place, _, field = path(name).partition(".")
                parts[place] = _with(parts[place], field.split("."), new, axis)
        return RunSpec.model_construct(**fields | parts)


def path(axis: str) -> str:
    """The field that an axis sets: `beta` is `system.beta`.

    >>> path("beta"), path("start.spread")
    ('system.beta', 'start.spread')
    """
    return SHORT.get(axis, axis)


def _with(part: Named | None, field: list[str], value: Any, axis: str) -> Named:
    """A part of a spec with one of its fields replaced."""
    if part is None:
        raise InputError(f"axes.{axis}: the spec has no [method] to vary: add one.")
    if field == ["name"]:
        return part.model_copy(update={"name": value})
    extra: Any = dict(part.model_extra or {})
    inner = extra
    for name in field[:-1]:
        if not isinstance(inner.get(name), dict):
            raise InputError(f"axes.{axis}: {name} is not a table in the spec.")
        inner[name] = dict(inner[name])
        inner = inner[name]
    inner[field[-1]] = value
    copy = part.model_copy()
    object.__setattr__(copy, "__pydantic_extra__", extra)
    return copy


def _repeated(given: Range | Cases | list[Any]) -> list[Any]:
    """A value that appears twice on an axis, as a list; empty if there is none."""
    if isinstance(given, Cases):
        return []
    if isinstance(given, Range):
        values = given.array()
        return values[1:][np.diff(values) == 0][:1].tolist()
    seen: set[Any] = set()
    for value in given:
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        word = value if number else json.dumps(value, sort_keys=True, default=str)
        if word in seen:
            return [value]
        seen.add(word)
    return []


def flat(value: Any, name: str = "") -> dict[str, Any]:
    """The leaves of nested tables by dotted name.

    >>> flat({"a": {"b": 1}, "c": [2]})
    {'a.b': 1, 'c': [2]}
    """
    if not isinstance(value, dict) or not value:
        return {name: value}
    inner = (flat(each, f"{name}.{key}".strip(".")) for key, each in value.items())
    return {k: v for part in inner for k, v in part.items()}
