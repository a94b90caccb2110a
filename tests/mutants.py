"""Mistakes that a library of attention flows can make, each one made on purpose.

    with mutated("swap Q and K"):
        ...  # everything that is built and run here makes this mistake

A mistake is made at the lowest place, so that all that stands on it is wrong too. Compiled code is
thrown away before and after, as it would still be right (or still wrong). Build systems and starts
inside: a system that was built outside may have computed something from its weights already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any
from unittest.mock import patch

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp

from attnflow import initial, weights
from attnflow.attention import attend
from attnflow.attention.close import close_weights
from attnflow.attention.kinds import Kind, Softmax
from attnflow.attention.masks import Causal, Window
from attnflow.attention.task import Task
from attnflow.simulation import methods
from attnflow.simulation.solve import Problem, split_encoded
from attnflow.spaces import Sphere
from attnflow.systems import RescaledAttention, System, rescaled
from attnflow.systems.angular import AngularAttention
from attnflow.systems.attention import AttentionSystem
from attnflow.weights import AbstractHeads, apply

Patch = tuple[Any, str, Any]
"""A class, the name of what it has, and what it has instead."""

MUTANTS: dict[str, Callable[[], list[Patch]]] = {}
"""The mistakes by name. Each gives what has to be patched."""


@contextmanager
def mutated(name: str) -> Iterator[None]:
    """Make one mistake, in all that is compiled from here on."""
    forget()
    with ExitStack() as stack:
        for owner, attribute, value in MUTANTS[name]():
            if isinstance(owner, dict):
                stack.enter_context(patch.dict(owner, {attribute: value}))
            else:
                stack.enter_context(patch.object(owner, attribute, value))
        try:
            yield
        finally:
            forget()


def forget() -> None:
    """Throw compiled code away."""
    eqx.clear_caches()
    jax.clear_caches()


def mutant(name: str) -> Callable[[Callable[[], list[Patch]]], Callable[[], list[Patch]]]:
    """Enter a mistake under its name."""

    def enter(patches: Callable[[], list[Patch]]) -> Callable[[], list[Patch]]:
        MUTANTS[name] = patches
        return patches

    return enter


# Weights


def weights_become(change: Callable[[Any], tuple[Any, Any, Any]]) -> list[Patch]:
    """All systems get their matrices from `AbstractHeads.at`: there the three become others."""

    original = AbstractHeads.at

    def at(self: Any, t: Any, dtype: Any) -> Any:
        heads = original(self, t, dtype)
        return eqx.tree_at(
            lambda h: (h.Q, h.K, h.V), heads, change(heads), is_leaf=lambda leaf: leaf is None
        )

    return [(AbstractHeads, "at", at)]


def total_becomes(change: Callable[[Any], Any]) -> list[Patch]:
    """The V̄ of rescaled attention becomes another one."""
    original = RescaledAttention.total.fget
    return [(RescaledAttention, "total", property(lambda self: change(original(self))))]


def transposed(W: Any) -> Any:
    return W if W is None or W.ndim < 2 else jnp.swapaxes(W, -1, -2)


def negated(W: Any) -> Any:
    return jnp.asarray(-1.0) if W is None else -W


@mutant("swap Q and K")
def swap_queries_and_keys() -> list[Patch]:
    """Scores `<K x_i, Q x_j>`."""
    return weights_become(lambda h: (h.K, h.Q, h.V))


@mutant("transpose V")
def transpose_values() -> list[Patch]:
    """`Vᵀ x_j`."""
    return weights_become(lambda h: (h.Q, h.K, transposed(h.V))) + total_becomes(transposed)


@mutant("ignore Q and K")
def ignore_scores() -> list[Patch]:
    """Scores `<x_i, x_j>`."""
    return weights_become(lambda h: (None, None, h.V))


@mutant("wrong sign of V")
def flip_values() -> list[Patch]:
    """`−V x_j`."""
    return weights_become(lambda h: (h.Q, h.K, negated(h.V))) + total_becomes(negated)


@mutant("mean over heads")
def average_heads() -> list[Patch]:
    """The mean over heads in place of their sum."""

    def shared(h: Any) -> tuple[Any, Any, Any]:
        V = jnp.asarray(1.0) if h.V is None else h.V
        return h.Q, h.K, h.V if h.count is None else V / h.count

    return weights_become(shared)


@mutant("first head alone")
def first_head() -> list[Patch]:
    """All heads but the first add nothing."""

    def alone(h: Any) -> tuple[Any, Any, Any]:
        if h.count is None:
            return h.Q, h.K, h.V
        one = jnp.arange(h.count) == 0
        V = jnp.asarray(1.0) if h.V is None else h.V
        if V.ndim == 0:
            return h.Q, h.K, V * jnp.eye(h.dim) * one[:, None, None]
        return h.Q, h.K, V * one[:, None, None]

    return weights_become(alone)


# Attention


def betas_become(change: Callable[[Any], Any]) -> list[Patch]:
    """β becomes another one, also where angles stand for tokens."""
    original = AngularAttention.velocity

    def velocity(self: Any, t: Any, x: Any, masses: Any = None) -> Any:
        other = eqx.tree_at(lambda system: system.beta, self, change(self.beta))
        return original(other, t, x, masses)

    def patched(original: Callable) -> Callable:
        return lambda self, q, k, beta, *rest: original(self, q, k, change(beta), *rest)

    scored = RescaledAttention._each_scored

    def each_scored(self: Any, t: Any, y: Any, bounded: Any, fn: Any) -> Any:
        beta = self._sharpened(2 * self.mu * t, y.dtype)
        other = change(beta) / beta
        return scored(self, t, y, bounded, lambda q, k: fn(other * q, k))

    return [
        *everywhere(Kind, "as_rowwise", patched),
        (AngularAttention, "velocity", velocity),
        (RescaledAttention, "_each_scored", each_scored),
    ]


@mutant("ignore β")
def ignore_beta() -> list[Patch]:
    """β = 1, whatever it is. (Rescaled attention then forgets e^{2μt} too.)"""
    return betas_become(jnp.ones_like)


@mutant("β/2")
def halve_beta() -> list[Patch]:
    """Half of β."""
    return betas_become(lambda beta: beta / 2)


@mutant("−β")
def negate_beta() -> list[Patch]:
    """Tokens attend to those that are far."""
    return betas_become(lambda beta: -beta)


@mutant("uniform attention")
def attend_to_all() -> list[Patch]:
    """Weights 1/n."""
    return betas_become(jnp.zeros_like)


@mutant("drop the normaliser")
def unnormalised() -> list[Patch]:
    """Softmax divides by n, not by its row sums (its largest score is still taken out)."""

    def denominator(self: Any, row_sums: Any, total: Any) -> Any:
        return jnp.broadcast_to(total, row_sums.shape)

    def close(q: Any, k: Any, masses: Any = None, mask: Any = None) -> Any:
        weights = close_weights(q, k, masses, mask)
        m = jnp.ones(len(k), weights.dtype) if masses is None else masses
        return weights / weights.max(axis=1, keepdims=True) / m.sum()

    return [(Softmax, "denominator", denominator), (rescaled, "close_weights", close)]


@mutant("ignore masses")
def ignore_masses() -> list[Patch]:
    """Every token has mass 1."""

    def patched(original: Callable) -> Callable:
        return lambda self, q, k, beta, masses, mask: original(self, q, k, beta, None, mask)

    def task(q: Any, k: Any, v: Any, beta: Any, masses: Any, *rest: Any) -> Task:
        return Task(q, k, v, beta, None, *rest)

    def close(q: Any, k: Any, masses: Any = None, mask: Any = None) -> Any:
        return close_weights(q, k, None, mask)

    return [
        *everywhere(Kind, "as_rowwise", patched),
        (import_module("attnflow.attention.attend"), "Task", task),
        (rescaled, "close_weights", close),
    ]


@mutant("mask off by one")
def see_one_more() -> list[Patch]:
    """A causal token also sees the next one."""

    def patched(original: Callable) -> Callable:
        return lambda self, i, n: original(self, i + 1, n)

    return [(kind, "rows", patched(kind.rows)) for kind in (Causal, Window)]


START: ContextVar[Any] = ContextVar("START", default=None)
"""The tokens at the start of the run that is being traced."""


@mutant("frozen attention")
def freeze_attention() -> list[Patch]:
    """The weights are those of the start. (Not in runs that keep something else than states.)"""
    begin, loops = Problem.begin, ("advance", "advance_with_derivatives")
    summed, means = AttentionSystem._summed, RescaledAttention._means
    weighted = RescaledAttention._weighted

    def frozen_begin(self: Any, x: Any, *rest: Any, **named: Any) -> Any:
        with started(x if self.save is None else None):
            return begin(self, x, *rest, **named)

    def frozen(advance: Any) -> Any:
        def frozen_advance(self: Any, at: Any, *rest: Any, **named: Any) -> Any:
            first = None
            if self.save is None:
                first = jax.tree.map(lambda kept: kept[0], split_encoded(at.saved)[0])
                first = first if at.basis is None else first @ at.basis.T
            with started(first):
                return advance(self, at, *rest, **named)

        return frozen_advance

    def frozen_sum(self: Any, t: Any, x: Any, masses: Any, tangential: bool) -> Any:
        start = START.get()
        if start is None:
            return summed(self, t, x, masses, tangential)

        def one(head: Any) -> Any:
            means = attend(
                head.queries(start),
                head.keys(start),
                head.values(x),
                beta=self.beta.astype(x.dtype),
                kind=self.kind,
                mask=self.mask,
                masses=masses,
                backend=self._backend(x),
                unit=self._unit,
            )
            return head.out(means)

        return self.heads.at(t, x.dtype).sum(one)

    def at_the_start(self: Any, t: Any, values: Any, masses: Any) -> Any:
        start = START.get()
        return self.heads.at(t, values.dtype).each(
            lambda head: attend(
                apply(head.Q, start), apply(head.K, start), values, beta=self.beta, masses=masses
            )
        )

    def frozen_means(self: Any, t: Any, y: Any, values: Any, masses: Any) -> Any:
        if START.get() is None:
            return means(self, t, y, values, masses)
        return at_the_start(self, t, values, masses)

    def frozen_weighted(self: Any, t: Any, seen: Any, values: Any, scale: Any, masses: Any) -> Any:
        if START.get() is None:
            return weighted(self, t, seen, values, scale, masses)
        return at_the_start(self, t, values, masses)

    return [
        (Problem, "begin", frozen_begin),
        *((Problem, name, frozen(getattr(Problem, name))) for name in loops),
        (AttentionSystem, "_summed", frozen_sum),
        (RescaledAttention, "_means", frozen_means),
        (RescaledAttention, "_weighted", frozen_weighted),
    ]


@contextmanager
def started(x: Any) -> Iterator[None]:
    token = START.set(x)
    try:
        yield
    finally:
        START.reset(token)


# Motion


@mutant("drop the projection")
def no_projection() -> list[Patch]:
    """The velocity on the sphere has its normal part too."""
    return [(Sphere, "project", lambda self, x, v: v)]


@mutant("tokens do not move")
def stand_still() -> list[Patch]:
    """Every velocity is 0, and every layer the identity."""

    def still(self: Any, t: Any, x: Any, masses: Any = None) -> Any:
        return jax.tree.map(jnp.zeros_like, x)

    def same(self: Any, k: Any, x: Any, dt: Any, masses: Any = None) -> Any:
        return x

    def own_values(self: Any, t: Any, y: Any, values: Any, masses: Any) -> Any:
        return self.heads.at(t, y.dtype).each(lambda head: values)

    return [
        *everywhere(System, "velocity", lambda original: still),
        *everywhere(System, "layer", lambda original: same),
        (RescaledAttention, "_means", own_values),
    ]


class LowDopri8(diffrax.Dopri8):
    """Steps as long as those of order 8, made by Euler's method."""

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):  # type: ignore[override]
        return euler(super().step, terms, t0, t1, y0, args, solver_state, made_jump)


