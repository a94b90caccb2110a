"""Rows that time one velocity: a race of contenders, and growth with the number of tokens."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from attnflow.bench.contenders import Call, Contender, DriftProblem
from attnflow.bench.memory import megabytes
from attnflow.bench.result import Curve, Entry, Outcome
from attnflow.bench.row import Row, Target
from attnflow.bench.timing import (
    FULL_BUDGET,
    QUICK_BUDGET,
    OnProgress,
    TimedCall,
    TimingBudget,
    exponent,
    ratios,
    spread,
    time_side_by_side,
)
from attnflow.errors import first_line


class Absent(Exception):
    """A contender cannot take part; the message says why."""


@dataclass(frozen=True)
class Drift(Row):
    """One velocity, computed by several contenders. The first one is judged.

    Attributes:
        name: name of the row.
        what: what is computed.
        problem: the problem.
        contenders: who takes part.
        targets: what the first contender must reach.
        measure_memory: contenders whose peak memory is measured too.
        sizes: numbers of tokens at which the growth of the first contender is measured.
        quick_n: number of tokens of the quick row.
        budget: how long contenders are timed.
    """

    name: str
    what: str
    problem: DriftProblem
    contenders: tuple[Contender, ...]
    targets: tuple[Target, ...] = ()
    measure_memory: tuple[Contender, ...] = ()
    sizes: tuple[int, ...] = ()
    quick_n: int | None = None
    budget: TimingBudget = FULL_BUDGET

    def quick(self) -> Drift:
        problem = replace(self.problem, n=self.quick_n or self.problem.n)
        return replace(
            self, problem=problem, targets=(), measure_memory=(), sizes=(), budget=QUICK_BUDGET
        )

    def measure(self, on_progress: OnProgress) -> Outcome:
        prepared = [
            PreparedContender(contender, self.problem, on_progress) for contender in self.contenders
        ]
        times = time_side_by_side(
            {s.name: s.call for s in prepared if s.call is not None}, self.budget, on_progress
        )
        ours = times.get(prepared[0].name)
        entries = [s.entry(times.get(s.name), ours) for s in prepared]
        for i, contender in enumerate(self.contenders):
            if contender in self.measure_memory and prepared[i].call is not None:
                on_progress(f"{contender.name}: memory")
                held = megabytes(contender, contender.problem_for(self.problem))
                entries[i] = replace(entries[i], megabytes=held)
        curves = (
            [curve(self.contenders[0], self.problem, self.sizes, on_progress)] if self.sizes else []
        )
        return Outcome(self.name, self.title, entries, curves)

    @property
    def title(self) -> str:
        return f"{self.what}, {self.problem}"


class PreparedContender:
    """A contender that can be timed, or the reason why it cannot.

    Args:
        contender: the contender.
        problem: the problem of the row.
        on_progress: called with a line about what is being done.
    """

    def __init__(self, contender: Contender, problem: DriftProblem, on_progress: OnProgress):
        self.name = contender.name
        self.problem = contender.problem_for(problem)
        self.scale = (problem.n / self.problem.n) ** 2
        self.call: Call | None = None
        self.prepare: float | None = None
        self.note = "" if self.scale == 1 else f"at n = {self.problem.n:,}, × {self.scale:g}"
        on_progress(f"{self.name}: preparing")
        self.tokens = self.problem.tokens()
        try:
            start = time.perf_counter()
            self.call = prepare_call(contender, self.problem, self.tokens)
            self.prepare = time.perf_counter() - start
        except Absent as reason:
            self.note = str(reason)

    def entry(self, seconds: list[float] | None, ours: list[float] | None) -> Entry:
        """Its row of the table, from its times and those of the first contender."""
        if self.call is None or seconds is None:
            return Entry(self.name, note=self.note)
        scaled = [self.scale * s for s in seconds]
        return Entry(
            self.name,
            seconds=spread(scaled),
            ratio=None if ours is None else ratios(scaled, ours),
            error=self.problem.error(self.tokens, self.call()),
            prepare=self.prepare,
            note=self.note,
        )


def prepare_call(
    contender: Contender, problem: DriftProblem, x: Float[np.ndarray, "replicates n d"]
) -> Call:
    """The contender's call. Raises `Absent` if it cannot take part.

    Args:
        contender: the contender.
        problem: the problem.
        x: the tokens, shape (replicates, n, d).
    """
    reason = contender.missing()
    if reason is not None:
        raise Absent(reason)
    try:
        return contender.prepare(problem, x)
    except Exception as error:  # one contender that fails must not end a long benchmark
        raise Absent(f"failed: {first_line(error):.80}") from error


@dataclass(frozen=True)
class Growth(Row):
    """The time of one velocity against n, for many methods.

    Attributes:
        name: name of the row.
        what: what is computed.
        series: contenders, their problems, and the numbers of tokens.
        quick_sizes: numbers of tokens of the quick row.
        limit: a method stops at the size where a call takes longer than this, in seconds.
        budget: how long contenders are timed.
        targets: what must be reached.
    """

    name: str
    what: str
    series: tuple[tuple[Contender, DriftProblem, tuple[int, ...]], ...]
    quick_sizes: tuple[int, ...]
    limit: float = 1.5
    budget: TimingBudget = FULL_BUDGET
    targets: tuple[Target, ...] = ()

    @property
    def title(self) -> str:
        return self.what

    def quick(self) -> Growth:
        series = tuple((c, p, self.quick_sizes) for c, p, _ in self.series)
        return replace(self, series=series, limit=0.2, budget=QUICK_BUDGET)

    def measure(self, on_progress: OnProgress) -> Outcome:
        entries, curves = [], []
        for contender, problem, sizes in self.series:
            found = curve(contender, problem, sizes, on_progress, self.budget, self.limit)
            curves += [found] if found.sizes else []
            if not found.sizes:
                entries.append(Entry(contender.name, note=contender.missing() or "failed"))
        return Outcome(self.name, self.title, entries, curves)


def curve(
    contender: Contender,
    problem: DriftProblem,
    sizes: tuple[int, ...],
    on_progress: OnProgress,
    budget: TimingBudget = FULL_BUDGET,
    limit: float = float("inf"),
) -> Curve:
    """The time at each size.

    Args:
        contender: the contender.
        problem: the problem; its n is replaced.
        sizes: numbers of tokens, in increasing order.
        on_progress: called with a line about what is being done.
        budget: how long contenders are timed.
        limit: stop at the size where a call takes longer than this, in seconds.
    """
    reached: list[int] = []
    seconds: list[float] = []
    for n in sizes:
        on_progress(f"{contender.name}: n = {n:,}")
        sized = replace(problem, n=n)
        try:
            timed = TimedCall(prepare_call(contender, sized, sized.tokens()), budget)
        except Absent:
            break
        reached.append(n)
        seconds.append(min(timed.seconds() for _ in range(3)))
        if seconds[-1] > limit:
            break
    slope = exponent(reached, seconds) if len(reached) > 1 else None
    return Curve(contender.name, problem.where, reached, seconds, slope)
