"""attnflow as a contender: one for each backend, and one that chooses its backend itself."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow.bench.contender import Call, Contender
from attnflow.bench.problem import DriftProblem
from attnflow.systems import SA


class Attnflow(Contender):
    """`SA(beta, backend=…).velocity` under jit; replicates by `jax.vmap`."""

    def __init__(self, name: str, backend: str | None = None):
        self.name = name
        self.backend = backend

    def ready(self, problem: DriftProblem, x: Float[np.ndarray, "replicates n d"]) -> Call:
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

    def plays(self, problem: DriftProblem) -> DriftProblem:
        return replace(problem, n=min(problem.n, self.limit))

    def ready(self, problem: DriftProblem, x: Float[np.ndarray, "replicates n d"]) -> Call:
        return self.contender.ready(problem, x)


ATTNFLOW = Attnflow("attnflow")
DENSE = Attnflow("attnflow dense", "dense")
BLOCKED = Attnflow("attnflow blocked", "blocked")
SPECTRAL = Attnflow("attnflow spectral", "spectral")
OURS: tuple[Contender, ...] = (ATTNFLOW, DENSE, BLOCKED, SPECTRAL)
"""All contenders from attnflow."""
