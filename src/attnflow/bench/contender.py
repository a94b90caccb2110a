"""A contender in a race: something that computes the velocity of a `DriftProblem`."""

from __future__ import annotations

import abc
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from attnflow.bench.problem import DriftProblem

Call = Callable[[], Any]
"""Computes the velocity once, waits for it, and returns it."""


class Contender(abc.ABC):
    """A way to compute the velocity of a problem. All rows share one object."""

    name: str
    package: ClassVar[str | None] = None
    """The package it needs in addition to those of attnflow."""

    def missing(self) -> str | None:
        """Why it cannot take part, or None if it can."""
        if self.package is not None and find_spec(self.package) is None:
            return "not installed"
        return None

    def plays(self, problem: DriftProblem) -> DriftProblem:
        """The problem to give it instead of this one: the same, unless it would take too long."""
        return problem

    @abc.abstractmethod
    def ready(self, problem: DriftProblem, x: Float[np.ndarray, "replicates n d"]) -> Call:
        """Do what needs doing once (convert the tokens, compile), and return the call to time."""
