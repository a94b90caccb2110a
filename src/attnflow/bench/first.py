"""Rows about what one waits for: the first result of a process, small runs, a gradient."""

from __future__ import annotations

import abc
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from attnflow import initial
from attnflow.bench import plain
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
from attnflow.simulation import Adaptive, simulate
from attnflow.systems import SA

SCIPY, COMPILED, EMPTY = "SciPy", "attnflow, compiled before", "attnflow, nothing compiled"

EXAMPLE = """
import numpy as np
import attnflow as af

x0 = af.initial.sphere(n=64, d=3, key=0)
traj = af.simulate(af.SA(beta=4.0), x0, np.linspace(0, 30, 61))
traj.final.block_until_ready()
"""
"""The example of the README."""

ANOTHER_SIZE = """
import time

start = time.perf_counter()
x0 = af.initial.sphere(n=80, d=3, key=0)
af.simulate(af.SA(beta=4.0), x0, np.linspace(0, 30, 61)).final.block_until_ready()
print(time.perf_counter() - start)
"""

TIMES = np.linspace(0, 30, 61)


def run_process(cache: Path, *arguments: str) -> str:
    """What a new Python prints that keeps what it compiles in a folder."""
    kept = {k: v for k, v in os.environ.items() if k != "JAX_COMPILATION_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, *arguments],
        env=kept | {"XDG_CACHE_HOME": str(cache), "ATTNFLOW_CACHE": str(cache)},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


@dataclass(frozen=True)
class NewProcess(Row):
    """Something that is timed in new processes, which begin with an empty folder."""

    starts: int
    targets: tuple[Target, ...] = ()

    @abc.abstractmethod
    def seconds(self, folder: Path) -> dict[str, float]:
        """What each contender took, beginning with the one that others are compared with."""

    def quick(self) -> Row:
        return replace(self, starts=1, targets=())

    def measure(self, on_progress: OnProgress) -> Outcome:
        rounds = []
        for k in range(self.starts):
            on_progress(f"start {k + 1} of {self.starts}")
            with tempfile.TemporaryDirectory() as folder:
                rounds.append(self.seconds(Path(folder)))
        entries = _beside({name: [one[name] for one in rounds] for name in rounds[0]})
        return Outcome(self.name, self.title, entries)


class ColdStart(NewProcess):
    """`attnflow run` in a new process that finds no compiled code on disk."""

    name = "cold-start"
    title = "first picture of attnflow run, nothing compiled before"

    def seconds(self, folder: Path) -> dict[str, float]:
        picture = folder / "picture.png"
        command = ("-m", "attnflow", "run", "--out", str(picture))
        seconds = seconds_of(partial(run_process, folder, *command))
        assert picture.exists()
        return {"attnflow": seconds}


class FirstResult(NewProcess):
    """The example of the README in a new process, beside the same as a script for SciPy."""

    name = "first-result"
    title = "first result of a new process: n = 64, d = 3, β = 4, 61 times, rtol 1e-8"

    def seconds(self, folder: Path) -> dict[str, float]:
        calls = {
            # -P: the script finds no module of its own folder by accident.
            SCIPY: ("-P", plain.__file__),
            EMPTY: ("-c", EXAMPLE),
            COMPILED: ("-c", EXAMPLE),
        }
        return {
            name: seconds_of(partial(run_process, folder, *arguments))
            for name, arguments in calls.items()
        }


class NewSize(NewProcess):
    """Another number of tokens, in a process that has run one already."""

    name = "new-size"
    title = "another n in a process that has run n = 64: start and run, n = 80, d = 3"

    def seconds(self, folder: Path) -> dict[str, float]:
        program = EXAMPLE + ANOTHER_SIZE
        return {name: float(run_process(folder, "-c", program)) for name in (EMPTY, COMPILED)}


@dataclass(frozen=True)
class SmallRun(Row):
    """A compiled run beside SciPy's at the same error.

    SciPy has the tolerances that attnflow has by default. attnflow has the loosest with which its
    error is not larger than SciPy's; both errors are against a run of SciPy at rtol 1e-13.
    """

    n: int
    targets: tuple[Target, ...] = ()
    budget: TimingBudget = FULL_BUDGET

    @property
    def name(self) -> str:  # type: ignore[override]
        """`small-64` for 64 tokens."""
        return f"small-{self.n}"

    @property
    def title(self) -> str:
        return f"compiled run at equal error, n = {self.n}, d = 3, β = 4, to t = 30, 61 times"

    def quick(self) -> SmallRun:
        return replace(self, targets=(), budget=QUICK_BUDGET)

    def measure(self, on_progress: OnProgress) -> Outcome:
        on_progress("looking for tolerances of the same error")
        x0 = initial.sphere(n=self.n, d=3, key=0)
        start, system = np.asarray(x0), SA(beta=4.0)
        exact = plain.run_plain(start, TIMES, 4.0, rtol=1e-13, atol=1e-14)
        theirs = _error(plain.run_plain(start, TIMES, 4.0), exact)
        for rtol in 10.0 ** np.arange(-5, -9.1, -0.25):
            method = Adaptive(rtol=rtol, atol=rtol / 100)
            ours = _error(simulate(system, x0, TIMES, method=method).xs, exact)
            if ours <= theirs:
                break
        calls = {
            "attnflow": lambda: jax.block_until_ready(
                simulate(system, x0, TIMES, method=method).xs
            ),
            SCIPY: lambda: plain.run_plain(start, TIMES, 4.0),
        }
        times = time_side_by_side(calls, self.budget, on_progress)
        first, second = _beside(times)
        note = f"rtol = {rtol:.1e}"
        entries = [replace(first, error=ours, note=note), replace(second, error=theirs)]
        return Outcome(self.name, self.title, entries)


@dataclass(frozen=True)
class Gradient(Row):
    """The derivative of a run with respect to β, with and without the user's own jit."""

    targets: tuple[Target, ...] = ()
    name: str = "gradient"
    budget: TimingBudget = FULL_BUDGET

    @property
    def title(self) -> str:
        return "jax.grad of a run with respect to β, n = 64, d = 3, to t = 30, once compiled"

    def quick(self) -> Gradient:
        return replace(self, targets=(), budget=QUICK_BUDGET)

    def measure(self, on_progress: OnProgress) -> Outcome:
        x0 = initial.sphere(n=64, d=3, key=0)

        def spread_of(beta: Any) -> Any:
            return simulate(SA(beta), x0, [0.0, 30.0]).final.var()

        plainly, jitted = jax.grad(spread_of), jax.jit(jax.grad(spread_of))
        calls = {
            "jax.jit(jax.grad(f))": lambda: jitted(4.0).block_until_ready(),
            UNJITTED: lambda: plainly(4.0).block_until_ready(),
        }
        times = time_side_by_side(calls, self.budget, on_progress)
        return Outcome(self.name, self.title, _beside(times))


UNJITTED = "jax.grad(f)"


def _error(xs: Any, exact: np.ndarray) -> float:
    return float(np.abs(np.asarray(xs) - exact).max())


def _beside(seconds: dict[str, Sequence[float]] | dict[str, list[float]]) -> list[Entry]:
    """An entry for each contender, with the ratio of its time to that of the first."""
    first = next(iter(seconds.values()))
    several = len(seconds) > 1
    return [
        Entry(name, spread(own), ratios(own, first) if several else None)
        for name, own in seconds.items()
    ]
