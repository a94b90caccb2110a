"""`Filippov`: solutions of the hardmax flow, which stop and choose wherever scores tie."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Array, Float

from attnflow.checks import require_count, require_positive
from attnflow.errors import InputError, unknown
from attnflow.simulation.host import HostMethod, Leg, Stuck
from attnflow.simulation.methods import as_typed
from attnflow.simulation.ties import (
    Field,
    NoSelection,
    Supports,
    same_place,
    select,
    weights,
)
from attnflow.systems import Hardmax, System

RULES = ("all", "first", "minimal-norm")

OVERTAKEN = 1e-12
"""A score has overtaken when it is ahead by this part of its size: below the tolerance of ties, so
that both are then seen to tie, and above rounding."""

SPENT_WEIGHT = 1e-9
"""A weight that has fallen to this has left its support."""

MAX_IDLE_EVENTS = 20
"""So many changes in a row without time passing are the end of a run."""


class Filippov(HostMethod):
    """Filippov solutions of `Hardmax`, from one change of its argmax sets to the next.

    Between two changes the flow is smooth, and SciPy's DOP853 follows it to `rtol` until an event:
    another token's score overtakes, or a weight on a tie falls to 0. Then tokens choose anew. A
    choice is viable if it lasts: a token crosses a tie, or slides along it with the weights that
    keep it. Where several are viable, solutions are not unique ([P] Example 9.3), and `rule` takes:

    - "all": follow as many of those that tie as can stay tied, in the mean if that keeps the tie;
      from a tied start this is where (9.4) goes as β → ∞;
    - "first": follow a single token where that is viable, that of the lowest index;
    - "minimal-norm": move as slowly as possible, so wait where waiting is viable.

    Equal tokens move as one. It runs on the host, one start at a time and not under jit; an
    overtaking that is undone within a tenth of 1/|V| may go unseen.

    Args:
        rule: "all", "first" or "minimal-norm".
        rtol: relative tolerance between two changes.
        max_events: the number of changes after which the run gives up and keeps what it has.

    >>> Filippov("first")
    Filippov(rule='first', rtol=1e-10, max_events=10000)
    """

    rule: str = eqx.field(static=True)
    rtol: Array
    max_events: int = eqx.field(static=True)

    def __init__(self, rule: str = "all", rtol: Any = 1e-10, max_events: int = 10_000):
        if rule not in RULES:
            raise unknown("rule", rule, RULES)
        require_positive(rtol, "rtol")
        self.rule, self.rtol = rule, jnp.asarray(rtol, float)
        self.max_events = require_count(max_events, "max_events")

    def check(self, system: System, ts: Float[np.ndarray, " T"] | None) -> None:
        """Only the hardmax flow has ties to choose at."""
        if system.dynamics != "inclusion":
            raise InputError(
                f"method Filippov is for Hardmax, whose velocity jumps, but the system is "
                f"{type(system).__name__}: use Adaptive()."
            )

    def walk(
        self,
        system: Any,
        x: Float[np.ndarray, "n d"],
        ts: Float[np.ndarray, " T"],
        masses: Float[np.ndarray, " n"] | None,
    ) -> Iterator[Leg]:
        """From event to event."""
        field, z, whose = _merged(system, x, masses)
        t, still = float(ts[0]), 0
        for _ in range(self.max_events):
            try:
                leg = self._leg(field, z, t, float(ts[-1]), select(field, z, self.rule))
            except NoSelection as problem:
                raise Stuck(str(problem), "move the start a little, or use Fixed(dt)") from None
            yield Leg(leg.t, lambda s, leg=leg: leg.state(s)[whose], leg.steps)  # type: ignore[misc]
            still = still + 1 if leg.t - t <= 1e-12 * max(1.0, abs(t)) else 0
            z, t = leg.state(leg.t), leg.t
            if t >= ts[-1]:
                return
            if still >= MAX_IDLE_EVENTS:
                why = "argmax sets change without time passing"
                raise Stuck(why, "take another rule, or use Fixed(dt)")
        why = f"its {self.max_events} changes of argmax sets are used up"
        raise Stuck(why, "raise max_events")

    def _leg(
        self, field: Field, z: Float[np.ndarray, "n d"], t: float, end: float, supports: Supports
    ) -> Leg:
        """The smooth flow on these supports, to the first event."""
        shape = z.shape

        def rhs(_t: float, flat: np.ndarray) -> np.ndarray:
            y = flat.reshape(shape)
            return field.velocity(y, weights(field, y, supports)).ravel()

        run = scipy.integrate.solve_ivp(
            rhs,
            (t, end),
            z.ravel(),
            method="DOP853",
            rtol=max(float(self.rtol), 1e-13),
            atol=1e-2 * float(self.rtol) * max(np.abs(z).max(), np.finfo(float).tiny),
            max_step=0.1 / field.speed if field.speed else np.inf,
            dense_output=True,
            events=_events(field, z, supports),
        )
        if run.status < 0 or not np.isfinite(run.y[:, -1]).all():
            raise Stuck(f"tokens ran away after t = {run.t[-1]:g}", "stop earlier")
        return Leg(float(run.t[-1]), lambda s: run.sol(s).reshape(shape), len(run.t) - 1)

    def memory(self, system: System, n: int) -> int:
        """All scores, weights and rates of all pairs: whom a token follows is a matter of all."""
        return 4 * n * n

    def steps_limit(self, system: System, ts: Any) -> int:
        return self.max_events

    def __repr__(self) -> str:
        return (
            f"Filippov(rule={self.rule!r}, rtol={as_typed(self.rtol)}, "
            f"max_events={self.max_events})"
        )


def _merged(
    system: Hardmax, x: Float[np.ndarray, "n d"], masses: Float[np.ndarray, " n"] | None
) -> tuple[Field, np.ndarray, np.ndarray]:
    """The field of the different tokens with their joint masses, these, and whose is which."""
    n, d = x.shape
    _, first, whose = np.unique(x, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    whose = np.argsort(order)[whose.ravel()]
    joint = np.bincount(whose, np.ones(n) if masses is None else masses)
    Q, K, V = (_matrix(W, d) for W in (system.heads.Q, system.heads.K, system.heads.V))
    return Field(Q.T @ K, V, joint), x[first[order]], whose


def _matrix(W: Any, d: int) -> np.ndarray:
    if W is None or np.ndim(W) == 0:
        return (1.0 if W is None else float(W)) * np.eye(d)
    return np.asarray(W, float)


def _events(
    field: Field, start: Float[np.ndarray, "n d"], supports: Supports
) -> list[Callable[..., float]]:
    """Functions that cross 0 when a score overtakes, or a weight of a tie is spent.

    A score that rounding has put ahead at the start has to overtake by more than that.
    """
    n, shape = len(start), start.shape
    inside = np.zeros((n, n), bool)
    for i, support in enumerate(supports):
        inside[i, list(support)] = True

    def leads(z: np.ndarray) -> np.ndarray:
        scores = field.scores(z)
        held = np.where(inside, scores, -np.inf).max(axis=1)
        rival = ~(inside @ same_place(z))
        return np.where(rival, (scores - held[:, None]) / field.sizes(z)[:, None], -1.0)

    ahead = OVERTAKEN + 2 * np.maximum(leads(start), 0)

    def overtaking(_t: float, flat: np.ndarray) -> float:
        return float((leads(flat.reshape(shape)) - ahead).max())

    def spending(_t: float, flat: np.ndarray) -> float:
        z = flat.reshape(shape)
        return float(weights(field, z, supports)[inside].min()) - SPENT_WEIGHT

    overtaking.terminal, overtaking.direction = True, 1.0  # type: ignore[attr-defined]
    spending.terminal, spending.direction = True, -1.0  # type: ignore[attr-defined]
    return [overtaking, spending] if inside.sum() > n else [overtaking]