class LowTsit5(diffrax.Tsit5):
    """Steps as long as those of order 5, made by Euler's method."""

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):  # type: ignore[override]
        return euler(super().step, terms, t0, t1, y0, args, solver_state, made_jump)


def euler(step: Callable, terms: Any, t0: Any, t1: Any, y0: Any, args: Any, *rest: Any) -> Any:
    """A step with another end: `y0 + (t1 − t0) velocity(t0, y0)`."""
    _, *other = step(terms, t0, t1, y0, args, *rest)
    moved = terms.vf_prod(t0, y0, args, terms.contr(t0, t1))
    return jax.tree.map(jnp.add, y0, moved), *other


@mutant("order too low")
def low_order() -> list[Patch]:
    """Euler's method in place of the error-controlled ones, and the next lower fixed one."""
    return [
        (methods.ADAPTIVE_SOLVERS, "dopri8", LowDopri8),
        (methods.ADAPTIVE_SOLVERS, "tsit5", LowTsit5),
        (methods.FIXED_SOLVERS, "rk4", diffrax.Heun),
        (methods.FIXED_SOLVERS, "heun", diffrax.Euler),
    ]


# Draws


@mutant("biased draws")
def biased() -> list[Patch]:
    """Uniform tokens lean to one side, and Ginibre matrices are symmetric."""
    sphere, ginibre = initial.sphere, weights.ginibre

    def one_sided(*sizes: Any, **named: Any) -> Any:
        x = sphere(*sizes, **named)
        return initial.normalise(x + 0.5 / jnp.sqrt(x.shape[-1]))

    def symmetric(*sizes: Any, **named: Any) -> Any:
        W = ginibre(*sizes, **named)
        return (W + jnp.swapaxes(W, -1, -2)) / jnp.sqrt(2)

    return [(initial, "sphere", one_sided), (weights, "ginibre", symmetric)]


def everywhere(base: type, name: str, patched: Callable[[Callable], Callable]) -> list[Patch]:
    """A method becomes another one in every class that gives it; none is a mistake of its own."""
    patches = [
        (kind, name, patched(vars(kind)[name]))
        for kind in subclasses(base)
        if name in vars(kind) and not getattr(vars(kind)[name], "__isabstractmethod__", False)
    ]
    if not patches:
        raise LookupError(f"no class under {base.__name__} has {name}: this mistake is not made")
    return patches


def subclasses(kind: type) -> list[type]:
    """A class and all that stand on it."""
    return [kind, *(below for child in kind.__subclasses__() for below in subclasses(child))]
