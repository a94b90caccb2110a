"""What a sweep says: a run, the axes along which it varies, and what is kept of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

from attnflow.errors import InputError
from attnflow.spec.model import Named, RunSpec

SHORT = {"beta": "system.beta", "n": "start.n", "d": "start.d"}
"""Axes that may be named without saying where they belong."""

PLACES = ("system", "start", "method")
MOST_CELLS = 10_000_000
RESERVED = ("time", "unfinished")
Finite = Annotated[float, Field(allow_inf_nan=False)]


class Range(BaseModel):
    """`count` numbers from `start` to `stop`, evenly or on a log scale.

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
            raise ValueError("a log spacing needs start and stop above 0")
        return self

    def values(self) -> list[float]:
        """The numbers."""
        between = np.linspace if self.spacing == "linear" else np.geomspace
        return [float(v) for v in between(self.start, self.stop, self.count)]


class Cases(BaseModel):
    """Values with names: each is a table of fields of the run, such as `system.V`."""

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
"""How the values of an axis may be given."""


class Keep(BaseModel):
    """An observable with its own parameters, and which quantiles of its values are kept.

    Mean and standard error over the realisations are always kept.
    """

    model_config = ConfigDict(extra="allow")

    observable: str
    quantiles: list[Annotated[float, Field(ge=0, le=1)]] = []

    def parameters(self) -> dict[str, Any]:
        """What the observable takes besides the state."""
        return dict(self.model_extra or {})


class SweepSpec(RunSpec):
    """A grid of runs: every combination of the axes' values, each with its realisations."""

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
    def _names(self) -> SweepSpec:
        for name in self.keep:
            if name in self.axes or name in RESERVED or not name.isidentifier():
                raise ValueError(f"keep.{name}: choose another name, which is a word of its own")
        return self

    def size(self, axis: str) -> int:
        """The number of values of an axis."""
        given = self.axes[axis]
        if isinstance(given, Range):
            return given.count
        return len(given.cases if isinstance(given, Cases) else given)

    def values(self, axis: str) -> list[Any]:
        """The values of an axis; of cases their names."""
        given = self.axes[axis]
        if isinstance(given, Cases):
            return list(given.cases)
        return given.values() if isinstance(given, Range) else list(given)

    def cell(self, values: Mapping[str, Any]) -> RunSpec:
        """The run at the given values of the axes, which may be traced."""
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
    """Where the values of an axis go: `beta` is `system.beta`.

    >>> path("beta"), path("start.spread")
    ('system.beta', 'start.spread')
    """
    return SHORT.get(axis, axis)


def _with(part: Named | None, field: list[str], value: Any, axis: str) -> Named:
    """The part of a spec with one of its fields replaced."""
    if part is None:
        raise InputError(f"axes.{axis}: there is no [method] in the spec whose field could vary.")
    if field == ["name"]:
        return part.model_copy(update={"name": value})
    extra: Any = dict(part.model_extra or {})
    inner = extra
    for name in field[:-1]:
        if not isinstance(inner.get(name), dict):
            raise InputError(f"axes.{axis}: {name} is no table in the spec.")
        inner[name] = dict(inner[name])
        inner = inner[name]
    inner[field[-1]] = value
    copy = part.model_copy()
    object.__setattr__(copy, "__pydantic_extra__", extra)
    return copy
