"""What a check is: trials that meet a hypothesis, and what was measured of the conclusion."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import jax
import numpy as np
from jaxtyping import Array

from attnflow.errors import IncompleteRun
from attnflow.randomness import as_key
from attnflow.records import plain
from attnflow.simulation import Adaptive, Trajectory, simulate
from attnflow.theory.checks.equations import is_written, off_the_equation
from attnflow.verdicts import Quantity, Verdict, described

TOKENS, STARTS, SAVES = 16, 8, 25
"""Tokens, starts of a batch and save times of most trials: one shape compiles once for all."""

FIT = 4
"""A rate is fitted to at least this many saves."""

FAITHFUL = 1e-4
"""A run solves its equation if it is this close to SciPy's solution, over the way of a token."""


@dataclass(frozen=True)
class Draw:
    """One start (and weights) that met the hypothesis, and what was measured of it.

    Attributes:
        about: what was drawn.
        quantities: what was measured.
        unresolved: why nothing can be concluded about the theorem (the run stopped, or had not
            settled), or None. A run that does not solve its equation fails all the same.
    """

    about: dict[str, Any]
    quantities: tuple[Quantity, ...] = ()
    unresolved: str | None = None

    @property
    def missed(self) -> tuple[Quantity, ...]:
        """What is beyond its bound; of an unresolved draw only what is known of the equation."""
        looked_at = [q for q in self.quantities if self.unresolved is None or q.part == "equation"]
        return tuple(q for q in looked_at if not q.holds)

    @property
    def verdict(self) -> Verdict:
        """Whether every quantity is within its bound."""
        if self.missed:
            return "fails"
        if self.unresolved is not None:
            return "unresolved"
        return "holds" if any(q.part == "theorem" for q in self.quantities) else "fails"

    @property
    def label(self) -> str:
        """What was drawn, in one line."""
        return described(self.about)

    def to_json(self) -> dict[str, Any]:
        """Everything."""
        return {
            "about": plain(self.about),
            "verdict": self.verdict,
            "unresolved": self.unresolved,
            "quantities": [q.to_json() for q in self.quantities],
        }


@dataclass(frozen=True)
class Trial:
    """What a check runs: a system from one start (n, d) or from a batch of them (B, n, d).

    Attributes:
        about: what was drawn; members of a batch are numbered by `member`.
        system: the system.
        x0: the start, shape (n, d) or (B, n, d).
        ts: the save times, shape (T,).
        method: how it is integrated.
        data: whatever else the check needs.
        masses: masses of the tokens, or None.
        window: the time from the start over which the run is compared with SciPy's solution.
    """

    about: dict[str, Any]
    system: Any = None
    x0: Any = None
    ts: Any = None
    method: Any = field(default_factory=Adaptive)
    data: Any = None
    masses: Any = None
    window: float = 1.0

    def run(self) -> Trajectory:
        """Simulate it."""
        return simulate(self.system, self.x0, self.ts, method=self.method, masses=self.masses)

    @property
    def members(self) -> list[dict[str, Any]]:
        """What is known of each start: `about`, with the number of the member in a batch."""
        if np.ndim(self.x0) == 2:
            return [self.about]
        return [self.about | {"member": member} for member in range(len(self.x0))]


@dataclass(frozen=True)
class Run:
    """A trial that was run.

    Attributes:
        ts: the save times, shape (T,).
        xs: what was looked at, shape (*batch, T, n, d).
        equation: how far the run is from its equation; empty where `equations` does not know the
            system.
    """

    ts: np.ndarray
    xs: np.ndarray
    equation: tuple[Quantity, ...]

    @property
    def final(self) -> np.ndarray:
        """The last states (*batch, n, d)."""
        return self.xs[..., -1, :, :]


def states_of(trajectory: Trajectory) -> np.ndarray:
    """The states (*batch, T, n, d)."""
    return np.asarray(trajectory.xs)


def run(trial: Trial, look: Callable[[Trajectory], np.ndarray] = states_of) -> Run:
    """Run a trial, with one more save at the end of its window, and judge the equation there.

    What is kept of it is what `look` sees, at the times of the trial.
    """
    ts = np.asarray(trial.ts, float)
    until = _until(trial)
    known = bool(_at(ts, until).any())
    times = ts if known else np.sort(np.append(ts, until))
    trajectory = replace(trial, ts=times).run()
    xs = look(trajectory)
    kept = xs if known else xs[..., ~_at(times, until), :, :]
    return Run(ts, kept, _equation(trial, trajectory))


def _layer(trial: Trial) -> float | None:
    """The step of a discrete Transformer; None for a flow."""
    step = None if trial.method is None else trial.method.layer_step
    return None if step is None else float(step)


def _until(trial: Trial) -> float:
    """The end of the window: after whole layers, and not after the end of the run."""
    dt, ts = _layer(trial), np.asarray(trial.ts, float)
    window = trial.window if dt is None else dt * math.ceil(trial.window / dt)
    return min(ts[0] + window, ts[-1])


def _at(ts: np.ndarray, time: float) -> np.ndarray:
    return np.isclose(ts, time, rtol=0, atol=1e-9)


