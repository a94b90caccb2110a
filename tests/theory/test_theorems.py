"""Every check holds on what it draws, and fails on a twin whose hypothesis or system is broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnflow import initial
from attnflow.simulation import Adaptive
from attnflow.systems import SA, USA, PureAttention, RescaledAttention
from attnflow.theory import triples
from attnflow.theory.checks import CHECKS, Check, Draw, FlowCheck, Outcome, Quantity, Trial, check
from attnflow.theory.checks.base import run


class Hasty(SA):
    """SA with a wrong factor in its velocity."""

    def velocity(self, t, x, masses=None):
        return 1.1 * super().velocity(t, x, masses)


def negated(trial: Trial) -> Trial:
    """The same heads with −V."""
    heads = trial.system.heads
    V = -1.0 if heads.V is None else -heads.V
    system = type(trial.system)(trial.system.beta, Q=heads.Q, K=heads.K, V=V)
    return replace(trial, system=system)


def with_system(make: Callable) -> Callable[[Trial], Trial]:
    """The trial with another system, made from the old one."""
    return lambda trial: replace(trial, system=make(trial.system))


class Deaf(RescaledAttention):
    """Rescaled attention whose tokens attend to themselves alone."""

    def _means(self, t, y, values, masses):
        return values


def double_leading(trial: Trial) -> Trial:
    """A leading eigenvalue that is not simple, where T4.1 looks along one of its eigenvectors."""
    d = trial.x0.shape[-1]
    V = jnp.eye(d) + 1e-9 * jnp.diag(jnp.arange(d, dtype=float))
    Q, K = triples.positive_scores(d, jax.random.key(0))
    return replace(trial, system=RescaledAttention(Q=Q, K=K, V=V), x0=12 * trial.x0)


def early(trial: Trial) -> Trial:
    """−V, and not until the times that only merging can reach."""
    return replace(negated(trial), ts=np.array([0.0, 50.0, 100.0, 200.0]))


def torn(trial: Trial) -> Trial:
    """A thousandfold repulsion, while nearby starts are still nearby."""
    system = SA(trial.system.beta, V=-1000.0)
    return replace(trial, system=system, ts=np.linspace(0.0, 0.005, len(trial.ts)))


def both_negated(trial: Trial) -> Trial:
    """−V at both values of β."""
    return replace(negated(trial), data=SA(1.0, V=-1.0))


def unmasked(trial: Trial) -> Trial:
    """Tokens that see all others."""
    heads = trial.system.heads
    return replace(trial, system=SA(trial.system.beta, Q=heads.Q, K=heads.K))


def asymmetric(trial: Trial) -> Trial:
    """A causal mask that stays where it is when tokens are permuted."""
    system = SA(3.0, mask="causal")
    return replace(trial, system=system, data=(*trial.data[:2], system))


def flung(trial: Trial) -> Trial:
    """A thousandfold repulsion, which the Lipschitz constant of V = I does not bound."""
    system = USA(trial.system.beta, V=-1000.0)
    return replace(trial, system=system, ts=np.linspace(0.0, 0.005, len(trial.ts)))


def one_sided(trial: Trial) -> Trial:
    """Tokens that are not uniform."""
    return replace(trial, x0=trial.x0 + 0.5)


def symmetric(trial: Trial) -> Trial:
    """Symmetric matrices, whose eigenvalues are all real."""
    return replace(trial, data=trial.data + np.swapaxes(trial.data, 1, 2))


TWINS: dict[str, Callable[[Trial], Trial]] = {
    "T2.1": negated,
    "L-dist": negated,
    "T3.1": negated,
    "TC.5": with_system(lambda system: PureAttention(V=-1.0, beta=3.0)),
    "T4.1": double_leading,
    "L-dual": with_system(lambda s: PureAttention(Q=s.heads.Q, K=s.heads.K, V=s.heads.V)),
    "T5.1": with_system(lambda s: Deaf(Q=s.heads.Q, K=s.heads.K, V=s.heads.V)),
    "C4.2": double_leading,
    "R4": negated,
    "P3.4": lambda trial: replace(trial, data=[3.0 * x for x in trial.data]),
    "3.6": with_system(lambda system: Hasty(system.beta)),
    "R3.8": with_system(lambda system: Hasty(system.beta, Q=system.heads.Q, V=system.heads.V)),
    "T4.1p": negated,
    "T4.2": both_negated,
    "T4.3": negated,
    "T5.1p": early,
    "T6.1": early,
    "L6.4": negated,
    "T6.7": one_sided,
    "T6.8": lambda trial: replace(trial, x0=initial.sphere(8, 8, key=0)),
    "T6.9": with_system(lambda system: SA(3.0)),
    "6.12": with_system(lambda system: SA(system.beta + 0.5)),
    "D.4": torn,
    "R2.2": asymmetric,
    "R3.3": flung,
    "T9.2": negated,
    "CAUSAL": unmasked,
    "Gin": symmetric,
}


def first_trial(id: str) -> tuple[Check, Trial]:
    row = CHECKS[id]
    return row, next(iter(row.trials(key=0)))


class Pooled(Check):
    """A check that measures a batch as a whole."""

    def trials(self, key: int) -> Iterator[Trial]:
        yield from ()

    def judge(self, trial: Trial) -> list[Draw]:
        trial.run()
        return []


class Single(FlowCheck):
    """A check that measures one start at a time."""

    def trials(self, key: int) -> Iterator[Trial]:
        yield from ()

    def measure(self, system, ts, xs) -> list[Quantity]:
        return []


@pytest.mark.parametrize(
    ("row", "batch", "about"),
    [
        (Single(), (), [{"β": 1.0}]),
        (Single(), (3,), [{"β": 1.0, "member": k} for k in range(3)]),
        (Pooled(), (3,), [{"β": 1.0}]),
    ],
    ids=["one start", "each of a batch", "a batch as a whole"],
)
def test_a_run_that_stops_leaves_every_draw_unresolved(row, batch, about) -> None:
    x0 = initial.sphere(4, 2, key=0, batch=batch)
    trial = Trial({"β": 1.0}, SA(1.0), x0, [0.0, 1e3], Adaptive(max_steps=2))
    draws = row.draws(trial)
    assert [draw.about for draw in draws] == about
    assert all("2 steps" in draw.unresolved for draw in draws)


def test_a_rate_that_cannot_be_fitted_is_unresolved() -> None:
    ts = np.arange(3.0)
    apart, together = np.eye(2), np.ones((2, 2)) / np.sqrt(2)
    hemisphere, system = CHECKS["L6.4"], SA(1.0)
    why = hemisphere.measure(system, ts, np.array([apart, together, together]))
    assert why == "0 saves are too few to fit a rate to"
    [diameter] = hemisphere.measure(system, ts, np.array([apart, apart, apart]))
    assert not diameter.holds


def test_rows_that_are_boolean_at_once_have_no_rate() -> None:
    leaders, system = CHECKS["T2.1"], RescaledAttention(Q=1.0, K=1.0, V=1.0)
    far = np.array([[-100.0], [0.0], [100.0]])
    assert "too few" in leaders.measure(system, np.arange(3.0), np.array([far] * 3))
    rows, *_ = leaders.measure(system, np.zeros(3), np.array([far / 1e3] * 3))
    assert not rows.holds


GOOD, BAD = (Quantity("size", value, "≤", 1.0) for value in (0.5, 2.0))
SOLVED, UNSOLVED = (replace(quantity, part="equation") for quantity in (GOOD, BAD))
OPEN = Draw({}, (), "still moving")


@pytest.mark.parametrize(
    ("draws", "verdict", "said"),
    [
        ([Draw({}, (GOOD, SOLVED))], "holds", "holds"),
        ([Draw({}, (GOOD, UNSOLVED))], "fails", "fails (the equation, not the theorem)"),
        ([Draw({}, (BAD, SOLVED))], "fails", "fails (the theorem)"),
        ([Draw({}, (BAD, UNSOLVED))], "fails", "fails (the equation and the theorem)"),
        ([Draw({}, (UNSOLVED,), "stopped")], "fails", "fails (the equation, not the theorem)"),
        ([Draw({}, (SOLVED,))], "fails", "fails"),
        ([Draw({}, (GOOD,)), OPEN], "unresolved", "unresolved"),
        ([Draw({}, (GOOD,))] * 3 + [OPEN], "holds", "holds"),
        ([Draw({}, (replace(GOOD, vacuous=True),))], "holds", "holds (vacuous bound)"),
    ],
)
def test_the_verdict_says_what_failed(draws, verdict, said) -> None:
    outcome = Outcome(CHECKS["T6.8"], tuple(draws), 0, 0.0)
    assert (outcome.verdict, outcome.said) == (verdict, said)
    assert outcome.wrong == (verdict != "holds")


def test_a_conjecture_may_fail_but_not_its_runs() -> None:
    seen, wrong = (
        Outcome(CHECKS["C4.2"], (Draw({}, (quantity,)),), 0, 0.0) for quantity in (BAD, UNSOLVED)
    )
    assert (seen.said, seen.wrong) == ("contradicted", False)
    assert (wrong.said, wrong.wrong) == ("fails (the equation, not the theorem)", True)


def test_a_run_that_does_not_solve_its_equation_fails() -> None:
    x0 = initial.sphere(6, 3, key=0, batch=(2,))
    ts = np.linspace(0.0, 2.0, 3)
    for system, solves in ((SA(2.0), True), (Hasty(2.0), False)):
        [quantity] = run(Trial({}, system, x0, ts)).equation
        assert quantity.holds == solves


def test_every_check_has_a_twin() -> None:
    assert set(TWINS) == set(CHECKS)


@pytest.mark.slow
@pytest.mark.parametrize("id", CHECKS)
def test_it_holds(id: str) -> None:
    outcome = check(id, key=1)
    assert outcome.verdict == "holds", str(outcome)
    assert outcome.counts["unresolved"] <= len(outcome.draws) / 10


@pytest.mark.slow
@pytest.mark.parametrize("id", CHECKS)
def test_its_twin_fails(id: str) -> None:
    row, trial = first_trial(id)
    broken = TWINS[id](trial)
    draws = row.draws(broken)
    missed = [quantity for draw in draws for quantity in draw.missed]
    assert any(quantity.part == "theorem" for quantity in missed), draws
