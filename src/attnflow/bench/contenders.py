"""The problem that all contenders compute, the base of contenders, and those from attnflow."""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow import initial
from attnflow.systems import SA

SAMPLED_TOKENS = 64
"""Tokens on which an answer is compared with the exact one."""


@dataclass(frozen=True)
class DriftProblem:
    """The velocity `P⊥(Σ_j softmax(β <x_i, x_j>)_j x_j)` of n tokens on S^{d−1}.

    Tokens are drawn around three centres, so that velocities are of order 1 and a wrong answer
    cannot hide.

    Attributes:
        n: number of tokens.
        d: dimension of the tokens.
        beta: inverse temperature β.
        dtype: `"float32"` or `"float64"`.
        replicates: number of independent systems, computed at once.

    >>> DriftProblem(n=16, d=3, beta=4.0, dtype="float32").tokens().shape
    (1, 16, 3)
    """

    n: int
    d: int
    beta: float
    dtype: str
    replicates: int = 1

    def tokens(self) -> Float[np.ndarray, "replicates n d"]:
        """The tokens, the same at every call."""
        x = initial.clustered(
            self.n, self.d, spread=0.7, key=0, batch=self.replicates, dtype=self.dtype
        )
        return np.array(x)

    def error(self, x: Float[np.ndarray, "replicates n d"], answer: Any) -> float:
        """The largest error of an answer on a sample of tokens."""
        rng = np.random.default_rng(0)
        which = (
            rng.integers(self.replicates, size=SAMPLED_TOKENS),
            rng.integers(self.n, size=SAMPLED_TOKENS),
        )
        answers = np.asarray(answer, np.float64)[which]
        exact = [self._exact(x[r].astype(np.float64), int(i)) for r, i in zip(*which, strict=True)]
        return float(np.max(np.abs(answers - exact)))

    def _exact(self, x: Float[np.ndarray, "n d"], i: int) -> Float[np.ndarray, " d"]:
        """The velocity of token i, in float64 from the definition."""
        scores = self.beta * (x @ x[i])
        weights = np.exp(scores - scores.max())
        mean = (weights @ x) / weights.sum()
        return mean - x[i] * (x[i] @ mean) / (x[i] @ x[i])

    @property
    def where(self) -> str:
        """The sphere that the tokens are on."""
        return {2: "circle", 3: "S²"}.get(self.d, f"S^{self.d - 1}")

    def __str__(self) -> str:
        """The sizes in words."""
        many = f", {self.replicates} replicates" if self.replicates > 1 else ""
        return f"n = {self.n:,}, d = {self.d}{many}, β = {self.beta:g}, {self.dtype}"


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

    def problem_for(self, problem: DriftProblem) -> DriftProblem:
        """The problem to give it instead of this one: the same, unless it would take too long."""
        return problem

    @abc.abstractmethod
    def prepare(self, problem: DriftProblem, x: Float[np.ndarray, "replicates n d"]) -> Call:
        """Do what needs doing once (convert the tokens, compile), and return the call to time."""


class Attnflow(Contender):
    """`SA(beta, backend=…).velocity` under jit; replicates by `jax.vmap`."""

    def __init__(self, name: str, backend: str | None = None):
        self.name = name
        self.backend = backend

    def prepare(self, problem: DriftProblem, x: Float[np.ndarray, "replicates n d"]) -> Call:
        system = SA(problem.beta, backend=self.backend)

        def velocity(x: Array) -> Array:
            return system.velocity(0.0, x)

        tokens = jnp.asarray(x)
        if problem.replicates == 1:
            single = jax.jit(velocity).lower(tokens[0]).compile()
            return lambda: single(tokens[0]).block_until_ready()[None]
        many = jax.jit(jax.vmap(velocity)).lower(tokens).compile()
        return lambda: many(tokens).block_until_ready()


class Scaled(Contender):
    """A quadratic contender with at most `limit` tokens; its time is scaled by (n / limit)²."""

    def __init__(self, contender: Contender, limit: int):
        self.name = contender.name
        self.contender = contender
        self.limit = limit

    def problem_for(self, problem: DriftProblem) -> DriftProblem:
        return replace(problem, n=min(problem.n, self.limit))

    def prepare(self, problem: DriftProblem, x: Float[np.ndarray, "replicates n d"]) -> Call:
        return self.contender.prepare(problem, x)


ATTNFLOW = Attnflow("attnflow")
DENSE = Attnflow("attnflow dense", "dense")
BLOCKED = Attnflow("attnflow blocked", "blocked")
SPECTRAL = Attnflow("attnflow spectral", "spectral")
OURS: tuple[Contender, ...] = (ATTNFLOW, DENSE, BLOCKED, SPECTRAL)
"""All contenders from attnflow."""
