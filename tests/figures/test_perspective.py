"""Figures of [P]: each holds at its quick size, and does not when what it shows is broken."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from attnflow import observe
from attnflow.figures import RECIPES
from attnflow.figures.perspective import energy, fig2, fig3, fig4, fig6, repulsive, wendel
from attnflow.initial import normalise
from attnflow.plot.style import style
from attnflow.spec import parse_sweep, read_sweep
from attnflow.systems import SA
from attnflow.theory import tau_star

SWEEPS = Path(__file__).parents[2] / "examples" / "sweeps"

QUICK = ("P-fig2", "P-fig6", "P-wendel", "P-gamma", "P-energy")
LONGER = [
    pytest.param(name, marks=pytest.mark.slow) for name in ("P-fig3", "P-fig4", "P-repulsive")
]


def made(name):
    with style():
        return RECIPES[name].make("quick")


def missed(picture):
    """What was not seen."""
    return [quantity.name for quantity in picture.seen if not quantity.holds]


@pytest.mark.parametrize("name", [*QUICK, *LONGER])
def test_what_must_be_seen_is_there(name):
    picture = made(name)
    assert picture.seen
    assert not missed(picture)


@pytest.mark.parametrize("figure", [fig3, fig4])
def test_paper_sizes_are_the_sweeps_of_the_examples(figure):
    example = read_sweep(SWEEPS / f"{figure.RECIPE.name}.toml")
    assert parse_sweep(figure.spec("paper")) == example


def test_energy_that_falls_is_seen(monkeypatch):
    monkeypatch.setattr(energy, "SA", lambda beta, V: SA(beta, V=-V))
    said = missed(made("P-energy"))
    assert any("least step" in name for name in said)
    assert any("largest step" in name for name in said)


def test_tokens_that_repel_never_end_in_one_cluster(monkeypatch):
    monkeypatch.setattr(fig2, "LATEST", 50.0)
    monkeypatch.setattr(fig2, "BETAS", (1.0, 3.0))
    monkeypatch.setattr(fig2, "SA", lambda beta: SA(beta, V=-1.0))
    assert "share of one cluster where it is proven" in missed(made("P-fig2"))


def test_a_wrong_angle_is_no_zero_of_g(monkeypatch):
    monkeypatch.setattr(fig6, "tau_star", lambda beta: 0.9 * tau_star(beta))
    said = missed(made("P-fig6"))
    assert [name.split(",")[0] for name in said[:2]] == ["|g(τ*)| / e^β", "g farther than τ*"]


def test_wendel_of_another_dimension_is_noticed(monkeypatch):
    right = wendel.wendel
    monkeypatch.setattr(wendel, "TOKENS", {2: (4, 6), 3: (5, 7)})
    assert not missed(made("P-wendel"))
    monkeypatch.setattr(wendel, "wendel", lambda n, d: right(n, d + 1))
    assert missed(made("P-wendel"))


@pytest.mark.slow
def test_points_that_are_not_optimal_are_noticed():
    right = repulsive.optimal_configuration(12, 3, 8.0, starts=2, seed=0)
    assert all(quantity.holds for quantity in repulsive._seen(right))
    moved = np.asarray(normalise(right.points + 1e-3 * np.eye(12, 3)))
    wrong = replace(right, points=moved, energy=float(observe.energy(moved, 8.0)))
    assert not any(quantity.holds for quantity in repulsive._seen(wrong))
