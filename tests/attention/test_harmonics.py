import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from attnflow.attention import harmonics
from attnflow.attention.spectral import HARMONICS
from attnflow.spaces import unit_rows

BETAS = [0.0, 0.1, 1.0, 9.0, 100.0]
every_sphere = pytest.mark.parametrize("d", [2, 3])


def points(n, d, key=0):
    x = np.random.default_rng(key).normal(size=(n, d))
    x[0] = np.eye(d)[-1]
    return unit_rows(jnp.asarray(x))


def by_degree(x, degree):
    """The values at x, and the degree of each, with as many of degree l as there are."""
    kind = HARMONICS[x.shape[1]]
    return np.asarray(values(x.T, degree)), kind.degrees(degree)


@functools.partial(jax.jit, static_argnums=1)
def values(x, degree):
    return HARMONICS[len(x)].values(x, degree)


@pytest.mark.parametrize("beta", BETAS[1:])
def test_coefficients_on_the_circle_are_bessel_functions(beta):
    a, rest = harmonics.coefficients(jnp.array(beta), 128, 2)
    np.testing.assert_allclose(a, special.ive(np.arange(128), beta), rtol=1e-12, atol=1e-300)
    assert rest < 1e-16


@pytest.mark.parametrize("beta", BETAS[1:])
def test_coefficients_on_the_sphere_are_spherical_bessel_functions(beta):
    a, _ = harmonics.coefficients(jnp.array(beta), 128, 3)
    l = np.arange(128)
    want = np.sqrt(np.pi / (2 * beta)) * special.ive(l + 0.5, beta)
    np.testing.assert_allclose(a, want, rtol=1e-12, atol=1e-300)


@every_sphere
def test_at_beta_zero_only_the_constant_is_left(d):
    a, rest = harmonics.coefficients(jnp.array(0.0), 8, d)
    np.testing.assert_array_equal(a, np.eye(8)[0])
    assert rest == 0


def test_the_rest_is_what_higher_degrees_add_up_to():
    beta, degree = 30.0, 12
    l = np.arange(degree, 400)
    _, circle = harmonics.coefficients(jnp.array(beta), degree, 2)
    assert circle == pytest.approx(np.sum(2 * special.ive(l, beta)), rel=1e-3)
    _, sphere = harmonics.coefficients(jnp.array(beta), degree, 3)
    bessel = np.sqrt(np.pi / (2 * beta)) * special.ive(l + 0.5, beta)
    assert sphere == pytest.approx(np.sum((2 * l + 1) * bessel), rel=0.01)


@every_sphere
@pytest.mark.parametrize("degree", [5, 24])
def test_harmonics_of_a_degree_add_up_to_gegenbauer(d, degree):
    """The addition theorem: Σ_m Y_lm(x) Y_lm(y) is a polynomial of <x, y> alone."""
    x = points(7, d)
    at_x, degrees = by_degree(x, degree)
    t = np.clip(np.asarray(x @ x.T), -1, 1)
    for l in range(degree):
        rows = at_x[degrees == l]
        if d == 2:
            want = np.cos(l * np.arccos(t)) * (1 if l == 0 else 2)
        else:
            want = (2 * l + 1) * special.eval_legendre(l, t)
        np.testing.assert_allclose(rows.T @ rows, want, atol=1e-12 * (2 * l + 1))


def test_harmonics_are_those_of_scipy():
    """Up to sign, which no product of two sees."""
    x = points(9, 3)
    at_x, degrees = by_degree(x, 6)
    polar, azimuth = np.arccos(x[:, 2]), np.arctan2(x[:, 1], x[:, 0])
    for l in range(6):
        ours = {tuple(np.round(np.abs(row), 9)) for row in at_x[degrees == l]}
        for m in range(l + 1):
            Y = special.sph_harm_y(l, m, polar, azimuth) * np.sqrt(4 * np.pi * (1 + (m > 0)))
            assert tuple(np.round(np.abs(Y.real), 9)) in ours
            assert tuple(np.round(np.abs(Y.imag), 9)) in ours or m == 0


@every_sphere
def test_the_expansion_is_the_kernel(d):
    x = points(40, d)
    at_x, degrees = by_degree(x, 128)
    for beta in BETAS:
        a, _ = harmonics.coefficients(jnp.array(beta), 128, d)
        kernel = at_x.T @ (np.asarray(a)[degrees][:, None] * at_x)
        np.testing.assert_allclose(kernel, np.exp(beta * (x @ x.T) - beta), atol=2e-14)


@every_sphere
def test_harmonics_are_smooth_at_the_pole(d):
    pole = jnp.eye(d)[-1]
    slope = jax.jit(jax.jacfwd(lambda x: values(x[:, None], 12)[:, 0]))(pole)
    h = 1e-6
    for c in range(d):
        step = h * jnp.eye(d)[c]
        near = [values((pole + s * step)[:, None], 12)[:, 0] for s in (1, -1)]
        np.testing.assert_allclose(slope[:, c], (near[0] - near[1]) / (2 * h), atol=1e-4)


@every_sphere
@pytest.mark.parametrize("precision", [1e-16, 6e-8])
def test_reach_is_where_the_rest_becomes_visible(d, precision):
    for size in HARMONICS[d].sizes:
        beta = harmonics.reach(size, d, precision)
        for factor, above in ((0.97, False), (1.03, True)):
            _, rest = harmonics.coefficients(jnp.array(factor * beta), size, d)
            assert (rest > precision) == above


@pytest.mark.parametrize("xp", [np, jnp])
@pytest.mark.parametrize("d", [2, 3, 4, 7])
def test_harmonics_of_one_angle_are_gegenbauer_polynomials(d, xp):
    u = np.linspace(-1, 1, 11)
    for k, got in zip(range(9), harmonics.gegenbauer(xp.asarray(u), d), strict=False):
        want = np.cos(k * np.arccos(u)) if d == 2 else special.gegenbauer(k, d / 2 - 1)(u)
        np.testing.assert_allclose(got, want / want[-1], atol=1e-12)


@pytest.mark.parametrize("d", [2, 3, 4, 24])
def test_harmonics_are_as_many_as_polynomials_less_those_two_degrees_below(d):
    """Homogeneous polynomials of degree l are harmonics plus |x|² times those of degree l − 2."""
    known = [
        math.comb(l + d - 1, d - 1) - (math.comb(l + d - 3, d - 1) if l > 1 else 0)
        for l in range(12)
    ]
    assert harmonics.counts(12, d).tolist() == known
