"""What a spec says, field by field, and how it becomes a run."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from pydantic import BaseModel, ConfigDict, Field, model_validator

from attnflow import initial
from attnflow.errors import InputError
from attnflow.simulate import METHODS, Method
from attnflow.spec.build import is_scores, named, scores_matrix, weight
from attnflow.systems import SYSTEMS, System

WEIGHTS = ("Q", "K", "V", "O", "b_Q", "b_K", "b_V", "b_O", "w", "a", "b", "c", "gain", "shift")
"""What a spec may give as a list or draw from a family, each from a key of its own."""

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Run(NamedTuple):
    """What `simulate` takes."""

    system: System
    x0: Array
    ts: np.ndarray
    method: Method | None


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
    """Save times: `values`, or `count` of them up to `stop`, evenly or on a log scale."""

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
    """A run: which system, from where, until when, how, and the seed of all that is drawn."""

    model_config = ConfigDict(extra="forbid")

    title: str | None = None
    seed: int = 0
    system: Named
    start: Start
    times: Times
    method: Named | None = None
    dtype: Literal["float64", "float32"] = "float64"

    def build(self) -> Run:
        """The system, start, times and method that this spec names."""
        system, x0 = self.draw(jax.random.key(self.seed))
        return Run(system, x0, self.times.build(), self.build_method())

    def draw(self, key: Array) -> tuple[System, Array]:
        """The system and the start, with all that is random drawn from the key; works under jit."""
        start, *weights = (jax.random.fold_in(key, purpose) for purpose in range(1 + len(WEIGHTS)))
        x0 = self._start(start)
        return self._system(x0.shape[-1], weights), x0

    def _start(self, key: Array) -> Array:
        if self.start.tokens is not None:
            if extra := self.start.parameters():
                raise InputError(
                    f"start.{next(iter(extra))}: tokens are given, nothing else is due."
                )
            lengths = {len(token) for token in self.start.tokens}
            if len(lengths) != 1:
                raise InputError("start.tokens: all tokens must have as many entries.")
            return jnp.asarray(self.start.tokens, dtype=self.dtype)
        given = {"key": key, "dtype": np.dtype(self.dtype)}
        return named("start", self.start.name, initial.STARTS, self.start.parameters(), given)

    def _system(self, d: int, keys: list[Array]) -> System:
        parameters = self.system.parameters()
        scores = parameters.pop("V") if is_scores(parameters.get("V")) else None
        for name, key in zip(WEIGHTS, keys, strict=True):
            # A number elsewhere need not be a multiple of the identity, and may be traced.
            drawn = name in ("Q", "K", "V") or isinstance(parameters.get(name), (list, dict))
            if name in parameters and drawn:
                parameters[name] = weight(f"system.{name}", parameters[name], d, key)
        if scores is not None:
            parameters["V"] = scores_matrix(scores, parameters.get("Q"), parameters.get("K"))
        if "D" in parameters:
            parameters["D"] = np.asarray(parameters["D"], dtype=float)
        return named("system", self.system.name, SYSTEMS, parameters, {})

    def build_method(self) -> Method | None:
        """The method that this spec names, if it does."""
        if self.method is None:
            return None
        return named("method", self.method.name, METHODS, self.method.parameters(), {})
