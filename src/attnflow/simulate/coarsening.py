"""`Coarsening`: tokens that have met become one, so that metastable times can be reached."""

from __future__ import annotations

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from attnflow.checks import require_positive
from attnflow.errors import InputError
from attnflow.simulate.methods import ADAPTIVE_SOLVERS, MAX_STEPS, Adaptive, Pieces
from attnflow.simulate.stepping import Around, Resumable, Tolerance, latest_stage
from attnflow.systems import System

ROWS = 256
"""Tokens whose distances to all others are looked at together: memory is O(n · ROWS)."""


class Merges(eqx.Module):
    """The merge tree: one entry for each merge in the order of time, then unused ones.

    At `time` the token `gone` joined the token `kept`; their masses were `mass_gone` and
    `mass_kept`. Unused entries have time NaN and tokens −1.
    """

    time: Float[Array, "*batch m"]
    kept: Int[Array, "*batch m"]
    gone: Int[Array, "*batch m"]
    mass_kept: Float[Array, "*batch m"]
    mass_gone: Float[Array, "*batch m"]

    @property
    def count(self) -> Int[Array, "*batch"]:
        """How many merges there were."""
        return jnp.sum(self.gone >= 0, axis=-1)


class Coarse(eqx.Module):
    """The state of a coarsened run: slots, their masses (0: merged away), who stands for whom."""

    x: Float[Array, "n d"]
    mass: Float[Array, " n"]
    leader: Float[Array, " n"]

    def tokens(self) -> Float[Array, "n d"]:
        """Every token at the place of the slot that stands for it."""
        return self.x[self.leader.astype(int)]


class Coarsening(Adaptive):
    """Error-controlled steps, merging tokens that have come within `eps` and are approaching.

    Equal tokens stay equal (without mask or noise), so m of them are one of mass m. Merging tokens
    that are nearly equal takes the fast motion inside clusters out of the equation, and steps grow
    to the slow, metastable scale: times like 10¹² are reached in a few hundred steps. The merged
    token sits at the mean, weighted by mass and retracted; pairs that move apart are left alone.

    The difference from the run without merging falls linearly with eps. It works for attention on
    the sphere with any Q, K, V, and refuses masks and rescaled systems, where merging is not exact.
    For `Aggregation` it is the way through collisions. The trajectory's `merges` is the merge tree.

    >>> Coarsening(eps=1e-7)
    Coarsening(eps=1e-07, rtol=1e-08, atol=1e-10, solver='dopri8', max_steps=100000)
    """

    eps: Array

    def __init__(
        self,
        eps: Any = 1e-6,
        rtol: Any = 1e-8,
        atol: Any = 1e-10,
        max_steps: int = MAX_STEPS,
        solver: str = "dopri8",
    ):
        super().__init__(rtol, atol, max_steps, solver)
        require_positive(eps, "eps")
        self.eps = jnp.asarray(eps, float)

    def pieces(self, system: System, masses: Any, ts: Float[Array, " T"], y: Any) -> Pieces:
        """The adaptive method on slots with masses, with merging after each step."""
        system = system.precise(len(jax.tree.leaves(y)[0]))

        def velocity(t: Any, y: Coarse, latest: Any) -> Coarse:
            t = t if latest is None else jnp.minimum(t, latest)
            v = system.velocity(t, y.x, y.mass)
            still = jnp.zeros_like(y.mass)
            return Coarse(jnp.where(y.mass[:, None] > 0, v, 0), still, still)

        def encode(t: Any, x: Array) -> Coarse:
            n = len(x)
            mass = jnp.ones(n, x.dtype) if masses is None else masses
            return Coarse(x, mass, jnp.arange(n, dtype=x.dtype))

        solver = ADAPTIVE_SOLVERS[self.solver]()
        return Pieces(
            term=diffrax.ODETerm(velocity),
            solver=Merging(solver, system, self.eps.astype(ts.dtype), self.tolerance(ts.dtype)),
            controller=Resumable(self.controller(ts), system.breaks),
            dt0=None,
            encode=encode,
            decode=lambda t, y: system.retract(y.tokens()),
        )

    def check(self, system: System, ts: Float[np.ndarray, " T"]) -> None:
        """Merging must be exact for the system."""
        super().check(system, ts)
        if not system.mergeable:
            raise InputError(
                f"method: Coarsening does not work for {system!r}, where equal tokens do not stay "
                "equal or close tokens do not stay close: it is for SA and USA without a mask "
                "and for Aggregation. Use Adaptive()."
            )

    def merges(self, solver_state: Any) -> Merges:
        """The merge tree that the solver's state holds."""
        return solver_state.merges

    def __repr__(self) -> str:
        """As it would be typed."""
        return super().__repr__().replace("Adaptive(", f"Coarsening(eps={float(self.eps)!r}, ")


