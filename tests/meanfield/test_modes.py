"""Fourier's modes on the circle: growth, exact solutions, steady states."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ive

import attnflow as af
from attnflow import meanfield
from attnflow.meanfield import CircleDensity, CircleModes

EPS = 1e-6


def test_modes_of_von_mises_are_ratios_of_bessel_functions():
    c = meanfield.modes(meanfield.von_mises(3.0, 128, centre=0.7), 20)
    k = np.arange(21)
    expected = ive(k, 3.0) / ive(0, 3.0) * np.exp(-0.7j * k)
    expected = np.stack([expected.real, expected.imag], axis=-1)
    np.testing.assert_allclose(c, expected, atol=1e-14)


def test_there_and_back():
    rho = meanfield.von_mises(2.0, 100, centre=4.0)
    back = CircleModes(af.SA(1.0)).density(meanfield.modes(rho, 40), 100)
    np.testing.assert_allclose(back, rho, atol=1e-14)


@pytest.mark.parametrize("kind", [af.AngularSA, af.AngularUSA])
def test_the_first_eight_modes_grow_as_in_the_closed_form(kind):
    """Each mode from its own small start; for USA too, whose rates grow like e^β."""
    k = np.arange(1, 9)
    x0 = np.zeros((8, 64, 2))
    x0[:, 0, 0], x0[k - 1, k, 0] = 1, EPS
    for beta in (1.0, 5.0, 20.0):
        scale = np.exp(beta) if kind is af.AngularUSA else 1 / ive(0, beta)
        rates = k**2 * ive(k, beta) / beta * scale
        np.testing.assert_allclose(
            af.theory.linear_growth(beta, 2, k, normalised=kind is af.AngularSA), rates, rtol=1e-12
        )
        T = 1 / rates.max()
        run = af.simulate(CircleModes(kind(beta)), x0, [0.0, T], method=af.Fixed(T / 64))
        measured = np.log(np.asarray(run.final)[k - 1, k, 0] / EPS) / T
        np.testing.assert_allclose(measured, rates, rtol=1e-7)


def test_the_poisson_kernel_of_equal_oscillators_stays_one():
    """Ott and Antonsen: c_k = z^k stays so, and z' = (K/2) z (1 − |z|²) − iωz."""
    K, omega, z, k = 1.5, 0.4, 0.6 * np.exp(0.3j), np.arange(96)
    rate = k * z**k * (K / 2 * (1 - abs(z) ** 2) - 1j * omega)
    x, expected = (jnp.asarray(np.stack([c.real, c.imag], axis=-1)) for c in (z**k, rate))
    velocity = CircleModes(af.Kuramoto(K=K, omega=omega)).velocity(0.0, x)
    np.testing.assert_allclose(velocity, expected, atol=1e-12)


SIGMA = 0.3
R = brentq(lambda r: r - ive(1, r / SIGMA) / ive(0, r / SIGMA), 1e-3, 1)
"""The order parameter at β = 0 with noise: the mean resultant of von Mises with κ = r/σ."""


def test_von_mises_is_at_rest_under_noise_at_beta_0():
    x = jnp.zeros((24, 2)).at[:, 0].set(ive(np.arange(24), R / SIGMA) / ive(0, R / SIGMA))
    for system in (af.SA(0.0), af.USA(0.0), af.Kuramoto(K=1.0)):
        rate = CircleModes(af.Noisy(system, SIGMA)).velocity(0.0, x)
        np.testing.assert_allclose(rate, 0, atol=1e-12)
    other = CircleModes(af.Noisy(af.SA(0.0), 1.1 * SIGMA)).velocity(0.0, x)
    assert float(jnp.abs(other).max()) > 0.01


@pytest.mark.slow
def test_noise_leads_to_von_mises_at_beta_0():
    system, start, k = af.Noisy(af.SA(0.0), SIGMA), meanfield.von_mises(0.5, 64), np.arange(24)
    run = af.simulate(CircleModes(system), meanfield.modes(start, 23), [0.0, 80.0])
    np.testing.assert_allclose(run.final[:, 0], ive(k, R / SIGMA) / ive(0, R / SIGMA), atol=1e-9)
    dt = 0.9 * float(meanfield.positive_step(jnp.ones(1), 2 * np.pi / 64, SIGMA))
    run = af.simulate(CircleDensity(system), start, [0.0, 60.0], method=af.Fixed(dt, "heun"))
    np.testing.assert_allclose(run.final, meanfield.von_mises(R / SIGMA, 64), atol=2e-3)
    assert float(CircleDensity(system).mass(run.final)) == pytest.approx(1, abs=1e-12)


