"""What takes part in a race: something that computes the velocity of a `DriftProblem`."""

from __future__ import annotations

import abc
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from attnflow.bench.problem import DriftProblem

Call = Callable[[], Any]
"""Computes the velocity once, waits until it is there, and returns it."""


class Contender(abc.ABC):
    """A way to compute the velocity of a problem. One object, shared by all rows."""

    name: str
    package: ClassVar[str | None] = None
    """The package it needs beyond those of attnflow."""

    def missing(self) -> str | None:
        """Why it cannot take part here, or None if it can."""
        if self.package is not None and find_spec(self.package) is None:
            return "not installed"
        return None

    def plays(self, problem: DriftProblem) -> DriftProblem:
        """The problem that it is given in place of this one: itself, if it can be afforded."""
        return problem

    @abc.abstractmethod
    def ready(self, problem: DriftProblem, x: Float[np.ndarray, "replicates n d"]) -> Call:
        """Do what is done once (convert the tokens, compile) and return the call to be timed."""
