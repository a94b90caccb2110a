"""Figures of [P]: each holds at its quick size, and does not when what it shows is broken."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray

from attnflow import initial, observe, theory
from attnflow.figures import RECIPES
from attnflow.figures.perspective import (
    energy,
    fig2,
    fig3,
    fig4,
    fig5,
    fig6,
    gamma,
    repulsive,
    wendel,
)
from attnflow.initial import normalise
from attnflow.plot.style import style
from attnflow.simulation import Fixed, simulate
from attnflow.spec import parse_sweep, read_sweep
from attnflow.systems import SA
from attnflow.theory import tau_star, transition_time

SWEEPS = Path(__file__).parents[2] / "examples" / "sweeps"

QUICK = ("P-fig6", "P-wendel", "P-gamma", "P-energy")
LONGER = ("P-fig2", "P-fig3", "P-fig4", "P-fig5", "P-repulsive")


def made(name):
    with style():
        return RECIPES[name].make("quick")


def missed(picture):
    """What was not seen."""
    return [quantity.name for quantity in picture.seen if not quantity.holds]


@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(n, marks=pytest.mark.slow) for n in LONGER)]
)
def test_what_must_be_seen_is_there(name):
    picture = made(name)
    assert picture.seen
    assert not missed(picture)


@pytest.mark.parametrize("figure", [fig3, fig4, fig5])
def test_paper_sizes_are_the_sweeps_of_the_examples(figure):
    example = read_sweep(SWEEPS / f"{figure.RECIPE.name}.toml")
    assert parse_sweep(figure.spec("paper")) == example


@pytest.mark.parametrize(("late", "holds"), [({2: 3.0, 8: 1.3, 128: 1.0}, True), ({}, False)])
def test_transitions_must_come_to_the_curve(monkeypatch, late, holds):
    """The map of Fig. 3 with its transitions put at given multiples of the time (6.12)."""
    beta, times, dims = np.linspace(0.1, 9.0, 12), np.linspace(0.0, 30.0, 61), [2, 8, 128]
    curve = np.asarray(transition_time(beta, fig3.N, fig3.DELTA))
    together = [(times > late.get(d, 2.0) * curve[:, None]).astype(float) for d in dims]
    axes = {"d": dims, "beta": beta, "time": times}
    data = xarray.Dataset({"together": (tuple(axes), np.array(together))}, coords=axes)
    monkeypatch.setattr(fig3, "run_sweep", lambda spec: data)
    assert made("P-fig3").holds == holds


def test_a_map_without_transitions_or_without_zones_is_noticed():
    times, beta = np.linspace(0.0, 30.0, 61), np.linspace(0.1, 9.0, 10)
    at_once = np.tile(times > 5.0, (len(beta), 1)).astype(float)
    partly = np.where(beta[:, None] < 2.0, at_once, 0.5 * at_once)
    assert all(quantity.holds for quantity in fig5._seen("", times, partly))
    assert [quantity.holds for quantity in fig5._seen("", times, at_once)] == [True, True, False]
    slow = np.tile(times / times[-1], (len(beta), 1))
    assert [quantity.holds for quantity in fig5._seen("", times, slow)] == [False, True, False]
    assert not any(quantity.holds for quantity in fig5._seen("", times, 0.0 * at_once))


@pytest.mark.slow
def test_tokens_that_repel_have_neither_two_nor_three_clusters():
    x0 = initial.sphere(fig4.N, 2, key=0, batch=4)
    for beta, expected in fig4.CLUSTERS_BY_BETA.items():
        run = simulate(SA(beta, V=-1.0), x0, np.linspace(0, 30, 61), method=Fixed(0.1))
        assert fig4._typical(run)[1] != expected


@pytest.mark.slow
def test_another_curve_than_gamma_is_noticed(monkeypatch):
    monkeypatch.setattr(gamma, "DIMS", (16, 4096))
    monkeypatch.setattr(gamma, "DIMS_SHOWN", (16,))
    assert not missed(made("P-gamma"))
    monkeypatch.setattr(gamma, "gamma", lambda beta, n, ts: theory.gamma(beta, n, ts, False))
    assert any("orthogonal start" in name for name in missed(made("P-gamma")))


def test_energy_that_falls_is_seen(monkeypatch):
    # with the wrong sign the long run would be stiff and never come to rest
    monkeypatch.setattr(energy, "END_TIMES", {1.0: 100.0, -1.0: 100.0})
    monkeypatch.setattr(energy, "SA", lambda beta, V: SA(beta, V=-V))
    said = missed(made("P-energy"))
    assert any("least step" in name for name in said)
    assert any("largest step" in name for name in said)


@pytest.mark.slow
def test_tokens_that_repel_never_end_in_one_cluster(monkeypatch):
    monkeypatch.setattr(fig2, "TIMES", np.array([0.0, 0.5, 1.0, 2.0, 50.0]))
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
    right = repulsive.optimal_configuration(12, 3, 8.0, starts=2, key=0)
    assert all(quantity.holds for quantity in repulsive._seen(right))
    moved = np.asarray(normalise(right.points + 1e-3 * np.eye(12, 3)))
    wrong = replace(right, points=moved, energy=float(observe.energy(moved, 8.0)))
    assert not any(quantity.holds for quantity in repulsive._seen(wrong))
