"""The compiled programs of `simulate`, for a batch of runs: begin, go on, finish, or all at once.

Batches keep their axes between programs, so that nothing has to be reshaped, which would compile.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Int

from attnflow.simulation.merging import Merges
from attnflow.simulation.solve import Problem, SolverState
from attnflow.simulation.stepping import all_finite

MAX_VMAPPED_TOKENS = 1024
"""Members of a batch with more tokens than this run one after the other: a vmap would hold the
scores of all at once, and gain nothing."""


class Start(NamedTuple):
    """Where a batch of runs begins: the arguments of `Problem.begin`, with axes `*batch` before.

    Masses may lack these axes, and a key always does.
    """

    x: Any
    masses: Array | None
    basis: Array | None
    key: Array | None
    merges: Merges | None

    def each(self) -> Start:
        """With masses and a key for every member; the key of member i depends on i alone."""
        batch, masses, key = self.x.shape[:-2], self.masses, self.key
        if masses is not None:
            masses = jnp.broadcast_to(masses, self.x.shape[:-1])
        if key is not None:
            numbers = jnp.arange(math.prod(batch))
            key = jax.vmap(jax.random.fold_in, (None, 0))(key, numbers).reshape(batch)
        return self._replace(masses=masses, key=key)


class Reached(NamedTuple):
    """How far a batch of runs has come: their states, the last tokens, and which are finite."""

    at: SolverState
    final: Any
    finite: Bool[Array, "*batch"]


def _for_each(fn: Any, batch: tuple[int, ...], tokens: int, *batched: Any) -> Any:
    """`fn` of every member: side by side, or one after the other where each is large.

    A batch of one is spared the vmap, which compiles a third faster.
    """
    axes, members = len(batch), math.prod(batch)

    def shaped(shape: tuple[int, ...], skip: int, tree: Any) -> Any:
        return jax.tree.map(lambda a: jnp.reshape(a, (*shape, *jnp.shape(a)[skip:])), tree)

    if members == 1:
        return shaped(batch, 0, fn(*shaped((), axes, batched)))
    each = shaped((members,), axes, batched)
    if tokens > MAX_VMAPPED_TOKENS:
        every = jax.lax.map(lambda member: fn(*member), each)
    else:
        every = jax.vmap(fn)(*each)
    return shaped(batch, 1, every)


def run_traced(problem: Problem, start: Start, steps: int, progress: bool) -> Reached:
    """The states at the end, under the user's jit, grad or vmap, in one piece.

    It is compiled here too, so that a derivative outside of jit is compiled only once; but not
    where a function of the user's may read what has changed since.
    """
    run = _traced if holds_functions(problem) else _traced_once
    return run(problem, start, steps, progress)


def _traced(problem: Problem, start: Start, steps: int, progress: bool) -> Reached:
    def one(x: Any, masses: Any, basis: Any, key: Any, merges: Any) -> Reached:
        at = problem.run_or_raise(x, masses, key, merges, steps, progress=progress)
        return _reached(problem, at)

    return _for_each(one, start.x.shape[:-2], start.x.shape[-2], *start.each())


_traced_once = eqx.filter_jit(_traced)


def holds_functions(value: Any) -> bool:
    """Whether there is a function, or a class of its own, inside that is not attnflow's or JAX's.

    >>> import attnflow as af
    >>> holds_functions(af.SA(1.0)), holds_functions((af.SA(1.0), print))
    (False, True)
    """
    module = getattr(value, "__module__", None) or ""
    if not module.startswith(("attnflow.", "jax", "functools")) and (
        callable(value) or isinstance(value, eqx.Module)
    ):
        return True
    if isinstance(value, eqx.Module):
        inside: Any = [getattr(value, field.name) for field in dataclasses.fields(value)]
    elif isinstance(value, functools.partial):
        inside = [value.func, value.args, value.keywords]
    elif isinstance(value, dict):
        inside = value.values()
    elif isinstance(value, (tuple, list)):
        inside = value
    else:
        return False
    return any(map(holds_functions, inside))


@eqx.filter_jit
def begin(problem: Problem, start: Start, steps: Int[ArrayLike, ""]) -> Reached:
    """The states after the first steps: one program for the beginning and the loop."""

    def one(*parts: Any) -> Reached:
        return _reached(problem, problem.advance(problem.begin(*parts), steps))

    return _for_each(one, start.x.shape[:-2], start.x.shape[-2], *start.each())


@eqx.filter_jit
def advance(problem: Problem, at: SolverState, steps: Int[ArrayLike, ""]) -> Reached:
    """The states after at most `steps` more steps."""

    def one(at: SolverState) -> Reached:
        return _reached(problem, problem.advance(at, steps))

    return _for_each(one, at.t.shape, _tokens(at), at)


@eqx.filter_jit
def finish(problem: Problem, at: SolverState, rests: Bool[ArrayLike, "*batch"]) -> Reached:
    """The states; of those that rest, the ones at the last time."""

    def one(at: SolverState, rests: Array) -> Reached:
        return _reached(problem, problem.rested(at, rests))

    return _for_each(one, at.t.shape, _tokens(at), at, rests)


def _reached(problem: Problem, at: SolverState) -> Reached:
    return Reached(at, problem.final(at), all_finite(at.y))


def _tokens(at: SolverState) -> int:
    """The tokens of each member: all states have the axes (*batch, token, …)."""
    return jax.tree.leaves(at.y)[0].shape[at.t.ndim]
