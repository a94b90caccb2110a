"""The two-point function: ensembles against loops, and the equation (8.1) against ensembles."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import attnflow as af
from attnflow.errors import InputError
from attnflow.meanfield.bbgky import (
    CLOSURES,
    Companions,
    Kirkwood,
    Measured,
    MolecularChaos,
    PairFlow,
    compare,
    solve_pairs,
    two_point,
)
from attnflow.meanfield.bbgky.ensemble import histograms

BETA, N, CELLS = 4.0, 8, 64
TIMES = np.linspace(0.0, 2.0, 21) / 7.5  # The fastest mode of β = 4 grows at rate 7.5.


@pytest.fixture(scope="module")
def ensembles():
    return [two_point(BETA, N, TIMES, replicates=1024, cells=CELLS, key=s) for s in (0, 1)]


def test_histograms_agree_with_triple_loops(rng):
    theta, half, beta = rng.uniform(-9, 9, 6), 5, 1.7
    p, pulled, near = np.zeros(half + 1), np.zeros(half), np.zeros(half)
    pairs = list(itertools.permutations(range(6), 2))
    for i, j in pairs:
        x = np.angle(np.exp(1j * (theta[j] - theta[i])))
        p[round(abs(x) * half / np.pi)] += 1 / len(pairs)
        edge = int(abs(x) * half / np.pi)
        near[edge] += 1 / len(pairs)
        for k in set(range(6)) - {i, j}:
            third = np.sign(x) * (theta[k] - theta[i])
            value = np.exp(beta * np.cos(third)) * np.sin(third)
            pulled[edge] += value / 4 / len(pairs)
    found = histograms(jnp.asarray(theta), jnp.asarray(beta), half)
    for ours, expected in zip(found, (p, pulled, near), strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-12)


def test_independent_tokens_have_the_law_and_the_error_of_independent_pairs(ensembles):
    # Differences of independent uniform tokens are pairwise independent, so pairs count as such.
    sampled, pairs = ensembles[0], N * (N - 1) / 2
    width = 2 * np.pi / CELLS
    mass = np.full(CELLS, 2 / CELLS)
    mass[[0, CELLS // 2]] = 1 / CELLS
    error = np.sqrt(mass * (1 - mass) / (pairs * 1024)) / np.where(mass > 1.5 / CELLS, 2, 1)
    np.testing.assert_allclose(sampled.psi_error[0] * width, error, rtol=0.2)
    z = (sampled.psi[0] - 1 / (2 * np.pi)) / sampled.psi_error[0]
    assert 0.6 < np.sqrt(np.mean(z**2)) < 1.4
    z = sampled.pull[0] / sampled.pull_error[0]
    assert 0.6 < np.sqrt(np.mean(z**2)) < 1.4


def test_an_ensemble_is_even_and_has_mass_one(ensembles):
    sampled = ensembles[0]
    np.testing.assert_allclose(sampled.psi.sum(axis=1) * 2 * np.pi / CELLS, 1, rtol=1e-12)
    np.testing.assert_allclose(sampled.psi[:, 1:], sampled.psi[:, :0:-1], rtol=1e-12)
    np.testing.assert_allclose(sampled.pull, -np.roll(sampled.pull[:, ::-1], 2, axis=1))
    np.testing.assert_allclose(sampled.x[1], 2 * np.pi / CELLS)


def test_the_number_of_replicates_may_be_any():
    # 300 are a tile and a part: the first 256 of them are those of 256, and 44 have 28 pairs each.
    part, whole = (two_point(BETA, N, TIMES, replicates=r, cells=CELLS) for r in (256, 300))
    rest = (300 * whole.psi - 256 * part.psi)[:, : CELLS // 2 + 1] * 2 * np.pi / CELLS * 28
    rest[:, 1:-1] *= 2
    np.testing.assert_allclose(rest.sum(axis=1), 44 * 28, rtol=1e-9)
    np.testing.assert_allclose(rest, np.round(rest), atol=1e-6)
    assert rest.min() > -1e-6


@pytest.mark.slow
def test_the_default_steps_are_fine_enough():
    settings = {"replicates": 256, "cells": CELLS}
    steps = two_point(BETA, N, TIMES, **settings)
    exact = two_point(BETA, N, TIMES, method=af.Adaptive(), **settings)
    moved = np.abs(steps.psi - exact.psi).sum(axis=1) * 2 * np.pi / CELLS
    assert moved.max() < 2e-3
    assert not np.array_equal(steps.pull, exact.pull)


def test_the_measured_pull_moves_the_law_as_the_ensemble_does(ensembles):
    # (8.1) is exact: no closure enters. One ensemble gives the pull, another one the law.
    first, second = ensembles
    own, other = compare(first, Measured(first)), compare(second, Measured(first))
    assert own.w1.max() < 0.006
    assert other.w1.max() < 0.012
    before = (TIMES * 7.5 > 0.5) & (TIMES * 7.5 < 1)
    spread = np.hypot(first.psi_error, second.psi_error)

    def deviation(found):
        """In standard errors, before clusters are narrower than a cell."""
        return np.sqrt(np.mean(((found.psi - second.psi) / spread)[before] ** 2))

    assert deviation(other) < 1.3
    # The same with the third token left out is far off.
    wrong = compare(second, MolecularChaos())
    assert wrong.w1.max() > 0.05
    assert deviation(wrong) > 2


@pytest.mark.slow
def test_clusters_known_are_nearer_than_superposition(ensembles):
    known, product = (compare(ensembles[0], c) for c in (Companions(), Kirkwood()))
    assert known.w1[-1] < 0.015
    assert known.w1[-1] < product.w1[-1] / 2
    assert known.until(0.015) == TIMES[-1]
    assert product.until(0.015) < TIMES[-1]


@pytest.mark.parametrize("name", CLOSURES)
def test_steps_keep_mass_sign_and_symmetry(name):
    flow = PairFlow(BETA, N, CLOSURES[name])
    dt = flow.step(16)
    step = jax.jit(lambda psi: psi + dt * flow.velocity(0.0, psi))
    psi = jnp.full((16, 1), 1 / (2 * np.pi))
    for _ in range(200):
        psi = step(psi)
        assert psi.min() >= 0
    assert psi.sum() * 2 * np.pi / 16 == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(psi[1:], psi[:0:-1], atol=1e-9)
    assert psi[0, 0] > 1.5 * 1 / (2 * np.pi)


def test_two_tokens_need_no_closure():
    # x' = −e^{β cos x} sin x for n = 2: the law is the image of the uniform one.
    beta, t, half = 1.0, 0.4, 64
    edges = np.pi * (np.arange(half) + 0.5) / half
    back = solve_ivp(
        lambda _, x: np.exp(beta * np.cos(x)) * np.sin(x), (0, t), edges, rtol=1e-10, atol=1e-12
    ).y[:, -1]
    psi = solve_pairs(beta, 2, MolecularChaos(), [0.0, t], cells=2 * half)[1]
    masses = psi[:half] * np.pi / half * np.where(np.arange(half) > 0, 2, 1)
    np.testing.assert_allclose(np.cumsum(masses), back / np.pi, atol=1e-3)
    assert psi[0] > 2.5 / (2 * np.pi)


def test_a_new_number_compiles_nothing():
    traced = 0

    @jax.jit
    def rate(flow, psi):
        nonlocal traced
        traced += 1
        return flow.velocity(0.0, psi)

    for beta, n in ((1.0, 8), (2.0, 32)):
        rate(PairFlow(beta, n, Companions()), jnp.ones((8, 1)))
    assert traced == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 2}, "n must be a whole number of at least 3"),
        ({"cells": 9}, "cells must be even"),
        ({"replicates": 1}, "replicates must be"),
        ({"beta": np.nan}, "beta must be finite"),
    ],
)
def test_what_cannot_be_sampled_is_refused(untyped, arguments, message):
    given = {"beta": 1.0, "n": 4, "ts": [0.0, 1.0]} | arguments
    with pytest.raises(InputError, match=message):
        two_point(given.pop("beta"), given.pop("n"), given.pop("ts"), **given)
