"""Starts on the circle."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad

import attnflow as af
from attnflow import meanfield


def test_a_density_is_the_integral_over_each_cell():
    def fn(theta):
        return 2 + np.sin(3 * theta) + np.cos(theta)

    rho = np.asarray(meanfield.density(fn, 10))[:, 0]
    width = 2 * np.pi / 10
    total = quad(fn, 0, 2 * np.pi)[0]
    expected = [quad(fn, i * width, (i + 1) * width)[0] / (width * total) for i in range(10)]
    np.testing.assert_allclose(rho, expected, rtol=1e-12)
    assert rho.sum() * width == pytest.approx(1, abs=1e-15)


def test_named_densities():
    theta = 2 * np.pi / 4096 * (np.arange(4096) + 0.5)
    von = np.asarray(meanfield.von_mises(2.0, 4096, centre=1.0))[:, 0]
    np.testing.assert_allclose(
        von / von[0], np.exp(2 * (np.cos(theta - 1) - np.cos(theta[0] - 1))), 1e-5
    )
    wave = np.asarray(meanfield.single_mode(3, 0.5, 4096))[:, 0]
    np.testing.assert_allclose(2 * np.pi * wave, 1 + 0.5 * np.cos(3 * theta), atol=1e-5)
    assert meanfield.von_mises(2.0, 8, dtype=jnp.float32).dtype == jnp.float32


def test_a_histogram_counts_tokens(rng):
    theta = rng.normal(size=(500, 1)) * 4
    masses = rng.random(500)
    count, _ = np.histogram(np.mod(theta[:, 0], 2 * np.pi), 32, (0, 2 * np.pi), weights=masses)
    expected = count / masses.sum() * 32 / (2 * np.pi)
    rho = jax.jit(lambda t, m: meanfield.histogram(t, 32, m))(theta, masses)
    np.testing.assert_allclose(rho[:, 0], expected, atol=1e-13)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: meanfield.density(np.cos, 8), "at least 0"),
        (lambda: meanfield.density(np.zeros_like, 8), "0 everywhere"),
        (lambda: meanfield.density(lambda t: t[0], 8), "one number for each"),
        (lambda: meanfield.density(np.ones_like, 2), "N must"),
        (lambda: meanfield.single_mode(1, 2.0, 8), "amplitude"),
        (lambda: meanfield.von_mises(-1.0, 8), "kappa"),
    ],
)
def test_bad_input_is_refused(make, says):
    with pytest.raises(af.InputError, match=says):
        make()
