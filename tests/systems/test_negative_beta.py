"""β < 0: tokens attend to those that are unlike them. Right wherever it is taken, else refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy

import attnflow as af
from attnflow.attention import Spectral
from attnflow.errors import InputError
from attnflow.meanfield import CircleModes, ZonalModes

SYSTEMS = {"SA": (af.SA, True), "USA": (af.USA, False)}
ANGLES = {"SA": af.AngularSA, "USA": af.AngularUSA}


def plain(x, beta, normalised):
    x = np.asarray(x)
    weights = np.exp(beta * (x @ x.T))
    weights /= weights.sum(axis=1, keepdims=True) if normalised else len(x)
    y = weights @ x
    return y - (y * x).sum(axis=1, keepdims=True) * x


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("beta", [-0.5, -7.0, -40.0])
@pytest.mark.parametrize(("n", "d"), [(20, 2), (20, 3), (20, 7)])
def test_velocities(name, beta, n, d):
    system, normalised = SYSTEMS[name]
    x = af.initial.sphere(n, d, key=1)
    expected = plain(x, beta, normalised)
    for found in (
        system(beta).velocity(0.0, x),
        jax.jit(lambda b: system(b).velocity(0.0, x))(beta),
        system(beta, backend="blocked").velocity(0.0, x),
    ):
        assert np.abs(found - expected).max() < 1e-13 * np.abs(expected).max()


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("arc", [0.1, 6.0])
def test_angles_at_a_beta_whose_exponentials_would_overflow(name, arc):
    """e^{2·400} has no place in a float, e^{400} has; in a cluster e^{−400} must not vanish."""
    theta = af.initial.angles(30, arc=arc, key=2)
    x = np.concatenate([np.cos(theta), np.sin(theta)], axis=1)
    found = ANGLES[name](-400.0).velocity(0.0, theta)[:, 0]
    tokens = SYSTEMS[name][0](-400.0).velocity(0.0, jnp.asarray(x))
    across = np.concatenate([-np.sin(theta), np.cos(theta)], axis=1)
    expected = (np.asarray(tokens) * across).sum(axis=1)
    assert np.abs(found - expected).max() < 1e-10 * np.abs(expected).max()


@pytest.mark.parametrize("name", SYSTEMS)
def test_angles(name):
    theta = af.initial.angles(30, key=2)
    x = np.concatenate([np.cos(theta), np.sin(theta)], axis=1)
    across = np.concatenate([-np.sin(theta), np.cos(theta)], axis=1)
    expected = (plain(x, -3.0, SYSTEMS[name][1]) * across).sum(axis=1)
    assert np.abs(ANGLES[name](-3.0).velocity(0.0, theta)[:, 0] - expected).max() < 1e-13


@pytest.mark.parametrize("backend", [None, Spectral(degree=24)], ids=["chosen", "24 degrees"])
@pytest.mark.parametrize("beta", [-2.0, -30.0])
def test_harmonics_are_not_taken_for_a_sign_that_only_the_run_knows(backend, beta):
    """With many tokens on the circle sums are expanded, in as many degrees as β > 0 would need."""
    x = af.initial.sphere(4000, 2, key=1)
    found = jax.jit(lambda b: af.SA(b, backend=backend).velocity(0.0, x))(beta)
    assert np.abs(found - plain(x, beta, True)).max() < 1e-12


def test_the_energy_grows_as_its_rate_says():
    x = af.initial.sphere(30, 3, key=4)
    system, h = af.SA(-3.0), 1e-6
    v = system.velocity(0.0, x)
    ahead, behind = (af.observe.energy(af.initial.normalise(x + s * v), -3.0) for s in (h, -h))
    rate = float(af.observe.energy_rate(system, x))
    assert rate == pytest.approx(float(ahead - behind) / (2 * h), rel=1e-6)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_densities_grow_as_bessel_functions_say(k):
    """LIN: k(k + d − 2) I_{k+ν}(β)/(β I_ν(β)), of which odd modes change sign with β twice."""
    beta, small = -4.0, 1e-6
    x = jnp.zeros((12, 2)).at[0, 0].set(1.0).at[k, 0].set(small)
    rate = CircleModes(af.SA(beta)).velocity(0.0, x)[k, 0] / small
    ratio = scipy.special.iv(k, beta) / scipy.special.iv(0, beta)
    assert float(rate) == pytest.approx(k**2 * ratio / beta, abs=1e-6)
    b = jnp.zeros((12, 1)).at[0, 0].set(1.0).at[k, 0].set(small)
    zonal = ZonalModes(af.SA(beta), d=3).velocity(0.0, b)[k, 0] / small
    ratio = scipy.special.iv(k + 0.5, -beta) / scipy.special.iv(0.5, -beta) * (-1) ** k
    assert float(zonal) == pytest.approx(k * (k + 1) * ratio / beta, abs=1e-5)


def test_other_systems_refuse_it():
    for make in (af.PureAttention, af.RescaledAttention, af.SinkhornSA, af.Transformer):
        with pytest.raises(InputError, match=rf"negative for {make.__name__}, but it is -1"):
            make(-1.0)
