"""Build something from its name and parameters, with errors that name the field."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attnflow.checks import NO_NUMBERS
from attnflow.errors import InputError, unknown
from attnflow.weights import FAMILIES, Redrawn, Weight


def build_named(
    where: str,
    name: str,
    table: Mapping[str, Callable[..., Any]],
    parameters: Mapping[str, Any],
    given: Mapping[str, Any],
) -> Any:
    """`table[name](**parameters)`, with what is missing taken from `given`.

    Args:
        where: the field of the spec, for error messages.
        name: what to build.
        table: the constructors by name.
        parameters: its parameters, as the spec has them.
        given: more parameters, used if the constructor has them and the spec does not set them.

    >>> build_named("start", "circle", {"circle": lambda n: n}, {"n": 3}, {"key": None})
    3
    """
    if name not in table:
        raise unknown(where, name, table).at(f"{where}.name")
    make = table[name]
    known = {k for k in inspect.signature(make).parameters if k not in ("dtype", "batch")}
    for parameter in parameters:
        if parameter not in known:
            raise unknown(f"parameter of {name}", parameter, known).at(f"{where}.{parameter}")
    takes = inspect.signature(make).parameters
    usable = {k: v for k, v in given.items() if k in takes and k not in parameters}
    needed = [
        k
        for k, p in inspect.signature(make).parameters.items()
        if p.default is p.empty and k not in parameters and k not in usable
    ]
    if needed:
        raise InputError(f"{where}.{needed[0]}: missing, but {name} needs it.")
    try:
        return make(**parameters, **usable)
    except InputError as error:
        raise error.at(where) from None
    except NO_NUMBERS as error:
        raise InputError(error, where=(where, f"{name} does not take these values")) from None


def weight(where: str, value: Any, d: int, key: Array) -> Weight:
    """A weight from a number, a matrix (a list of rows), or a table that names a family.

    Args:
        where: the field of the spec, for error messages.
        value: what the spec says. A table with `every` is redrawn after that much time.
        d: dimension of the tokens.
        key: the JAX key for what is random.
    """
    if (numbers := _numbers(where, value)) is not None:
        return numbers
    _require_family(where, value, "ginibre")
    parameters = {k: v for k, v in value.items() if k not in ("family", "every")}
    if isinstance(parameters.get("eigenvalues"), list):
        parameters["eigenvalues"] = [_complex(where, v) for v in parameters["eigenvalues"]]
    draw = partial(build_named, where, value["family"], FAMILIES, parameters)
    first = draw({"d": d, "key": key})
    if "every" not in value:
        return first
    try:
        return Redrawn(_draw(draw, d), every=value["every"], key=key)
    except InputError as error:
        raise error.at(where) from None


def drawn(
    where: str, value: Any, families: Mapping[str, Callable[..., Any]], given: Mapping[str, Any]
) -> Any:
    """Numbers as they are, or a draw from the family in a table like `{ family = "lorentzian" }`.

    Args:
        where: the field of the spec, for error messages.
        value: what the spec says.
        families: the families by name.
        given: parameters of families that the spec does not set, such as n and key.

    >>> drawn("system.omega", [0.0, 1.0], {}, {})
    array([0., 1.])
    """
    if (numbers := _numbers(where, value)) is not None:
        return numbers
    _require_family(where, value, next(iter(families)))
    parameters = {k: v for k, v in value.items() if k != "family"}
    return build_named(where, value["family"], families, parameters, given)


def _numbers(where: str, value: Any) -> Any:
    """A number, or a list (of rows) as an array; None if it is neither.

    Values on an axis of a sweep are already arrays.
    """
    if isinstance(value, jax.Array):
        return value
    single = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not single and not isinstance(value, list):
        return None
    try:
        return float(value) if single else np.asarray(value, dtype=float)
    except NO_NUMBERS:
        raise InputError(f"{where}: must be a list of rows of numbers, or a number.") from None


def vector(where: str, value: Any) -> Any:
    """A list of numbers as an array."""
    numbers = _numbers(where, value)
    if np.ndim(numbers) != 1:
        raise InputError(f"{where}: must be a list of numbers.")
    return numbers


def _require_family(where: str, value: Any, example: str) -> None:
    if not isinstance(value, dict) or not isinstance(value.get("family"), str):
        raise InputError(
            f"{where}: must be a number, a list of rows, or a table such as "
            f'{{ family = "{example}" }}.'
        )


def is_scores(value: Any) -> bool:
    """Whether a weight is `{ family = "scores" }`, which stands for V = QᵀK."""
    return isinstance(value, dict) and value.get("family") == "scores"


def scores_matrix(table: dict[str, Any], Q: Any, K: Any) -> Array:
    """`scale · QᵀK` for a table such as `{ family = "scores", scale = 0.1 }`.

    Args:
        table: what the spec says for V.
        Q: queries, a matrix or None for the identity.
        K: keys, a matrix or None for the identity.
    """
    parameters = {k: v for k, v in table.items() if k != "family"}
    for name, W in (("Q", Q), ("K", K)):
        if callable(W) or isinstance(W, float):
            raise InputError(f"system.V: scores need {name} to be a constant matrix.")
    if Q is None and K is None:
        raise InputError("system.V: scores need Q or K.")

    def scores(scale: Any = 1.0) -> Array:
        if Q is None or K is None:
            return scale * jnp.asarray(K if Q is None else jnp.asarray(Q).mT)
        return scale * (jnp.asarray(Q).mT @ jnp.asarray(K))

    return build_named("system.V", "scores", {"scores": scores}, parameters, {})


def _draw(draw: Callable[..., Any], d: int) -> Callable[..., Any]:
    return lambda *, key: draw({"d": d, "key": key})


def _complex(where: str, value: Any) -> complex:
    """An eigenvalue: a number, or a string such as "0.5+1j"."""
    try:
        return complex(value.replace(" ", "") if isinstance(value, str) else value)
    except NO_NUMBERS:
        raise InputError(
            f'{where}.eigenvalues: {value!r} is not a number; write a complex one as "0.5+1j".'
        ) from None
