"""What a sweep can save of a run at each time: the functions of `observe`, by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow import observe
from attnflow.errors import InputError, unknown

Observable = Callable[[Any, Array, Any], Array]
"""`(t, x, system)` to an array."""


def overlap_density(x: Float[Array, "n d"], bins: int = 50) -> Float[Array, " bins"]:
    """The density of `observe.overlap_histogram`."""
    return observe.overlap_histogram(x, bins)[0]


def mean_entropy(P: Float[Array, "*heads n n"]) -> Float[Array, ""]:
    """The entropy of a token's attention, averaged over tokens."""
    return observe.entropy(P).mean()


def leader_count(P: Float[Array, "*heads n n"], share: float | int = 0.5) -> Array:
    """The number of leaders."""
    return observe.leaders(P, share).sum(axis=-1)


def hull_vertices(x: Float[Array, "n d"], tol: float | int = 1e-9) -> Float[Array, ""]:
    """The number of vertices of the convex hull, by Qhull on the host."""

    def count(x: Any) -> np.ndarray:
        return np.asarray(len(observe.hull(np.asarray(x), tol).vertices), x.dtype)

    return jax.pure_callback(count, jax.ShapeDtypeStruct((), x.dtype), x, vmap_method="sequential")


DERIVED = {f.__name__: f for f in (overlap_density, mean_entropy, leader_count, hull_vertices)}
"""A number or an array from functions of `observe` that return something else."""

REPLACEMENTS = {
    "overlap_histogram": "overlap_density",
    "entropy": "mean_entropy",
    "leaders": "leader_count",
    "clusters": "cluster_count",
    "cluster_history": "cluster_count",
    "hull": "hull_vertices",
    "hull_history": "hull_vertices",
}
SUPPLIED = ("x", "t", "system", "beta", "P", "V")
"""Arguments that come from the run."""


def known() -> dict[str, Callable[..., Any]]:
    """The available observables by name."""
    found = {name: getattr(observe, name) for name in observe.__all__ if name not in REPLACEMENTS}
    functions = {name: f for name, f in found.items() if inspect.isfunction(f)}
    wanted = {
        name: f for name, f in functions.items() if "ts" not in inspect.signature(f).parameters
    }
    return wanted | DERIVED


def bind(name: str, observable: str, parameters: Mapping[str, Any]) -> Observable:
    """An observable as a function of (t, x, system), with its other parameters fixed.

    Args:
        name: its name in the spec, for error messages.
        observable: the name of the function.
        parameters: its other parameters.

    >>> import attnflow as af
    >>> energy = bind("E", "energy", {})
    >>> print(energy(0.0, jnp.eye(2), af.SA(0.0)))
    0.25
    """
    functions = known()
    if observable in REPLACEMENTS:
        raise InputError(
            f"keep.{name}.observable: {observable} does not return an array of fixed shape; use "
            f"{REPLACEMENTS[observable]}."
        )
    if observable not in functions:
        raise unknown("observable", observable, functions).at(f"keep.{name}.observable")
    make = functions[observable]
    signature = inspect.signature(make).parameters
    given = [p for p in SUPPLIED if p in signature and p not in parameters]
    free = set(signature) - set(SUPPLIED) - {"masses"}
    for parameter in parameters:
        if parameter not in free:
            error = unknown(f"parameter of {observable}", parameter, free)
            raise error.at(f"keep.{name}.{parameter}")
    needed = {p for p in free if signature[p].default is inspect.Parameter.empty}
    missing = sorted(needed - set(parameters))
    if missing:
        raise InputError(f"keep.{name}.{missing[0]}: missing, but {observable} needs it.")

    def at(t: Any, x: Array, system: Any) -> Array:
        tokens = system.positions(x)
        supply: dict[str, Callable[[], Any]] = {
            "x": lambda: tokens,
            "t": lambda: t,
            "system": lambda: system,
            "beta": lambda: _beta(system).astype(tokens.dtype),
            "P": lambda: observe.attention(system, x, t),
            "V": lambda: system.heads.V,
        }
        value = make(**{p: supply[p]() for p in given}, **parameters)
        return jnp.asarray(value, tokens.dtype)

    return at


def _beta(system: Any) -> Array:
    beta = system.inverse_temperature
    if beta is None:
        raise AttributeError(f"{type(system).__name__} has no beta")
    return beta
