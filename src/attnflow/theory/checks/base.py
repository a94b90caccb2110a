"""What a check is: trials that meet a hypothesis, and what was measured of the conclusion."""

from __future__ import annotations

import abc
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, SupportsFloat

import jax
import numpy as np
from jaxtyping import Array

from attnflow.errors import IncompleteRun
from attnflow.randomness import as_key
from attnflow.simulate import Adaptive, Trajectory, simulate

Verdict = Literal["holds", "fails", "unresolved"]

TOKENS, STARTS, SAVES = 16, 8, 25
"""Tokens, starts of a batch and save times of most trials: one shape compiles once for all."""

FIT = 4
"""A rate is fitted to at least this many saves."""


@dataclass(frozen=True)
class Quantity:
    """A number that was measured beside the bound that the theorem gives it.

    >>> Quantity("diameter", np.float32(1e-9), "≤", 1e-6).holds
    True
    """

    name: str
    value: SupportsFloat
    sense: Literal["≤", "≥"]
    bound: SupportsFloat

    def __post_init__(self) -> None:
        """Plain numbers, whatever array they came from."""
        object.__setattr__(self, "value", float(self.value))
        object.__setattr__(self, "bound", float(self.bound))

    @property
    def margin(self) -> float:
        """How far the value is on the right side of its bound; negative if it is not."""
        value, bound = float(self.value), float(self.bound)
        return bound - value if self.sense == "≤" else value - bound

    @property
    def holds(self) -> bool:
        """Whether the value is within its bound. NaN is not."""
        return self.margin >= 0

    @property
    def slack(self) -> float:
        """The margin in units of the bound, to compare quantities of different size."""
        return self.margin / abs(float(self.bound)) if self.bound else self.margin

    def to_json(self) -> dict[str, Any]:
        """The numbers; infinities as words, as JSON has none."""
        numbers = {"measured": self.value, "bound": self.bound, "margin": self.margin}
        safe = {k: v if math.isfinite(v) else str(v) for k, v in numbers.items()}
        return {"name": self.name, "sense": self.sense, **safe, "holds": self.holds}


@dataclass(frozen=True)
class Draw:
    """One start (and weights) that met the hypothesis, and what was measured of it.

    `unresolved` says why nothing can be concluded: the run stopped, or it had not settled.
    """

    about: dict[str, Any]
    quantities: tuple[Quantity, ...] = ()
    unresolved: str | None = None

    @property
    def verdict(self) -> Verdict:
        """Whether every quantity is within its bound."""
        if self.unresolved is not None:
            return "unresolved"
        return "holds" if self.quantities and all(q.holds for q in self.quantities) else "fails"

    @property
    def label(self) -> str:
        """What was drawn, in one line."""
        return described(self.about)

    def to_json(self) -> dict[str, Any]:
        """Everything."""
        return {
            "about": {k: _plain(v) for k, v in self.about.items()},
            "verdict": self.verdict,
            "unresolved": self.unresolved,
            "quantities": [q.to_json() for q in self.quantities],
        }


@dataclass(frozen=True)
class Trial:
    """What a check runs: a system from one start (n, d) or from a batch of them (B, n, d).

    `about` tells what was drawn; the members of a batch are told apart by `member`.
    """

    about: dict[str, Any]
    system: Any = None
    x0: Any = None
    ts: Any = None
    method: Any = field(default_factory=Adaptive)
    data: Any = None

    def run(self) -> Trajectory:
        """Simulate it."""
        return simulate(self.system, self.x0, self.ts, method=self.method)

    @property
    def members(self) -> list[dict[str, Any]]:
        """What is known of each start: `about`, with the number of the member in a batch."""
        if np.ndim(self.x0) == 2:
            return [self.about]
        return [self.about | {"member": member} for member in range(len(self.x0))]


class Check(abc.ABC):
    """A theorem of the papers as something that can be measured, and can fail.

    `trials` draws starts and weights that meet the hypothesis, `judge` runs one trial and measures
    the conclusion. A conjecture is no proven statement: it may be contradicted.
    """

    id: ClassVar[str]
    source: ClassVar[str]
    hypothesis: ClassVar[str]
    conclusion: ClassVar[str]
    settings: ClassVar[str]
    """Horizon and tolerance, as the report states them."""
    proven: ClassVar[bool] = True
    aliases: ClassVar[tuple[str, ...]] = ()

    @abc.abstractmethod
    def trials(self, seed: int) -> Iterator[Trial]:
        """Trials that meet the hypothesis, the same ones for the same seed."""

    @abc.abstractmethod
    def judge(self, trial: Trial) -> Sequence[Draw]:
        """Run a trial and measure the conclusion, for every member of its batch."""

    def subjects(self, trial: Trial) -> Sequence[dict[str, Any]]:
        """What each draw of a trial is about: one for the whole trial, unless told otherwise."""
        return [trial.about]

    def draws(self, trial: Trial) -> Sequence[Draw]:
        """`judge`, where a run that cannot go on leaves every draw of its trial unresolved."""
        try:
            return self.judge(trial)
        except IncompleteRun as error:
            why = str(error).split(". What was")[0]
            return [Draw(about, unresolved=why) for about in self.subjects(trial)]


class FlowCheck(Check):
    """A check of a trajectory, one start at a time."""

    @abc.abstractmethod
    def measure(self, system: Any, ts: np.ndarray, xs: np.ndarray) -> Sequence[Quantity] | str:
        """The quantities of one run with states xs (T, n, d), or why it is unresolved."""

    def subjects(self, trial: Trial) -> Sequence[dict[str, Any]]:
        """The members of the batch, one by one."""
        return trial.members

    def judge(self, trial: Trial) -> Sequence[Draw]:
        """Run the batch, then measure its members."""
        trajectory = trial.run()
        ts, states = np.asarray(trajectory.ts), np.asarray(trajectory.xs)
        runs = states.reshape(-1, *states.shape[-3:])
        found = []
        for about, xs in zip(self.subjects(trial), runs, strict=True):
            measured = self.measure(trial.system, ts, xs)
            if isinstance(measured, str):
                found.append(Draw(about, unresolved=measured))
            else:
                found.append(Draw(about, tuple(measured)))
        return found


def keys(seed: int, k: int) -> tuple[Array, Array]:
    """The keys of draw k of a seed: one for the weights, one for the tokens."""
    weights, tokens = jax.random.split(jax.random.fold_in(as_key(seed, None), k))
    return weights, tokens


def unfitted(quantities: Sequence[Quantity], saves: int) -> Sequence[Quantity] | str:
    """What is left where a rate had too few saves to be fitted to: that, unless a quantity fails.

    >>> unfitted([Quantity("diameter", 1e-9, "≤", 1e-6)], saves=2)
    '2 saves are too few to fit a rate to'
    """
    if all(quantity.holds for quantity in quantities):
        return f"{saves} saves are too few to fit a rate to"
    return quantities


def _plain(value: Any) -> Any:
    """A value that JSON can hold."""
    return value.item() if isinstance(value, np.generic) else value


def described(about: dict[str, Any]) -> str:
    """What was drawn, in one line.

    >>> described({"n": 8, "β": 4.0})
    'n = 8, β = 4'
    """
    short = {k: f"{v:.4g}" if isinstance(v, float) else str(v) for k, v in about.items()}
    return ", ".join(f"{k} = {v}" for k, v in short.items())
