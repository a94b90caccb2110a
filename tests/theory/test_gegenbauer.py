import numpy as np
import pytest
from scipy import special
from scipy.integrate import quad

import attnflow as af
from attnflow.errors import InputError
from attnflow.theory import dirac_energy, gegenbauer_coefficients, uniform_energy

DIMENSIONS = [2, 3, 4, 7, 40]
BETAS = [0.01, 1.0, 6.0, 40.0]


def polynomials(degree, d, t):
    """C_k^ν(t) / C_k^ν(1) for k ≤ degree."""
    nu = d / 2 - 1
    if d == 2:
        return np.array([special.eval_chebyt(k, t) for k in range(degree + 1)])
    at_one = np.array([special.eval_gegenbauer(k, nu, 1.0) for k in range(degree + 1)])
    values = np.array([special.eval_gegenbauer(k, nu, t) for k in range(degree + 1)])
    return (values.T / at_one).T


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("beta", BETAS)
def test_they_add_up_to_the_kernel(beta, d):
    t = np.linspace(-1, 1, 41)
    a = gegenbauer_coefficients(beta, d, 120)
    got = a @ polynomials(120, d, t)
    np.testing.assert_allclose(got * np.exp(-beta), np.exp(beta * (t - 1)), atol=1e-13)


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("beta", BETAS)
def test_they_are_projections(beta, d):
    """<e^{βt}, P_k> / <P_k, P_k> for the weight sin^{d−2}, by Gauss' rule (t = cos θ)."""
    t, weight = special.roots_jacobi(160, (d - 3) / 2, (d - 3) / 2)
    weight = weight / weight.sum()
    P, kernel = polynomials(8, d, t), np.exp(beta * t)
    squares = P**2 @ weight
    rounding = 1e-12 * np.sqrt(kernel**2 @ weight / squares)
    error = np.abs(gegenbauer_coefficients(beta, d, 8) - (P * kernel) @ weight / squares)
    assert np.all(error <= rounding)


@pytest.mark.parametrize("beta", BETAS)
def test_circle_and_sphere_are_bessel_functions(beta):
    k = np.arange(31)
    circle = np.where(k == 0, 1, 2) * special.iv(k, beta)
    np.testing.assert_allclose(gegenbauer_coefficients(beta, 2, 30), circle, rtol=1e-12)
    sphere = (2 * k + 1) * np.sqrt(np.pi / (2 * beta)) * special.iv(k + 0.5, beta)
    np.testing.assert_allclose(gegenbauer_coefficients(beta, 3, 30), sphere, rtol=1e-12)


def test_in_high_dimension_they_are_those_of_the_power_series():
    """C_k^ν(t)/C_k^ν(1) → t^k."""
    k = np.arange(8)
    a = gegenbauer_coefficients(3.0, 10**9, 7)
    np.testing.assert_allclose(a, 3.0**k / special.factorial(k), rtol=1e-6)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_all_are_positive(d):
    for beta in (1e-3, 1.0, 300.0):
        assert np.all(gegenbauer_coefficients(beta, d, 60) > 0)


@pytest.mark.parametrize("d", [2, 3, 100])
def test_at_beta_zero_only_the_constant_is_left(d):
    assert gegenbauer_coefficients(0, d, 3).tolist() == [1, 0, 0, 0]
    assert gegenbauer_coefficients(0.0, d, 0).shape == (1,)


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("beta", BETAS)
def test_the_uniform_energy_is_the_mean_of_the_kernel(beta, d):
    def kernel(theta):
        return np.exp(beta * np.cos(theta)) * np.sin(theta) ** (d - 2)

    mean = quad(kernel, 0, np.pi, epsrel=1e-12)[0]
    mean /= quad(lambda theta: np.sin(theta) ** (d - 2), 0, np.pi, epsrel=1e-12)[0]
    assert uniform_energy(beta, d) == pytest.approx(mean / (2 * beta), rel=1e-10)


@pytest.mark.parametrize("beta", [0.0, 2.0])
def test_configurations_lie_between_the_extremes(beta):
    one = np.tile([[0.0, 1.0, 0.0]], (4, 1))
    assert float(af.observe.energy(one, beta)) == pytest.approx(dirac_energy(beta), rel=1e-14)
    spread = float(af.observe.energy(af.initial.circle(64), beta))
    assert spread == pytest.approx(uniform_energy(beta, 2), rel=1e-13, abs=1e-15)
    some = float(af.observe.energy(af.initial.sphere(n=50, d=3, key=0), beta))
    assert uniform_energy(beta, 3) < some < dirac_energy(beta)


def test_large_beta_does_not_produce_nan():
    a = gegenbauer_coefficients(690.0, 5, 200)
    assert np.all(np.isfinite(a))
    assert a.sum() == pytest.approx(np.exp(690.0), rel=1e-6)
    assert dirac_energy(1e4) == np.inf
    assert np.all(gegenbauer_coefficients(1e4, 3, 2) == np.inf)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: gegenbauer_coefficients(-1.0, 3, 2), "beta must be at least 0"),
        (lambda: gegenbauer_coefficients(np.nan, 3, 2), "beta must be finite"),
        (lambda: gegenbauer_coefficients(1.0, 1, 2), "d must be a whole number of at least 2"),
        (lambda: gegenbauer_coefficients(1.0, 3, -1), "degree must be a whole number"),
        (lambda: uniform_energy(1.0, 1), "d must be a whole number of at least 2"),
        (lambda: dirac_energy(-2.0), "beta must be at least 0"),
    ],
)
def test_bad_input_is_refused(call, said):
    with pytest.raises(InputError, match=said):
        call()
