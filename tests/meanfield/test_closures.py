"""Closures: laws of a third token against brute force, symmetries, and states known exactly."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from attnflow.meanfield.bbgky import CLOSURES

CELLS = 16
CONSISTENT = ["entropy", "companions"]


def even(rng, spread=1.0):
    """A random even law of the difference of two tokens."""
    w = np.exp(spread * rng.normal(size=CELLS))
    w = w + np.roll(w[::-1], 1)
    return w / w.sum() * CELLS / (2 * np.pi)


def rows(name, psi):
    return np.asarray(CLOSURES[name].third(jnp.asarray(psi)))


@pytest.mark.parametrize("name", CLOSURES)
def test_the_third_has_a_law_that_does_not_know_left_from_right(rng, name):
    law = rows(name, even(rng))
    assert law.shape == (CELLS, CELLS)
    assert law.min() >= 0
    np.testing.assert_allclose(law.sum(axis=1), 1, rtol=1e-12)
    mirrored = np.roll(law[::-1, ::-1], 1, axis=(0, 1))
    np.testing.assert_allclose(mirrored, law, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", CLOSURES)
def test_swapping_the_pair_mirrors_the_third(rng, name):
    # Seen from token 2, token 1 is at −x and the third at y − x.
    law = rows(name, even(rng))
    for i, j in itertools.product(range(CELLS), repeat=2):
        assert law[i, j] == pytest.approx(law[-i % CELLS, (j - i) % CELLS], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", CLOSURES)
def test_independent_tokens_stay_independent(name):
    law = rows(name, np.full(CELLS, 0.3))
    np.testing.assert_allclose(law, 1 / CELLS, rtol=1e-5)


def test_kirkwood_and_the_third_cumulant_by_loops(rng):
    psi = even(rng, 0.2)
    w = 2 * np.pi * psi
    product, total = np.empty((CELLS, CELLS)), np.empty((CELLS, CELLS))
    for i, j in itertools.product(range(CELLS), repeat=2):
        product[i, j] = w[i] * w[j] * w[(j - i) % CELLS]
        total[i, j] = w[i] + w[j] + w[(j - i) % CELLS] - 2
    assert total.min() > 0
    np.testing.assert_allclose(rows("kirkwood", psi), product / product.sum(1)[:, None], rtol=1e-9)
    np.testing.assert_allclose(rows("gaussian", psi), total / total.sum(1)[:, None], rtol=1e-4)


def test_companions_by_loops(rng):
    psi = even(rng)
    w = 2 * np.pi * psi
    weights = np.empty((CELLS, CELLS))
    for i, j in itertools.product(range(CELLS), repeat=2):
        sides = sorted(min(k % CELLS, -k % CELLS) for k in (i, j, j - i))
        r, a, b = w[sides]
        s = 1 - 1 / r if r > 1 else 0.0
        weights[i, j] = r * ((1 - s) * a * b + s * np.sqrt(a * b))
    a, ahead = np.ones(CELLS), np.arange(CELLS)[None, :] - np.arange(CELLS)[:, None]
    for _ in range(500):
        triple = weights * a[:, None] * a[None, :] * a[ahead]
        a = a * (psi / triple.sum(axis=1)) ** (1 / 3)
    expected = triple / triple.sum(axis=1)[:, None]
    np.testing.assert_allclose(rows("companions", psi), expected, rtol=0.02)


@pytest.mark.parametrize("name", CONSISTENT)
def test_every_pair_of_a_consistent_triple_has_the_law(rng, name):
    psi = even(rng)
    triple = psi[:, None] * rows(name, psi)
    np.testing.assert_allclose(triple.sum(axis=0), psi, rtol=3e-3)
    apart = [sum(triple[i, (i + d) % CELLS] for i in range(CELLS)) for d in range(CELLS)]
    np.testing.assert_allclose(apart, psi, rtol=3e-3)
    kirkwood = psi @ rows("kirkwood", psi)
    assert np.abs(kirkwood / psi - 1).max() > 0.05


@pytest.mark.parametrize("name", ["gaussian", "kirkwood", *CONSISTENT])
def test_small_waves_are_superposed(name):
    # To first order in u, whatever the state: p(y | x) = (1 + u(y) + u(y − x)) / 2π.
    x = 2 * np.pi / CELLS * np.arange(CELLS)
    shape = np.cos(x) - 0.7 * np.cos(3 * x)
    errors = []
    for size in (1e-2, 1e-3):
        u = size * shape
        expected = (
            1 + u[None, :] + u[(np.arange(CELLS)[None, :] - np.arange(CELLS)[:, None])]
        ) / CELLS
        errors.append(np.abs(rows(name, (1 + u) / (2 * np.pi)) - expected).max() * CELLS)
    assert errors[1] < 2e-5
    assert errors[1] < errors[0] / 50


@pytest.mark.parametrize("name", CONSISTENT)
@pytest.mark.parametrize("together", [0.5, 0.6, 0.9])
def test_two_opposite_clusters_are_exact(name, together):
    # Of three tokens in two places two are together: P(1, 2 together, 3 not) = (1 − p) / 2.
    psi = np.full(CELLS, 1e-9)
    psi[0], psi[CELLS // 2] = together, 1 - together
    law = rows(name, psi * CELLS / (2 * np.pi))
    assert law[CELLS // 2, 0] == pytest.approx(0.5, abs=1e-3)
    assert law[0, CELLS // 2] == pytest.approx((1 - together) / 2 / together, abs=1e-3)


def test_kirkwood_gets_two_clusters_wrong():
    psi = np.full(CELLS, 1e-9)
    psi[0], psi[CELLS // 2] = 0.9, 0.1
    law = rows("kirkwood", psi * CELLS / (2 * np.pi))
    assert law[0, CELLS // 2] < 0.02 < 0.1 / 2 / 0.9
