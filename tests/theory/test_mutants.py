"""Every mistake of tests/mutants.py is seen by at least three of the checks that it concerns."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from attnflow import initial
from attnflow.systems import SA
from attnflow.theory.checks import CHECKS
from killed import CONCERNS, QUICK, seen
from mutants import MUTANTS, mutated

KEPT = Path(__file__).parents[2] / "docs" / "measured" / "mutants" / "checks.json"
NAMES = list(MUTANTS)
TODAY = [NAMES[(2 * date.today().toordinal() + k) % len(NAMES)] for k in range(2)]
"""Two mistakes, other ones every day."""


def test_three_rows_are_named_for_every_mistake() -> None:
    assert set(MUTANTS) == set(CONCERNS) == set(QUICK)
    for name, rows in QUICK.items():
        assert len(set(rows)) == 3
        assert set(rows) <= set(CONCERNS[name]) <= set(CHECKS)


def test_a_mistake_is_made_and_unmade() -> None:
    rng = np.random.default_rng(0)
    Q, K = rng.normal(size=(2, 3, 3))
    x = initial.sphere(5, 3, key=0)

    def velocities(system: SA) -> np.ndarray:
        return np.asarray(system.velocity(0.0, x))

    right = velocities(SA(2.0, Q=Q, K=K))
    with mutated("swap Q and K"):
        wrong = velocities(SA(2.0, Q=Q, K=K))
    np.testing.assert_allclose(wrong, velocities(SA(2.0, Q=K, K=Q)), rtol=1e-12)
    np.testing.assert_array_equal(velocities(SA(2.0, Q=Q, K=K)), right)
    assert np.abs(wrong - right).max() > 0.01
    with mutated("β/2"):
        np.testing.assert_array_equal(velocities(SA(jnp.asarray(4.0), Q=Q, K=K)), right)


@pytest.mark.slow
@pytest.mark.parametrize("name", TODAY)
def test_two_mistakes_a_day_are_seen(name: str) -> None:
    with mutated(name):
        said = {row: seen(CHECKS[row]) for row in QUICK[name]}
    assert all(word is not None and "stops" not in word for word in said.values()), said


@pytest.mark.slow
@pytest.mark.overnight
@pytest.mark.parametrize("name", MUTANTS)
def test_every_mistake_is_seen(name: str) -> None:
    with mutated(name):
        said = {row: seen(CHECKS[row]) for row in CONCERNS[name]}
    assert sum(word is not None for word in said.values()) >= 3, said
    assert all(said[row] is not None for row in QUICK[name]), said


def test_the_table_has_three_rows_for_every_mistake_and_one_mistake_for_every_row() -> None:
    kept = json.loads(KEPT.read_text())
    killers = {name: {row for row, word in rows.items() if word} for name, rows in kept.items()}
    assert set(killers) == set(MUTANTS)
    assert {name for name, rows in killers.items() if len(rows) < 3} == set()
    assert set(CHECKS) - set().union(*killers.values()) == set()
