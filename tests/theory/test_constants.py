import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

from attnflow.errors import InputError
from attnflow.theory import (
    concentration_bound,
    concentration_probability,
    large_beta,
    lipschitz,
    log_lipschitz,
    tau_star,
)


@pytest.mark.parametrize("d", [2, 3, 50])
@pytest.mark.parametrize("beta", [1e-6, 0.3, 4.0, 1e3, 1e9])
def test_tau_star_solves_its_equation(beta, d):
    root = brentq(
        lambda tau: beta * np.sin(tau) ** 2 - (d - 1) * np.cos(tau), 0, np.pi / 2, xtol=1e-15
    )
    assert float(tau_star(beta, d)) == pytest.approx(root, rel=1e-9)


def test_tau_star_decreases_from_a_right_angle():
    taus = np.asarray(tau_star(np.linspace(0, 20, 50)))
    assert taus[0] == np.pi / 2
    assert np.all(np.diff(taus) < 0)
    assert float(tau_star(1e14, 5)) == pytest.approx(2e-7, rel=1e-6)


@pytest.mark.parametrize("d", [2, 4])
def test_beyond_tau_star_the_kernel_is_concave(d):
    """g(τ) = e^{β cos τ} ((d−1) cos τ − β sin² τ), positive below τ* and negative above."""
    beta = 3.0
    tau = float(tau_star(beta, d))
    for offset, sign in ((-1e-6, 1), (1e-6, -1)):
        at = tau + offset
        assert np.sign((d - 1) * np.cos(at) - beta * np.sin(at) ** 2) == sign
    if d == 2:
        second = jax.grad(jax.grad(lambda a: jnp.exp(beta * jnp.cos(a))))
        assert abs(float(second(tau))) < 1e-12


@pytest.mark.parametrize("d", [2, 3, 10])
@pytest.mark.parametrize("n", [2, 3, 32, 1000])
def test_large_beta_is_where_the_chain_of_tokens_is_a_quarter_turn(n, d):
    beta = large_beta(n, d)
    assert (n - 1) * float(tau_star(1.001 * beta + 1e-3, d)) < np.pi / 2
    assert (n - 1) * float(tau_star(0.999 * beta, d)) >= np.pi / 2
    assert beta < (d - 1) * n**2
    if n == 1000:
        assert beta == pytest.approx((d - 1) * (2 * (n - 1) / np.pi) ** 2, rel=1e-5)


def test_lipschitz():
    betas = np.array([0.0, 0.5, 1.0, 2.0, 100.0])
    np.testing.assert_allclose(log_lipschitz(betas), [10, 10, 10, 20, 1000])
    np.testing.assert_allclose(lipschitz(betas)[:4], np.exp([10, 10, 10, 20]), rtol=1e-14)
    assert lipschitz(100) == np.inf


def test_the_concentration_bound_is_its_formula():
    beta, n, d, t = 1.5, 3, 1000, 0.07
    want = 2 * np.exp(10 * beta) ** (n * t) * np.sqrt(np.log(d) / d)
    assert float(concentration_bound(beta, n, d, t)) == pytest.approx(want, rel=1e-13)
    assert float(concentration_bound(0.0, n, d, 0.0)) == pytest.approx(
        2 * np.sqrt(np.log(d) / d), rel=1e-14
    )
    assert concentration_bound(50.0, 100, d, 1e6) == np.inf


def test_the_probability_is_vacuous_where_one_can_run():
    assert concentration_probability(3, 10**5) == pytest.approx(1 - 18 * 1e5 ** (-1 / 64))
    assert concentration_probability(2, 10**9) < 0
    assert concentration_probability(2, 8**64 * 10) > 0 > concentration_probability(2, 8**63)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: tau_star(-1.0), "beta must be at least 0"),
        (lambda: tau_star(1.0, 1), "d must be a whole number of at least 2"),
        (lambda: large_beta(1, 2), "n must be a whole number of at least 2"),
        (lambda: large_beta(3, 1), "d must be a whole number of at least 2"),
        (lambda: lipschitz(np.nan), "beta must be finite"),
        (lambda: concentration_bound(1.0, 3, 2, 1.0), "needs d ≥ n"),
        (lambda: concentration_bound(1.0, 3, 5, -1.0), "t must be at least 0"),
        (lambda: concentration_bound(-1.0, 3, 5, 1.0), "beta must be at least 0"),
        (lambda: concentration_probability(1, 5), "n must be a whole number of at least 2"),
    ],
)
def test_bad_input_is_refused(call, said):
    with pytest.raises(InputError, match=said):
        call()