class Ledger(eqx.Module):
    """The state of the solver inside, and what was merged so far."""

    inner: Any
    merges: Merges
    just_merged: Bool[Array, ""]


class Merging(Around):
    """A solver whose steps end in the space, with the tokens that have met merged."""

    solver: diffrax.AbstractERK
    system: System
    eps: Array
    tolerance: Tolerance

    def under(self, adjoint: diffrax.AbstractAdjoint) -> Merging:
        """Itself with the loop over stages that forward mode needs; merging has no reverse mode."""
        solver = type(self.solver)(scan_kind="lax")
        return Merging(solver, self.system, self.eps, self.tolerance)

    def init(self, terms: Any, t0: Any, t1: Any, y0: Coarse, args: Any) -> Ledger:
        """Nothing has merged yet."""
        n, dtype = len(y0.mass), y0.mass.dtype
        none = jnp.full(max(n - 1, 1), -1)
        never = jnp.full(max(n - 1, 1), jnp.nan, dtype)
        merges = Merges(never, none, none, never, never)
        inner = super().init(terms, t0, t1, y0, args)
        return Ledger(inner, merges, jnp.zeros((), bool))

    def step(
        self, terms: Any, t0: Any, t1: Any, y0: Any, args: Any, solver_state: Any, made_jump: Any
    ) -> Any:
        """The step of the solver inside, retracted; then every pair that has met is merged."""
        y1, error, dense, inner, result = self.solver.step(
            terms,
            t0,
            t1,
            y0,
            latest_stage(self.system, t1),
            solver_state.inner,
            made_jump | solver_state.just_merged,
        )
        y1 = eqx.tree_at(lambda y: y.x, y1, self.system.retract(y1.x))
        error = self.tolerance.scaled(error, y0, y1)
        v = self.system.velocity(t1, y1.x, y1.mass)
        y1, merges = self._merge_all(t1, y1, v, solver_state.merges)
        merged = merges.count > solver_state.merges.count
        return y1, error, dense, Ledger(inner, merges, merged), result

    def _merge_all(self, t: Any, y: Coarse, v: Array, merges: Merges) -> tuple[Coarse, Merges]:
        """Merge the closest approaching pair while it is within eps."""

        def met(state: Any) -> Any:
            return state[-1][0] <= self.eps**2

        def merge(state: Any) -> Any:
            y, v, merges, (_, i, j) = state
            share = y.mass[i] / (y.mass[i] + y.mass[j])
            place = self.system.retract(share * y.x[i] + (1 - share) * y.x[j])
            at = merges.count
            merges = Merges(
                merges.time.at[at].set(t),
                merges.kept.at[at].set(i),
                merges.gone.at[at].set(j),
                merges.mass_kept.at[at].set(y.mass[i]),
                merges.mass_gone.at[at].set(y.mass[j]),
            )
            v = v.at[i].set(share * v[i] + (1 - share) * v[j])
            y = Coarse(
                y.x.at[i].set(place),
                y.mass.at[i].add(y.mass[j]).at[j].set(0),
                jnp.where(y.leader.astype(int) == j, i.astype(y.leader.dtype), y.leader),
            )
            return y, v, merges, closest(y, v)

        y, _, merges, _ = jax.lax.while_loop(met, merge, (y, v, merges, closest(y, v)))
        return y, merges


def closest(y: Coarse, v: Float[Array, "n d"]) -> tuple[Array, Array, Array]:
    """The squared distance of the closest approaching pair of slots, and the pair (i < j)."""
    n = len(y.mass)
    index = jnp.arange(n)

    def row(i: Array) -> tuple[Array, Array]:
        apart, rate = y.x - y.x[i], v - v[i]
        squared = jnp.sum(apart * apart, axis=-1)
        approaching = (jnp.sum(apart * rate, axis=-1) < 0) | (squared == 0)
        alive = (y.mass > 0) & (y.mass[i] > 0) & (index > i)
        squared = jnp.where(alive & approaching, squared, jnp.inf)
        j = jnp.argmin(squared)
        return squared[j], j

    squared, j = jax.lax.map(row, index, batch_size=min(ROWS, n))
    i = jnp.argmin(squared)
    return squared[i], i, j[i]