def test_steady_states_of_noisy_usa_are_boltzmanns():
    """ρ ∝ e^{U/σ}, U = ∫ e^{β cos} dμ / β: found by iteration, at rest in cells and in modes."""
    beta, sigma, n = 2.0, 0.5, 256
    theta = 2 * np.pi / n * np.arange(n)
    kernel = np.exp(beta * np.cos(theta[:, None] - theta)) * (2 * np.pi / n) / beta
    rho = 1 + np.cos(theta)
    for _ in range(400):
        rho = rho / (rho.sum() * 2 * np.pi / n)
        rho = np.exp(kernel @ rho / sigma - 10)
    rho = rho / (rho.sum() * 2 * np.pi / n)
    assert rho.max() > 3 * rho.mean()
    c = np.fft.rfft(rho)[:40] * 2 * np.pi / n
    x = jnp.asarray(np.stack([c.real, c.imag], axis=-1))
    system = CircleModes(af.Noisy(af.USA(beta), sigma))
    np.testing.assert_allclose(system.velocity(0.0, x), 0, atol=1e-11)
    assert float(jnp.abs(CircleModes(af.USA(beta)).velocity(0.0, x)).max()) > 0.1


@pytest.mark.parametrize("beta", [0.0, 4.0])
def test_the_energy_is_that_of_many_tokens(beta):
    rho = meanfield.von_mises(2.0, 512, centre=1.0)
    modes = CircleModes(af.USA(beta)).energy(meanfield.modes(rho, 63))
    # The mean over cells and the value at their centres differ by O(Δ²).
    assert float(modes) == pytest.approx(float(CircleDensity(af.USA(beta)).energy(rho)), rel=1e-4)
    uniform = jnp.zeros((8, 2)).at[0, 0].set(1.0)
    least = CircleModes(af.SA(beta)).energy(uniform)
    assert float(least) == pytest.approx(af.theory.uniform_energy(beta, 2), rel=1e-6, abs=1e-15)


def test_energy_grows_along_the_flow():
    for system in (CircleModes(af.SA(5.0)), CircleModes(af.USA(5.0))):
        x = meanfield.modes(meanfield.density(lambda t: 2 + np.cos(t) + np.sin(2 * t), 256), 63)
        rate = jax.jvp(system.energy, (x,), (system.velocity(0.0, x),))[1]
        assert float(rate) > 0.01


def test_a_mirrored_measure_moves_as_in_a_mirror():
    system = CircleModes(af.SA(5.0))
    x = meanfield.modes(meanfield.von_mises(2.0, 128, centre=1.0), 31)
    mirror = jnp.array([1.0, -1.0])
    np.testing.assert_allclose(
        system.velocity(0.0, x * mirror), system.velocity(0.0, x) * mirror, atol=1e-13
    )


def test_single_precision_stays_single():
    x = meanfield.modes(meanfield.von_mises(2.0, 64), 15).astype(jnp.float32)
    system = CircleModes(af.Noisy(af.SA(2.0), 0.1))
    assert system.velocity(0.0, x).dtype == jnp.float32
    assert system.mass(x) == 1


@pytest.mark.parametrize(
    ("x0", "says"),
    [
        (jnp.ones((5, 1)), r"\(M \+ 1, 2\)"),
        (jnp.zeros((5, 2)), "mode 0"),
        (jnp.ones((5, 2)) * jnp.array([1.0, 0.0]) * 1.0 + jnp.array([0.0, 3.0]), "none above 1"),
    ],
)
def test_what_is_no_measure_is_refused(untyped, x0, says):
    with pytest.raises(af.InputError, match=says):
        af.simulate(CircleModes(af.SA(1.0)), x0, [0.0, 1.0])


def test_too_few_cells_are_refused():
    with pytest.raises(af.InputError, match="M must be below"):
        meanfield.modes(meanfield.von_mises(1.0, 16), 8)
    with pytest.raises(af.InputError, match="N must be above"):
        CircleModes(af.SA(1.0)).density(jnp.ones((9, 2)), 16)
