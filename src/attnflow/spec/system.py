"""The system of a spec: its table, with all that is drawn put in place."""

from __future__ import annotations

from typing import Any

import jax
from jaxtyping import Array

from attnflow.errors import InputError
from attnflow.spec.build import drawn, is_scores, named, scores_matrix, vector, weight
from attnflow.systems import SYSTEMS, System
from attnflow.weights.couplings import COUPLINGS
from attnflow.weights.frequencies import FREQUENCIES
from attnflow.weights.graphs import GRAPHS

SCORES = ("Q", "K", "V")
OF_TOKENS: dict[str, Any] = {"omega": FREQUENCIES, "graph": GRAPHS, "h": COUPLINGS}
"""What a system may have for each token or pair of tokens, and the families it is drawn from."""

OF_BLOCKS = ("O", "b_Q", "b_K", "b_V", "b_O", "w", "a", "b", "c", "gain", "shift", "g")
"""The other weights of a block of a Transformer; as plain numbers they may mean something else."""

PURPOSES = (
    "start", "Q", "K", "V", "omega", "graph", "h", "O", "b_Q", "b_K", "b_V", "b_O",
    "w", "a", "b", "c", "gain", "shift", "noise", "g",
)  # fmt: skip
"""New ones go last: the place of a purpose is part of its key."""


def key_for(purpose: str, key: Array) -> Array:
    """The key of one of the things that a spec draws, from the key of all of them."""
    return jax.random.fold_in(key, PURPOSES.index(purpose))


def build_system(
    where: str, name: str, parameters: dict[str, Any], n: int, d: int, key: Array
) -> System:
    """The system of a table for n tokens in R^d, and the one inside where it has one (`Noisy`)."""
    parameters = dict(parameters)
    scores = parameters.pop("V") if is_scores(parameters.get("V")) else None
    for field, value in parameters.items():
        place = f"{where}.{field}"
        if field in SCORES or (field in OF_BLOCKS and isinstance(value, (list, dict))):
            parameters[field] = weight(place, value, d, key_for(field, key))
        elif field in OF_TOKENS:
            given = {"n": n, "key": key_for(field, key)}
            parameters[field] = drawn(place, value, OF_TOKENS[field], given)
    if scores is not None:
        parameters["V"] = scores_matrix(scores, parameters.get("Q"), parameters.get("K"))
    if "D" in parameters:
        parameters["D"] = vector(f"{where}.D", parameters["D"])
    if isinstance(inner := parameters.get("system"), dict):
        inside = {k: v for k, v in inner.items() if k != "name"}
        if not isinstance(inner.get("name"), str):
            raise InputError(f'{where}.system.name: missing, such as name = "SA".')
        parameters["system"] = build_system(f"{where}.system", inner["name"], inside, n, d, key)
    return named(where, name, SYSTEMS, parameters, {})
