"""LIN: growth rates against SciPy's Bessel functions, and the fastest mode."""

import numpy as np
import pytest
from scipy.special import gamma, ive

import attnflow as af
from attnflow.theory import fastest_mode, linear_growth


@pytest.mark.parametrize("d", [2, 3, 5, 20])
def test_rates_are_those_of_theory(d):
    nu = d / 2 - 1
    beta, k = np.array([0.3, 1.0, 5.0, 20.0, 300.0])[:, None], np.arange(1, 9)
    rates = k * (k + d - 2) * ive(k + nu, beta) / (beta * ive(nu, beta))
    np.testing.assert_allclose(linear_growth(beta, d, k), rates, rtol=1e-10)
    factor = gamma(nu + 1) * (2 / beta) ** nu * ive(nu, beta) * np.exp(beta)
    np.testing.assert_allclose(linear_growth(beta, d, k, normalised=False), rates * factor, 1e-9)
    damped = linear_growth(beta, d, k, sigma=0.01)
    np.testing.assert_allclose(damped, rates - 0.01 * k * (k + d - 2), rtol=1e-9, atol=1e-13)


def test_beta_0_is_the_limit():
    for d in (2, 3, 7):
        np.testing.assert_allclose(linear_growth(0.0, d, [1, 2, 3]), [(d - 1) / d, 0, 0])
        near = linear_growth(1e-7, d, [1, 2, 3], normalised=False)
        np.testing.assert_allclose(near, [(d - 1) / d, 0, 0], atol=1e-6)


def test_many_dimensions_and_large_beta_are_finite():
    # I_{k+ν}/I_ν ≈ β/2ν for ν ≫ β², and the rate of mode 1 is (d − 1)/(d + …).
    assert linear_growth(1.0, 4000, 1) == pytest.approx(1, rel=1e-3)
    assert linear_growth(5000.0, 2, 1) == pytest.approx(1 / 5000, rel=1e-3)


def test_noise_is_critical_where_mode_1_stops_growing():
    """At β = 0 on the circle consensus is lost at σ = ½."""
    assert linear_growth(0.0, 2, 1, sigma=0.5) == pytest.approx(0, abs=1e-15)
    assert fastest_mode(0.0, sigma=0.51) == 0
    assert fastest_mode(0.0, sigma=0.49) == 1


@pytest.mark.parametrize("d", [2, 3, 10])
def test_the_fastest_mode_is_the_largest_of_many(d):
    beta = np.geomspace(0.1, 500, 60)
    k = np.arange(1, 400)
    for sigma in (0.0, 1e-3):
        rates = linear_growth(beta[:, None], d, k, sigma=sigma)
        expected = np.where(rates.max(axis=1) > 0, k[np.argmax(rates, axis=1)], 0)
        np.testing.assert_array_equal(fastest_mode(beta, d, sigma=sigma), expected)


def test_on_the_circle_it_is_about_the_root_of_two_beta():
    beta = np.array([50.0, 200.0, 800.0])
    np.testing.assert_allclose(fastest_mode(beta), np.sqrt(2 * beta), rtol=0.06)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((-1.0, 2, 1), "beta"),
        ((1.0, 1, 1), "d must"),
        ((1.0, 2, 0), "k must"),
        ((1.0, 2, 1.5), "k"),
    ],
)
def test_bad_input_is_refused(untyped, arguments, says):
    with pytest.raises(af.InputError, match=says):
        linear_growth(*arguments)
