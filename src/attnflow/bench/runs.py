"""Rows that time whole runs: a phase diagram, a metastable run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow import initial, observe
from attnflow.bench.result import Entry, Outcome
from attnflow.bench.row import Row, Target
from attnflow.bench.timing import (
    FULL_BUDGET,
    QUICK_BUDGET,
    OnProgress,
    TimingBudget,
    ratios,
    seconds_of,
    spread,
    time_side_by_side,
)
from attnflow.simulation import Coarsening, Fixed, simulate, solve
from attnflow.systems import SA

Starts = Float[Array, "replicates n d"]


@dataclass(frozen=True)
class PhaseDiagram(Row):
    """The mean overlap of random starts on S^{d−1} over β and t, with d far above n.

    The flow stays in the span of the n tokens, which is R^n. `simulate`, with starts drawn directly
    in R^n, is compared with the same integration in R^d. Both take the same steps (Runge–Kutta of
    order 4, step 0.1, to t = 10, float32), with all replicates of a β at once. The error is the
    largest difference between the two diagrams from the same starts in R^d.
    """

    n: int
    d: int
    betas: tuple[float, ...]
    replicates: int
    targets: tuple[Target, ...] = ()
    name: str = "phase"
    budget: TimingBudget = FULL_BUDGET

    def quick(self) -> PhaseDiagram:
        return replace(self, betas=self.betas[:1], replicates=4, targets=(), budget=QUICK_BUDGET)

    def measure(self, on_progress: OnProgress) -> Outcome:
        full = self._starts()
        reduced = self._starts(reduced=True)
        in_full = whole_space()
        on_progress("compiling")
        spanned(SA(self.betas[0]), reduced)
        in_full(SA(self.betas[0]), full)
        diagram = np.empty(0)

        def draw_reduced() -> None:
            self._diagram(spanned, reduced)

        def draw_full() -> None:
            nonlocal diagram
            diagram = self._diagram(in_full, full)

        times = time_side_by_side(
            {REDUCED_DIMENSION: draw_reduced, FULL_DIMENSION: draw_full}, self.budget, on_progress
        )
        on_progress("comparing the diagrams of the same starts")
        error = float(np.max(np.abs(self._diagram(spanned, full) - diagram)))
        ours, theirs = times[REDUCED_DIMENSION], times[FULL_DIMENSION]
        entries = [
            Entry(REDUCED_DIMENSION, spread(ours), ratios(ours, ours), error),
            Entry(FULL_DIMENSION, spread(theirs), ratios(theirs, ours)),
        ]
        return Outcome(self.name, self.title, entries)

    def _starts(self, **options: Any) -> Starts:
        return initial.sphere(
            self.n, self.d, key=0, batch=self.replicates, dtype="float32", **options
        )

    def _diagram(self, run: Callable[[SA, Starts], Any], x0: Starts) -> np.ndarray:
        return np.stack([np.asarray(run(SA(beta), x0)) for beta in self.betas])

    @property
    def title(self) -> str:
        betas = ", ".join(f"{beta:g}" for beta in self.betas)
        return (
            f"phase diagram, n = {self.n}, d = {self.d}, β = {betas}, "
            f"{self.replicates} runs each, float32"
        )


REDUCED_DIMENSION, FULL_DIMENSION = "attnflow", "full dimension"
TIMES = np.linspace(0, 10, 21, dtype=np.float32)
METHOD = Fixed(0.1)


def mean_overlap(t: Any, x: Float[Array, "n d"]) -> Float[Array, ""]:
    """The mean cosine over all pairs: 1 for a single cluster."""
    return observe.overlaps(x).mean()


def spanned(system: SA, x0: Starts) -> Any:
    """The diagram's row for one β with `simulate`, in the span of the tokens."""
    return simulate(system, x0, TIMES, method=METHOD, save=mean_overlap).xs


def whole_space() -> Callable[[SA, Starts], Any]:
    """The same with plain integration in R^d."""

    def one(system: SA, x: Float[Array, "n d"]) -> Array:
        return solve(system, x, jnp.asarray(TIMES), method=METHOD, save=mean_overlap).xs

    return jax.jit(jax.vmap(one, in_axes=(None, 0)))


@dataclass(frozen=True)
class Metastable(Row):
    """Tokens on the circle, from random starts to one cluster, with `Coarsening`.

    The time is the median over the starts, without compilation.

    Attributes:
        n: number of tokens.
        beta: inverse temperature β.
        stop: the last time.
        starts: number of random starts.
        targets: what must be reached.
        name: name of the row.
    """

    n: int
    beta: float
    stop: float
    starts: int
    targets: tuple[Target, ...] = ()
    name: str = "metastable"

    def quick(self) -> Metastable:
        return replace(self, starts=1, targets=())

    def measure(self, on_progress: OnProgress) -> Outcome:
        seconds, last_merges = [], []
        for key in range(self.starts):
            on_progress(f"start {key + 1} of {self.starts}")
            times = np.concatenate([[0.0], np.geomspace(1.0, self.stop, 57)])
            x0 = initial.sphere(self.n, 2, key=key)

            def run(x0: Any = x0, times: Any = times) -> Any:
                trajectory = simulate(SA(self.beta), x0, times, method=Coarsening(tol=1e-6))
                return jax.block_until_ready(trajectory)

            merges = run().merges
            seconds.append(min(seconds_of(run) for _ in range(3)))
            if int(merges.count) == self.n - 1:
                last_merges.append(float(np.nanmax(merges.time)))
        entry = Entry("attnflow", spread(seconds), note=self._note(last_merges))
        return Outcome(self.name, self.title, [entry])

    @property
    def title(self) -> str:
        return f"metastable run on the circle, n = {self.n}, β = {self.beta:g}, to one cluster"

    def _note(self, last_merges: list[float]) -> str:
        ended = f"{len(last_merges)} of {self.starts} starts ended in one cluster"
        if not last_merges:
            return f"{ended} before t = {self.stop:.0e}"
        return f"{ended}, the last at t = {max(last_merges):.0e}"
