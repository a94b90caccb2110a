"""Tokens and the continuity equation: Dobrushin's constants, draws, and the rate in n."""

import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InputError
from attnflow.meanfield import (
    CircleDensity,
    dobrushin_constant,
    draw,
    lipschitz_constants,
    mean_field_run,
    von_mises,
)
from attnflow.observe import Cells, wasserstein
from attnflow.spaces import Circle

START = von_mises(1.0, 128, centre=1.0)


def field(theta, atoms, masses, beta, normalised):
    """X[μ](θ) of a measure of atoms, literally."""
    ahead = atoms[None, :] - theta[:, None]
    weights = masses * np.exp(beta * np.cos(ahead))
    total = weights.sum(axis=1) if normalised else 1.0
    return (weights * np.sin(ahead)).sum(axis=1) / total


def arc(x, y):
    return np.abs(np.angle(np.exp(1j * (x - y))))


@pytest.mark.parametrize("normalised", [True, False])
@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0, 4.0])
def test_no_two_measures_are_pulled_apart_faster(rng, beta, normalised):
    steepest = 0.0
    for spread in (0.01, 0.3, 3.0):
        for _ in range(40):
            mu = rng.uniform(-np.pi, np.pi, 3)
            nu = mu + spread * rng.normal(size=3)
            m = rng.dirichlet(np.full(3, 0.3))
            theta = rng.uniform(-np.pi, np.pi, 50)
            moved = theta + spread * rng.normal(size=50)
            change = np.abs(
                field(theta, mu, m, beta, normalised) - field(moved, nu, m, beta, normalised)
            )
            apart = wasserstein(
                mu[:, None], nu[:, None], space=Circle(), masses=m, other_masses=m
            ).distance
            # |X[μ](θ) − X[ν](θ')| ≤ L₁ |θ − θ'| + L₂ W1, and L = L₁ + L₂.
            steepest = max(steepest, (change / np.maximum(arc(theta, moved), apart)).max())
    constant = dobrushin_constant(beta, normalised)
    assert steepest <= constant
    if not normalised:
        assert steepest > 0.2 * constant


def test_the_constants_of_usa_are_reached():
    # One atom moves by ε, and θ, where it is, by −ε: the field changes by 2 ε e^β.
    beta, eps = 2.0, 1e-6
    one, at = np.ones(1), np.zeros(1)
    change = field(at - eps, at + eps, one, beta, False) - field(at, at, one, beta, False)
    assert change[0] / eps == pytest.approx(dobrushin_constant(beta, False), rel=1e-5)


@pytest.mark.parametrize("system", [af.SA(2.0), af.USA(2.0)])
def test_the_constants_along_a_density_hold_for_measures_near_and_far(rng, system):
    normalised = isinstance(system, af.SA)
    rho = von_mises(2.0, 256)
    along, across = (float(c) for c in lipschitz_constants(CircleDensity(system), rho))
    centres = 2 * np.pi * (np.arange(256) + 0.5) / 256
    masses = np.asarray(rho)[:, 0] * 2 * np.pi / 256
    theta = np.linspace(0, 2 * np.pi, 1000)
    here = field(theta, centres, masses, 2.0, normalised)
    slope = np.abs(np.diff(here) / np.diff(theta)).max()
    assert along == pytest.approx(slope, rel=0.01)
    for _ in range(50):
        nu = np.mod(centres + rng.normal(scale=rng.uniform(0, 2), size=256), 2 * np.pi)
        apart = wasserstein(
            centres[:, None], nu[:, None], space=Circle(), masses=masses, other_masses=masses
        ).distance
        assert np.abs(here - field(theta, nu, masses, 2.0, normalised)).max() <= across * apart
    assert along + across <= dobrushin_constant(2.0, normalised)


def test_the_constant_of_sa_in_the_measure_by_differences():
    beta, rho = 3.0, von_mises(2.0, 256)
    _, across = lipschitz_constants(CircleDensity(af.SA(beta)), rho)
    y = np.linspace(-np.pi, np.pi, 20_001)
    slopes = [
        np.abs(np.gradient(np.exp(beta * np.cos(y)) * (np.sin(y) - X), y)).max()
        for X in (-1.0, 0.0, 1.0)
    ]
    centres = 2 * np.pi * (np.arange(256) + 0.5) / 256
    total = np.exp(beta * np.cos(y[:, None] - centres)) @ np.asarray(rho)[:, 0] * 2 * np.pi / 256
    assert float(across) == pytest.approx(max(slopes) / total.min(), rel=1e-3)


def test_draws_have_the_density():
    rho = np.array([[1.0], [0.0], [2.0], [1.0]])
    x = np.asarray(draw(rho, 40_000, key=0))
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1, rtol=1e-12)
    theta = np.mod(np.arctan2(x[:, 1], x[:, 0]), 2 * np.pi)
    counts = np.histogram(theta, 8, (0, 2 * np.pi))[0] / 40_000
    np.testing.assert_allclose(counts, [1 / 8, 1 / 8, 0, 0, 1 / 4, 1 / 4, 1 / 8, 1 / 8], atol=0.01)


@pytest.mark.slow
def test_tokens_come_near_their_limit_as_the_root_of_their_number():
    settings = {"sizes": [32, 128, 512], "replicates": 64, "method": af.Fixed(0.1)}
    run = mean_field_run(af.SA(1.0), START, [0.0, 1.0], **settings)
    assert run.w1.shape == (3, 64, 2)
    for k in (0, 1):
        assert run.rate(k).rate == pytest.approx(0.5, abs=0.1)
    assert (run.w1 <= run.bound).all()
    np.testing.assert_allclose(run.bound[..., 0], run.w1[..., 0])
    # The distances to another time's density do not go down with n: the limit is the right one.
    x = draw(START, 4096, key=3)
    stale = wasserstein(
        jnp.arctan2(x[:, 1], x[:, 0])[:, None], Cells(run.rho[1]), space=Circle()
    ).distance
    assert stale > 2 * run.w1[2, :, 1].mean()


@pytest.mark.slow
@pytest.mark.parametrize("system", [af.SA(5.0), af.USA(1.0)], ids=repr)
def test_a_hundred_thousand_tokens_while_clusters_form(system):
    end = {af.SA: 2.0, af.USA: 1.5}[type(system)]
    start = von_mises(1.0, 1024)
    run = mean_field_run(
        system, start, np.linspace(0, end, 3), sizes=[1000, 10_000, 100_000], replicates=4
    )
    assert (run.w1 <= run.bound).all()
    for k in range(3):
        assert run.rate(k).rate == pytest.approx(0.5, abs=0.12)
    peaks = 2 * np.pi * run.rho.max(axis=1)
    assert peaks[2] > 1.4 * peaks[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"system": af.AngularSA(1.0)}, "system must be SA"),
        ({"sizes": [0]}, "sizes must be"),
        ({"replicates": 0}, "replicates must be"),
        ({"start": np.ones((8, 1))}, "mass 1"),
    ],
)
def test_what_has_no_limit_here_is_refused(untyped, arguments, message):
    given = {"system": af.SA(1.0), "start": START, "ts": [0.0, 1.0]} | arguments
    with pytest.raises(InputError, match=message):
        mean_field_run(given.pop("system"), given.pop("start"), given.pop("ts"), **given)


def test_dobrushin_refuses_what_it_does_not_know():
    with pytest.raises(InputError, match="SA or USA"):
        lipschitz_constants(CircleDensity(af.Kuramoto(1.0)), START)
    with pytest.raises(InputError, match="beta"):
        dobrushin_constant(-1.0)
