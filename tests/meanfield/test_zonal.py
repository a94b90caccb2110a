"""Zonal flows on S^{d−1}: against tokens, against the circle, and against the closed form."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import eval_gegenbauer, eval_legendre, iv, roots_legendre

import attnflow as af
from attnflow import meanfield
from attnflow.meanfield import CircleModes, ZonalModes

EPS = 1e-6


def shape(u):
    return np.exp(1.5 * u) * (1 + 0.5 * (2 * u**2 - 1))


@pytest.fixture(scope="module")
def rings():
    """Tokens with masses on S²: Gauss' latitudes times equal longitudes, of the density shape."""
    u, w = roots_legendre(24)
    phi = 2 * np.pi / 48 * np.arange(48)
    s = np.sqrt(1 - u**2)
    x = np.stack(
        [np.outer(s, np.cos(phi)), np.outer(s, np.sin(phi)), np.outer(u, np.ones(48))], axis=-1
    )
    masses = np.outer(w * shape(u), np.ones(48)).ravel()
    return jnp.asarray(x.reshape(-1, 3)), jnp.asarray(masses / masses.sum())


@pytest.mark.parametrize(
    "system", [af.SA(3.0), af.USA(3.0), af.SA(0.0), af.SA(2.0, V=-1.0)], ids=repr
)
def test_modes_move_as_those_of_tokens_on_the_sphere(system, rings):
    x, masses = rings
    velocity = np.asarray(system.velocity(0.0, x, masses))[:, 2]
    u, mass = np.asarray(x)[:, 2], np.asarray(masses)
    b = meanfield.zonal_modes(shape, 3, 20)
    rates = np.asarray(ZonalModes(system, 3).velocity(0.0, b))[:, 0]
    for k in range(6):
        derivative = np.polynomial.legendre.Legendre.basis(k).deriv()(u)
        moment = np.sqrt(2 * k + 1) * eval_legendre(k, u)
        assert float(b[k, 0]) == pytest.approx(np.sum(mass * moment), abs=1e-12)
        expected = np.sqrt(2 * k + 1) * np.sum(mass * derivative * velocity)
        assert rates[k] == pytest.approx(expected, abs=1e-11 * np.exp(float(system.beta)))


@pytest.mark.parametrize("beta", [0.0, 3.0])
def test_the_energy_is_that_of_tokens_on_the_sphere(beta, rings):
    x, masses = rings
    energy = ZonalModes(af.SA(beta), 3).energy(meanfield.zonal_modes(shape, 3, 30))
    expected = af.observe.energy(x, beta, masses)
    assert float(energy) == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("kind", [af.SA, af.USA])
def test_on_the_circle_they_are_fouriers_modes(kind):
    sigma = 0.05
    system = af.Noisy(kind(3.0), sigma)
    b = meanfield.zonal_modes(shape, 2, 40)
    c = meanfield.modes(meanfield.density(lambda x: shape(np.cos(x)), 256), 40)
    np.testing.assert_allclose(b[1:, 0], np.sqrt(2) * c[1:, 0], atol=1e-14)
    zonal = ZonalModes(system, 2).velocity(0.0, b)[1:, 0]
    circle = CircleModes(system).velocity(0.0, c)[1:, 0]
    np.testing.assert_allclose(zonal, np.sqrt(2) * circle, atol=1e-10)


MEAN_KERNEL = {
    3: lambda beta: np.sinh(beta) / beta,
    5: lambda beta: 3 * (np.cosh(beta) / beta**2 - np.sinh(beta) / beta**3),
}
"""`Γ(ν+1) (2/β)^ν I_ν(β)`, the mean of the kernel over the sphere, in elementary functions."""


def growth(kind, d):
    """Measured and closed-form rates of the first eight modes, for β = 1, 5, 20."""
    k = np.arange(1, 9)
    nu = d / 2 - 1
    x0 = np.zeros((8, 24, 1))
    x0[:, 0, 0], x0[k - 1, k, 0] = 1, EPS
    for beta in (1.0, 5.0, 20.0):
        rates = k * (k + d - 2) * iv(k + nu, beta) / (beta * iv(nu, beta))
        if kind is af.USA:
            rates = rates * MEAN_KERNEL[d](beta)
        T = 1 / rates.max()
        run = af.simulate(ZonalModes(kind(beta), d), x0, [0.0, T], method=af.Fixed(T / 64))
        yield np.log(np.asarray(run.final)[k - 1, k, 0] / EPS) / T, rates
        np.testing.assert_allclose(
            af.theory.linear_growth(beta, d, k, normalised=kind is af.SA), rates, rtol=1e-10
        )


@pytest.mark.parametrize(("kind", "d"), [(af.SA, 3)])
def test_the_first_eight_modes_grow_as_in_the_closed_form(kind, d):
    for measured, rates in growth(kind, d):
        np.testing.assert_allclose(measured, rates, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "d"), [(af.USA, 3), (af.SA, 5), (af.USA, 5)])
def test_the_other_kinds_and_dimensions_grow_so_too(kind, d):
    for measured, rates in growth(kind, d):
        np.testing.assert_allclose(measured, rates, rtol=1e-5)


def test_energy_grows_and_mass_stays():
    for system in (ZonalModes(af.SA(5.0), 4), ZonalModes(af.USA(5.0), 4)):
        b = meanfield.zonal_modes(shape, 4, 40)
        v = system.velocity(0.0, b)
        assert float(jax.jvp(system.energy, (b,), (v,))[1]) > 0.01
        assert v[0, 0] == 0


@pytest.mark.parametrize("d", [2, 3, 6])
def test_the_density_is_the_function_it_was_made_of(d):
    u = np.linspace(-1, 1, 7)
    system = ZonalModes(af.SA(1.0), d)
    b = meanfield.zonal_modes(shape, d, 40)
    f = np.asarray(system.density(b, jnp.asarray(u)))
    np.testing.assert_allclose(f / f[0], shape(u) / shape(-1.0), rtol=1e-8)
    assert float(system.tail(b)) < 1e-12


def test_modes_are_means_of_gegenbauer_polynomials():
    d, k = 6, 3
    u, w = roots_legendre(200)
    weight = w * (1 - u**2) ** ((d - 3) / 2)
    q = eval_gegenbauer(k, d / 2 - 1, u)
    q = q / np.sqrt(np.sum(weight * q**2) / weight.sum())
    expected = np.sum(weight * shape(u) * q) / np.sum(weight * shape(u))
    assert float(meanfield.zonal_modes(shape, d, 8)[k, 0]) == pytest.approx(expected, rel=1e-8)


def test_single_precision_stays_single():
    b = meanfield.zonal_modes(shape, 3, 8).astype(jnp.float32)
    assert ZonalModes(af.Noisy(af.SA(2.0), 0.1), 3).velocity(0.0, b).dtype == jnp.float32


def test_bad_input_is_refused(untyped):
    with pytest.raises(af.InputError, match="d must"):
        ZonalModes(af.SA(1.0), 1)
    with pytest.raises(af.InputError, match="system must"):
        ZonalModes(af.PureAttention(), 3)
    with pytest.raises(af.InputError, match="fn must"):
        meanfield.zonal_modes(lambda u: -np.ones_like(u), 3, 4)
    for x0, says in ((jnp.ones((4, 2)), r"\(M \+ 1, 1\)"), (jnp.zeros((4, 1)), "mode 0")):
        with pytest.raises(af.InputError, match=says):
            af.simulate(ZonalModes(af.SA(1.0), 3), x0, [0.0, 1.0])
