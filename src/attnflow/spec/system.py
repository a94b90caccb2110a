"""The system of a spec, with everything random drawn."""

from __future__ import annotations

import zlib
from typing import Any

import jax
from jaxtyping import Array

from attnflow.errors import InputError
from attnflow.spec.build import build_named, drawn, is_scores, scores_matrix, vector, weight
from attnflow.systems import SYSTEMS, System
from attnflow.systems.presets import Drawn

NUMBERS = {
    name: number
    for number, name in enumerate(
        [
            "start",
            "Q",
            "K",
            "V",
            "omega",
            "graph",
            "h",
            "O",
            "b_Q",
            "b_K",
            "b_V",
            "b_O",
            "w",
            "a",
            "b",
            "c",
            "gain",
            "shift",
            "noise",
            "g",
        ]
    )
}
"""These names have fixed numbers, so that older specs draw the same values. Add no more."""


def key_for(purpose: str, key: Array) -> Array:
    """The key for one of the things that a spec draws.

    It depends only on the spec's key and the name, not on what else the spec draws.
    """
    number = NUMBERS.get(purpose, zlib.crc32(purpose.encode()))
    return jax.random.fold_in(key, number)


def build_system(
    where: str, name: str, parameters: dict[str, Any], n: int, d: int, key: Array
) -> System:
    """The system that a table describes, and the system inside it if it has one (`Noisy`).

    Args:
        where: the field of the spec, for error messages.
        name: the name of the system.
        parameters: its parameters, as the spec has them.
        n: number of tokens.
        d: dimension of the tokens.
        key: the JAX key for everything random.
    """
    parameters = dict(parameters)
    scores = parameters.pop("V") if is_scores(parameters.get("V")) else None
    declared = SYSTEMS[name].drawn if name in SYSTEMS else {}
    for field, value in parameters.items():
        if field in declared:
            place = f"{where}.{field}"
            parameters[field] = _draw(place, value, declared[field], n, d, key_for(field, key))
    if scores is not None:
        parameters["V"] = scores_matrix(scores, parameters.get("Q"), parameters.get("K"))
    if "D" in parameters:
        parameters["D"] = vector(f"{where}.D", parameters["D"])
    if isinstance(inner := parameters.get("system"), dict):
        inside = {k: v for k, v in inner.items() if k != "name"}
        if not isinstance(inner.get("name"), str):
            raise InputError(f'{where}.system.name: missing; write for example name = "SA".')
        parameters["system"] = build_system(f"{where}.system", inner["name"], inside, n, d, key)
    return build_named(where, name, SYSTEMS, parameters, {})


def _draw(where: str, value: Any, declared: Drawn, n: int, d: int, key: Array) -> Any:
    if declared.size == "n":
        return drawn(where, value, declared.families, {"n": n, "key": key})
    if declared.numbers or isinstance(value, (list, dict)):
        return weight(where, value, d, key)
    return value
