"""The form of the flow view, and how it becomes an address, a spec, and Python."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from attnflow import initial
from attnflow.errors import InputError, unknown
from attnflow.explore import limits
from attnflow.explore.address import Address
from attnflow.spec import RunSpec
from attnflow.systems import SYSTEMS
from attnflow.systems.presets import MATRIX, Preset


class DeclaredPresets(Mapping[str, Preset]):
    """The run that each system declares; `Noisy` has none, as it is any of the others with noise.

    It looks into the table of systems each time, so that systems can be added to it.
    """

    def __getitem__(self, name: str) -> Preset:
        preset = SYSTEMS[name].preset
        if preset is None:
            raise KeyError(name)
        return preset

    def __iter__(self) -> Iterator[str]:
        return (name for name, system in SYSTEMS.items() if system.preset is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


PRESETS = DeclaredPresets()

NUMBER_LABELS = {
    "beta": "β",
    "radius": "Radius",
    "bandwidth": "Bandwidth",
    "eta": "Noise η",
    "alpha": "α",
}

RANDOM = ("ginibre", "wigner", "goe", "wishart", "perron")
FAMILIES = ("identity", "minus identity", *RANDOM, "typed")
STARTS = ("sphere", "hemisphere", "orthogonal", "clustered", "cube", "gaussian", "circle")
METHODS = ("adaptive", "fixed", "layers", "coarsening")

FIXED_DIMENSIONS = {"circle": 2, "angles": 1}
"""The d of starts that leave no choice."""

MATRICES = ("scores", "values", "heads")
"""Fields for systems with Q, K and V."""

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
Number = Annotated[float, Field(ge=-1e4, le=1e4, allow_inf_nan=False)]


class Form(Address):
    """The fields of the form.

    Attributes:
        system: the name of the system.
        number: its main parameter: β, K, a radius, ….
        n: number of tokens.
        d: dimension of the tokens.
        heads: number of heads.
        scores: the matrix QᵀK: the name of a family, or `"typed"`.
        scores_typed: rows of numbers for QᵀK, if it is typed.
        values: the matrix V: the name of a family, or `"typed"`.
        values_typed: rows of numbers for V, if it is typed.
        start: the name of the start.
        method: how to integrate.
        until: the last time.
        noise: strength σ of the noise.
        key: the integer from which everything random is drawn.
    """

    labels: ClassVar[Mapping[str, str]] = {
        "system": "System",
        "key": "Key",
        "n": "Tokens n",
        "d": "Dimension d",
        "until": "Until t",
        "noise": "Noise σ",
        "start": "Start",
        "method": "Method",
        "scores": "QᵀK",
        "scores_typed": "QᵀK, typed: rows of numbers",
        "values": "V",
        "values_typed": "V, typed: rows of numbers",
        "heads": "Heads",
    }

    system: str = "SA"
    number: Number = 4.0
    n: Annotated[int, Field(ge=1, le=limits.MAX_TOKENS)] = 200
    d: Annotated[int, Field(ge=1, le=limits.MAX_DIMENSIONS)] = 3
    heads: Annotated[int, Field(ge=1, le=limits.MAX_HEADS)] = 1
    scores: Literal[FAMILIES] = "identity"  # type: ignore[valid-type]
    scores_typed: Annotated[str, Field(max_length=limits.MAX_TYPED_CHARS)] = ""
    values: Literal[FAMILIES] = "identity"  # type: ignore[valid-type]
    values_typed: Annotated[str, Field(max_length=limits.MAX_TYPED_CHARS)] = ""
    start: Literal[(*STARTS, "angles", "ellipsoid")] = "sphere"  # type: ignore[valid-type]
    method: Literal[METHODS] = "adaptive"  # type: ignore[valid-type]
    until: Annotated[float, Field(gt=0, le=limits.MAX_TIME)] = 12.0
    noise: Annotated[float, Field(ge=0, le=limits.MAX_NOISE)] = 0.0
    key: Annotated[int, Field(ge=0, lt=2**31)] = 0

    def check(self) -> None:
        """Raise if the system is unknown or a size is too large."""
        if self.system not in PRESETS:
            raise unknown("system", self.system, PRESETS).at("System")
        self._check_matrices()
        if self.layered:
            limits.check_layers(self.until)
        elif self.noisy or self.method == "fixed":
            limits.check_steps(self.until)
        limits.check_size(
            self.n, self.width, int(self.until) + 1 if self.layered else limits.FRAMES
        )

    def _check_matrices(self) -> None:
        """Raise if the system has no matrices to choose, or if all heads are equal."""
        if not takes_matrices(self.system):
            for name in MATRICES:
                if getattr(self, name) != (default := type(self).model_fields[name].default):
                    raise InputError(
                        f"{self.labels[name]}: {self.system} has no matrices to choose, so this "
                        f"must be {default}."
                    )
        if self.heads > 1 and not {self.scores, self.values} & set(RANDOM):
            raise InputError(
                f"Heads: {self.heads} equal heads are one with {self.heads} times its V; choose a "
                f"random family for QᵀK or V, such as {RANDOM[0]}."
            )

    @classmethod
    def label(cls, name: str, fields: Mapping[str, Any]) -> str:
        """The label of a field; that of `number` depends on the system."""
        system = str(fields.get("system", cls.model_fields["system"].default))
        if name == "number" and system in PRESETS:
            return label_of(system) or name
        return super().label(name, fields)

    @classmethod
    def preset(cls, system: str) -> Form:
        """The form with the default values of a system."""
        row = PRESETS[system]
        return cls(
            system=system,
            number=row.value,
            n=row.n,
            d=row.d if row.of_rows is None else row.of_rows,
            start=row.start,
            until=row.until,
            method="layers" if is_map(system) else row.method,
        )

    def spec(self) -> dict[str, Any]:
        """The run as a spec."""
        parts: dict[str, Any] = {
            "title": f"{self.system} in the explorer",
            "key": self.key,
            "system": self._system(),
            "start": self._start(),
            "times": self._times(),
        }
        method = self._method()
        return parts | ({"method": method} if method else {})

    def build(self) -> RunSpec:
        """The spec, checked."""
        return RunSpec.model_validate(self.spec())

    @property
    def layered(self) -> bool:
        """Whether the run takes whole layers."""
        return self.method == "layers" or is_map(self.system)

    @property
    def noisy(self) -> bool:
        """Whether the run has noise, of its own or added."""
        return self.noise > 0 or self.system == "CBO"

    @property
    def width(self) -> int:
        """The dimension of the tokens, which some starts fix."""
        return FIXED_DIMENSIONS.get(self.start, self.d)

    def _system(self) -> dict[str, Any]:
        row = PRESETS[self.system]
        fields: dict[str, Any] = {"name": self.system}
        if row.number is not None:
            fields[row.number] = self.number
        fields |= row.arguments(self.width)
        if takes_matrices(self.system):
            for name, label, family, typed in (
                ("K", "QᵀK", self.scores, self.scores_typed),
                ("V", "V", self.values, self.values_typed),
            ):
                weight = self._weight(label, family, typed)
                if weight is not None:
                    fields[name] = weight
        if self.noise > 0:
            return {"name": "Noisy", "sigma": self.noise, "system": fields}
        return fields

    def _weight(self, label: str, family: str, typed: str) -> Any:
        if family == "typed":
            return typed_matrix(typed, self.width, label)
        if family in ("identity", "minus identity"):
            return None if family == "identity" else -1.0
        table: dict[str, Any] = {"family": family}
        if family != "wishart":
            table["scale"] = 1 / math.sqrt(self.width)
        return table | ({"heads": self.heads} if self.heads > 1 else {})

    def _start(self) -> dict[str, Any]:
        if self.start == "ellipsoid":
            D = np.asarray(PRESETS["EllipsoidAttention"].arguments(self.d)["D"])
            tokens = np.asarray(initial.sphere(self.n, self.d, key=self.key)) * D
            return {"tokens": tokens.tolist()}
        fields: dict[str, Any] = {"name": self.start, "n": self.n}
        if self.start not in FIXED_DIMENSIONS:
            fields["d"] = self.d
        if self.start == "cube":
            fields["side"] = PRESETS[self.system].side
        return fields

    def _times(self) -> dict[str, Any]:
        if self.layered:
            return {"values": [float(k) for k in range(int(self.until) + 1)]}
        return {"stop": self.until, "count": limits.FRAMES}

    def _method(self) -> dict[str, Any] | None:
        between = self.until / (limits.FRAMES - 1)
        dt = between / max(8, math.ceil(between / limits.MAX_STEP))
        if self.noisy and not self.layered:
            return {"name": "Fixed", "dt": dt, "solver": "euler"}
        return {
            "adaptive": None,
            "fixed": {"name": "Fixed", "dt": dt},
            "layers": {"name": "Layers", "dt": 1.0},
            "coarsening": {"name": "Coarsening"},
        }[self.method]


def label_of(name: str) -> str:
    """What the number of a system is called; nothing where it has none.

    >>> label_of("SA"), label_of("Kuramoto"), label_of("Hardmax")
    ('β', 'K', '')
    """
    number = PRESETS[name].number
    return "" if number is None else NUMBER_LABELS.get(number, number)


def takes_matrices(name: str) -> bool:
    """Whether a system has Q, K and V to choose.

    >>> takes_matrices("SA"), takes_matrices("Kuramoto")
    (True, False)
    """
    return all(SYSTEMS[name].drawn.get(weight) is MATRIX for weight in ("Q", "K", "V"))


def is_map(name: str) -> bool:
    """Whether a system has layers alone, so that its times are whole numbers."""
    return SYSTEMS[name].dynamics == "map"


def unused(system: str, start: str) -> set[str]:
    """The fields that do not matter for a system and a start.

    >>> sorted(unused("Kuramoto", "angles"))
    ['d', 'heads', 'scores', 'values']
    """
    return {
        *([] if label_of(system) else ["number"]),
        *([] if takes_matrices(system) else MATRICES),
        *(["d"] if start in FIXED_DIMENSIONS else []),
    }


def typed_matrix(text: str, d: int, name: str) -> list[list[float]]:
    """A d × d matrix from typed numbers; lines or semicolons separate rows.

    Args:
        text: what was typed.
        d: number of rows and columns.
        name: the label of the field, for error messages.

    >>> typed_matrix("1 2; 3, 4", 2, "V")
    [[1.0, 2.0], [3.0, 4.0]]
    """
    lines = text.replace(";", "\n").replace("−", "-").splitlines()
    rows = [line.replace(",", " ").split() for line in lines]
    for entry in (entry for row in rows for entry in row):
        if not NUMBER.fullmatch(entry):
            raise InputError(f"{name}: only numbers can be typed here, not {entry[:40]!r}.")
    numbers = [[float(entry) for entry in row] for row in rows if row]
    if [len(row) for row in numbers] != [d] * d:
        raise InputError(f"{name}: must have {d} rows of {d} numbers, because d = {d}.")
    if not np.isfinite(numbers).all():
        raise InputError(f"{name}: all numbers must be finite.")
    return numbers
