"""A sweep that is drawn over time and β, and the run at one of its paths."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xarray

from attnflow import sweep
from attnflow.errors import InputError
from attnflow.explore.form import PRESETS, Form
from attnflow.plot import Curve
from attnflow.spec import RunSpec, given, parse_sweep
from attnflow.stores import readable

AXES = ("time", "beta")
SYSTEMS_WITH_CURVE = ("SA", "USA")
"""Systems that (6.12) is about."""

FAMILY_OF_NUMBER = {1.0: "identity", -1.0: "minus identity"}
"""The families of matrices that a spec may give as a number."""


@dataclass(frozen=True, eq=False)
class Diagram:
    """A sweep that is done, its spec, what is drawn, and at which values of the other axes."""

    data: xarray.Dataset
    sweep: dict[str, Any]
    variable: str
    at: dict[str, Any]

    @property
    def title(self) -> str:
        """What was swept, and which part of it is drawn."""
        name = str(self.data.attrs.get("title") or "A sweep")
        return ", ".join([name, *(f"{axis} = {value}" for axis, value in self.at.items())])

    @property
    def curve(self) -> Curve | None:
        """(6.12), where it is about what is drawn: P(<x₁, x₂> ≥ 1 − δ) of SA or USA."""
        kept = self.sweep["keep"][self.variable]
        cell = self.cell(1.0)
        n = cell.start.parameters().get("n")
        plain = cell.system.name in SYSTEMS_WITH_CURVE and set(cell.system.parameters()) <= {"beta"}
        if kept["observable"] != "pairs_clustered" or not plain or n is None:
            return None
        return Curve(int(n), float(kept.get("delta", 1e-3)), cell.system.name == "SA")

    def cell(self, beta: float) -> RunSpec:
        """The run of the sweep at β, on the part that is drawn."""
        spec = parse_sweep(self.sweep)
        values = {axis: value for axis, value in self.at.items() if axis in spec.axes}
        return spec.cell(values | {"beta": beta})

    def flow(self, t: float, beta: float) -> Form:
        """Such a run that goes on a while after t, or an error that says why Flow cannot show it.

        >>> sweep = {"system": {"name": "SA", "mask": "causal"}, "start": {"n": 4, "d": 2}}
        >>> sweep |= {"times": {"stop": 1.0}, "axes": {"beta": [1.0]}, "keep": {"p": {}}}
        >>> sweep["keep"]["p"]["observable"] = "pairs_clustered"
        >>> try:
        ...     Diagram(xarray.Dataset(), sweep, "p", {}).flow(1.0, 1.0)
        ... except InputError as error:
        ...     print(error)
        Flow cannot show this run: its form has no place for mask = 'causal'.
        """
        cell = self.cell(beta)
        try:
            form = _form_like(cell, round(beta, 6), round(max(2.0, 1.5 * t), 6))
        except InputError as error:
            raise error.at("Flow cannot show this run") from None
        if lost := _lost(cell, form):
            raise InputError(f"Flow cannot show this run: its form has no place for {lost}.")
        return form


def open_diagram(path: Path) -> Diagram:
    """A store with a number that varies in time and along β, at the first of its other axes."""
    data = sweep.load(path)
    spec = given(json.loads(data.attrs["spec"]))
    kept = [k for k in spec["keep"] if k in data and set(AXES) <= set(data[k].dims)]
    if not kept:
        raise InputError("store: the sweep keeps no number that varies in time and along beta.")
    others = [axis for axis in data[kept[0]].dims if axis not in AXES]
    with readable(path):
        part = data.isel(dict.fromkeys(others, 0)).load()
    at = {str(axis): part[axis].item() if axis in part.coords else 0 for axis in others}
    return Diagram(part, spec, kept[0], at)


def _form_like(cell: RunSpec, number: float, until: float) -> Form:
    """The form that comes nearest to a run."""
    name, fields, start = cell.system.name, cell.system.parameters(), cell.start.parameters()
    if name not in PRESETS:
        raise InputError(f"it knows no system {name}.")
    said: dict[str, Any] = {
        "number": number,
        "until": until,
        "start": cell.start.name,
        "values": _family(fields.get("V")),
        "scores": _family(fields.get("K")),
        **{size: start[size] for size in ("n", "d") if size in start},
    }
    return Form.read(Form.preset(name).model_dump() | said)


def _family(weight: Any) -> str:
    """The family of a weight that is a number; of others the default, which `_lost` finds out."""
    known = isinstance(weight, (int, float)) and weight in FAMILY_OF_NUMBER
    return FAMILY_OF_NUMBER[weight] if known else "identity"


def _lost(cell: RunSpec, form: Form) -> str:
    """What a run has that its form has not, or has otherwise; nothing if they say the same."""
    held = form.build()
    number = PRESETS[form.system].number
    pairs = (
        (_weights(cell.system.parameters()), _weights(held.system.parameters()), {number}),
        (_said(cell.start), _said(held.start), {"reduced"}),
    )
    return ", ".join(
        f"{name} = {wanted[name]!r}" if name in wanted else f"a run without {name}"
        for wanted, got, free in pairs
        for name in {**wanted, **got}
        if name not in free and wanted.get(name) != got.get(name)
    )


def _weights(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of a system without matrices that are the identity."""
    return {k: v for k, v in fields.items() if not (k in ("Q", "K", "V") and v in (1.0, None))}


def _said(start: Any) -> dict[str, Any]:
    return given(start.model_dump())