def _equation(trial: Trial, trajectory: Trajectory) -> tuple[Quantity, ...]:
    """How far the first and the last member of a batch are off the equation after the window.

    Nothing, if the equation is not known or a run did not come so far.
    """
    ts, until = np.asarray(trajectory.ts), _until(trial)
    if not is_written(trajectory.system) or not _at(ts, until).any():
        return ()
    xs = np.asarray(trajectory.xs)
    n, d = xs.shape[-2:]
    batch = xs.shape[:-3]
    states = xs.reshape(-1, len(ts), n, d)
    masses = None
    if trial.masses is not None:
        masses = np.broadcast_to(trial.masses, (*batch, n)).reshape(-1, n)
    at = int(np.argmax(_at(ts, until)))
    off = []
    for k in {0, len(states) - 1}:
        m = None if masses is None else masses[k]
        before, after = states[k, 0], states[k, at]
        if np.isfinite(after).all():
            span, dt = (float(ts[0]), float(ts[at])), _layer(trial)
            off.append(off_the_equation(trajectory.system, span, before, after, masses=m, dt=dt))
    name = f"off the equation after t = {until - ts[0]:.2g}, over the way"
    return (Quantity(name, max(off), "≤", FAITHFUL, "equation"),) if off else ()


class Check(abc.ABC):
    """A theorem of the papers as something that can be measured, and can fail.

    `trials` draws starts and weights that meet the hypothesis, `judge` runs one trial and measures
    the conclusion. What is simulated is also compared with SciPy's solution of the equation as it
    is written in the papers, so that a wrong flow that meets the conclusion too is not taken for
    the right one.

    Attributes:
        id: what `check` is called with.
        source: where it is stated.
        hypothesis: what is assumed.
        conclusion: what is measured.
        settings: horizon and tolerance, as the report states them.
        proven: False for a conjecture, which may be contradicted.
        aliases: other names of it.
    """

    id: ClassVar[str]
    source: ClassVar[str]
    hypothesis: ClassVar[str]
    conclusion: ClassVar[str]
    settings: ClassVar[str]
    proven: ClassVar[bool] = True
    aliases: ClassVar[tuple[str, ...]] = ()

    @abc.abstractmethod
    def trials(self, key: int) -> Iterator[Trial]:
        """Trials that meet the hypothesis, the same ones for the same key."""

    @abc.abstractmethod
    def judge(self, trial: Trial) -> Sequence[Draw]:
        """Run a trial and measure the conclusion, for every member of its batch."""

    def subjects(self, trial: Trial) -> Sequence[dict[str, Any]]:
        """What each draw of a trial is about; by default there is one draw for the whole trial."""
        return [trial.about]

    def draws(self, trial: Trial) -> Sequence[Draw]:
        """`judge`, where a run that cannot go on leaves every draw of its trial unresolved.

        As far as it came, it must have solved its equation all the same.
        """
        try:
            return self.judge(trial)
        except IncompleteRun as error:
            equation = _equation(trial, error.trajectory)
            subjects = self.subjects(trial)
            return [Draw(about, equation, unresolved=error.reason) for about in subjects]


class FlowCheck(Check):
    """A check of a trajectory, one start at a time."""

    @abc.abstractmethod
    def measure(self, system: Any, ts: np.ndarray, xs: np.ndarray) -> Sequence[Quantity] | str:
        """The quantities of one run with `states` xs (T, n, d), or why it is unresolved."""

    def states(self, trajectory: Trajectory) -> np.ndarray:
        """What `measure` looks at, (*batch, T, n, d): the states, or coordinates of them."""
        return states_of(trajectory)

    def subjects(self, trial: Trial) -> Sequence[dict[str, Any]]:
        return trial.members

    def judge(self, trial: Trial) -> Sequence[Draw]:
        """Run the batch, measure its members; the first one reports on the equation."""
        found = run(trial, self.states)
        states = found.xs.reshape(-1, *found.xs.shape[-3:])
        draws: list[Draw] = []
        for about, xs in zip(self.subjects(trial), states, strict=True):
            measured = self.measure(trial.system, found.ts, xs)
            equation = () if draws else found.equation
            if isinstance(measured, str):
                draws.append(Draw(about, equation, unresolved=measured))
            else:
                draws.append(Draw(about, (*measured, *equation)))
        return draws


def keys(key: int, k: int) -> tuple[Array, Array]:
    """The keys of draw k of a key: one for the weights, one for the tokens."""
    weights, tokens = jax.random.split(jax.random.fold_in(as_key(key), k))
    return weights, tokens


def unfitted(quantities: Sequence[Quantity], saves: int) -> Sequence[Quantity] | str:
    """What is left where a rate had too few saves to be fitted to: that, unless a quantity fails.

    >>> unfitted([Quantity("diameter", 1e-9, "≤", 1e-6)], saves=2)
    '2 saves are too few to fit a rate to'
    """
    if all(quantity.holds for quantity in quantities):
        return f"{saves} saves are too few to fit a rate to"
    return quantities
