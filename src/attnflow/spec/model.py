"""The fields of a spec, and how a spec becomes a run."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from pydantic import BaseModel, ConfigDict, Field, model_validator

from attnflow import initial
from attnflow.errors import InputError
from attnflow.randomness import as_key
from attnflow.retired import RenamedAttribute
from attnflow.simulation import METHODS, Method
from attnflow.spec.build import build_named
from attnflow.spec.system import build_system, key_for
from attnflow.systems import System

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Run(NamedTuple):
    """The arguments of `simulate`.

    Attributes:
        system: the system.
        x0: the start, shape (n, d).
        ts: the save times, shape (T,).
        method: how to integrate; None for the system's default.
        key: the JAX key for noise.
    """

    system: System
    x0: Array
    ts: np.ndarray
    method: Method | None
    key: Array


class Named(BaseModel):
    """Something from a table of names, with its own parameters."""

    model_config = ConfigDict(extra="allow")

    name: str

    def parameters(self) -> dict[str, Any]:
        """Everything but the name."""
        return dict(self.model_extra or {})


class Start(Named):
    """A start by name (`sphere`, `cube`, …), or the tokens themselves."""

    name: str = "sphere"
    tokens: list[list[float]] | None = None


class Times(BaseModel):
    """Save times: either `values`, or `count` times from 0 to `stop`.

    Attributes:
        values: all times.
        stop: the last time.
        count: number of times, including 0.
        spacing: `"linear"`, or `"log"` for a log scale after 0.
        first: the first time after 0 of a log scale. By default `stop` / 10⁵.
    """

    model_config = ConfigDict(extra="forbid")

    values: list[float] | None = None
    stop: Positive | None = None
    count: Annotated[int, Field(ge=2, le=1_000_000)] = 200
    spacing: Literal["linear", "log"] = "linear"
    first: Positive | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Times:
        if (self.values is None) == (self.stop is None):
            raise ValueError("give either stop (the last time) or values (all times)")
        if self.first is not None and (self.spacing != "log" or self.first >= (self.stop or 0)):
            raise ValueError("first is the first time after 0 of a log spacing, below stop")
        return self

    def build(self) -> np.ndarray:
        """The array of times."""
        if self.values is not None:
            return np.asarray(self.values)
        assert self.stop is not None
        if self.spacing == "linear":
            return np.linspace(0, self.stop, self.count)
        first = self.stop / 1e5 if self.first is None else self.first
        return np.concatenate([[0.0], np.geomspace(first, self.stop, self.count - 1)])


class RunSpec(BaseModel):
    """A run as a TOML file describes it.

    Attributes:
        title: a title for pictures.
        key: the integer from which everything random is drawn.
        system: the name of the system and its parameters.
        start: the name of the start and its parameters, or the tokens themselves.
        times: the save times.
        method: the name of the method and its parameters. By default the system's own method.
        dtype: `"float64"` or `"float32"`.
    """

    model_config = ConfigDict(extra="forbid", ignored_types=(RenamedAttribute,))

    title: str | None = None
    key: Annotated[int, Field(ge=-(2**63), lt=2**63)] = 0
    system: Named
    start: Start
    times: Times
    method: Named | None = None
    dtype: Literal["float64", "float32"] = "float64"

    seed = RenamedAttribute("key")

    def build(self) -> Run:
        """The system, start, times and method that this spec describes."""
        key = as_key(self.key)
        system, x0 = self.draw(key)
        return Run(system, x0, self.times.build(), self.build_method(), key_for("noise", key))

    def draw(self, key: Array) -> tuple[System, Array]:
        """The system and the start, drawn from the key. Works under jit."""
        x0 = self._start(key_for("start", key))
        n, d = x0.shape[-2:]
        name, parameters = self.system.name, self.system.parameters()
        return build_system("system", name, parameters, n, d, key), x0

    def _start(self, key: Array) -> Array:
        if self.start.tokens is not None:
            if extra := self.start.parameters():
                raise InputError(
                    f"start.{next(iter(extra))}: leave it out, because start.tokens is given."
                )
            lengths = {len(token) for token in self.start.tokens}
            if len(lengths) != 1:
                raise InputError("start.tokens: all tokens must have the same number of entries.")
            return jnp.asarray(self.start.tokens, dtype=self.dtype)
        given = {"key": key, "dtype": np.dtype(self.dtype)}
        return build_named("start", self.start.name, initial.STARTS, self.start.parameters(), given)

    def build_method(self) -> Method | None:
        """The method that this spec describes, or None."""
        if self.method is None:
            return None
        return build_named("method", self.method.name, METHODS, self.method.parameters(), {})
