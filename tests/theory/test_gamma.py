import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad

import attnflow as af
import reference
from attnflow.errors import InputError
from attnflow.theory import gamma, gap, transition_time

kinds = pytest.mark.parametrize("normalised", [True, False])
CASES = [(0.0, 2), (0.0, 10_000), (1e-9, 5), (0.4, 32), (3.0, 3), (5.0, 10_000), (12.0, 100)]
TRIAL_STEPS = "ignore:(overflow|invalid):RuntimeWarning"


def field(g, beta, n, normalised):
    """γ' of T6.8 as it is printed, for g = γ."""
    if normalised:
        e = np.exp(beta * (g - 1))
        return 2 * e * (1 - g) * ((n - 1) * g + 1) / (1 + (n - 1) * e)
    return 2 / n * np.exp(beta * g) * (1 - g) * ((n - 1) * g + 1)


def by_quadrature(beta, n, delta, normalised):
    """∫ dγ / γ' in pieces of v = −log(1 − γ), where 1 − γ would round."""

    def slowness(v):
        small = np.exp(-v)
        e = np.exp(-beta * small) if normalised else np.exp(beta - beta * small) / n
        mass = 1 + (n - 1) * e if normalised else 1
        return mass / (2 * e * (n - (n - 1) * small))

    pieces = itertools.pairwise([0, *np.geomspace(1e-7, -np.log(delta), 30)])
    return sum(quad(slowness, a, b, epsabs=0, epsrel=1e-12)[0] for a, b in pieces)


@kinds
@pytest.mark.filterwarnings(TRIAL_STEPS)
@pytest.mark.parametrize(("beta", "n"), CASES)
def test_gamma_solves_its_equation(beta, n, normalised):
    ends = transition_time(beta, n, 1e-4, normalised)
    ts = float(ends) * np.linspace(0, 1.2, 5)
    want = reference.gamma(beta, n, ts, normalised)
    np.testing.assert_allclose(gamma(beta, n, ts, normalised), want, rtol=0, atol=1e-10)


@kinds
def test_gamma_is_the_cosine_of_orthogonal_tokens(normalised):
    beta = 2.0
    system = (af.SA if normalised else af.USA)(beta=beta)
    ts, n = np.linspace(0, 3, 5), 6
    traj = af.simulate(system, af.initial.orthogonal(n=n, d=7, key=3), ts)
    cosines = np.asarray(traj.xs @ jnp.swapaxes(traj.xs, -1, -2))
    i, j = np.triu_indices(n, 1)
    want = np.asarray(gamma(beta, n, ts, normalised))[:, None]
    np.testing.assert_allclose(cosines[:, i, j], np.broadcast_to(want, (5, len(i))), atol=1e-7)


def test_the_published_times():
    times = transition_time(np.array([1.0, 3.0, 5.0]), 32, 1e-3)
    np.testing.assert_allclose(times, [5.27, 5.90, 9.54], atol=0.005)


@kinds
@pytest.mark.parametrize("n", [2, 32, 10_000])
@pytest.mark.parametrize("delta", [0.5, 1e-3, 1e-60])
def test_transition_time_is_the_integral(n, delta, normalised):
    betas = np.array([0.0, 1e-7, 0.1, 1.0, 7.0, 30.0, 49.9, 50.1, 80.0])
    want = [by_quadrature(beta, n, delta, normalised) for beta in betas]
    np.testing.assert_allclose(transition_time(betas, n, delta, normalised), want, rtol=1e-10)


@kinds
def test_late_gaps_keep_their_digits(normalised):
    """In the end the gap falls at the rate 2 (SA) or 2 e^β (USA), far below the rounding of γ."""
    beta, n = 2.0, 12
    rate = 2 if normalised else 2 * np.exp(beta)
    ts = np.array([0.0, 1.0, 2.0, 40.0, 60.0]) / (1 if normalised else np.exp(beta))
    early, late = np.asarray(gap(beta, n, ts, normalised))[-2:]
    assert late < 1e-40
    assert np.log(early / late) == pytest.approx(rate * (ts[-1] - ts[-2]), rel=1e-13)
    assert gamma(beta, n, ts, normalised)[-1] == 1.0


@kinds
def test_gap_and_transition_time_undo_each_other(normalised):
    deltas = np.array([1 - 1e-6, 0.7, 1e-2, 1e-9, 1e-100])
    times = [float(transition_time(4.0, 20, delta, normalised)) for delta in deltas]
    np.testing.assert_allclose(gap(4.0, 20, times, normalised), deltas, rtol=1e-11)


@kinds
def test_derivatives_are_those_of_the_flow(normalised):
    beta, n, t, h = 2.0, 9, 1.3, 1e-5
    at = float(gamma(beta, n, t, normalised))
    slopes = jax.jit(jax.grad(gamma, argnums=(0, 2)), static_argnums=(1, 3))
    in_beta, in_time = slopes(beta, n, t, normalised)
    assert float(in_time) == pytest.approx(field(at, beta, n, normalised), rel=1e-11)
    ends = [float(gamma(b, n, t, normalised)) for b in (beta - h, beta + h)]
    assert float(in_beta) == pytest.approx((ends[1] - ends[0]) / (2 * h), rel=1e-7)


def test_transition_times_have_a_slope_in_beta():
    betas, h = np.array([0.0, 0.5, 60.0]), 1e-5
    slopes = jax.jit(jax.vmap(jax.grad(lambda b: transition_time(b, 9, 0.1))))(betas)
    at = [np.asarray(transition_time(betas + s, 9, 0.1)) for s in (0.0, h, 2 * h)]
    np.testing.assert_allclose(slopes, (4 * at[1] - 3 * at[0] - at[2]) / (2 * h), rtol=1e-6)


def test_jit_and_vmap_over_beta():
    betas, ts = jnp.array([0.0, 1.0, 8.0]), jnp.linspace(0, 9, 5)
    together = jax.jit(jax.vmap(lambda b: gamma(b, 7, ts)))(betas)
    np.testing.assert_allclose(together, [gamma(float(b), 7, ts) for b in betas], rtol=1e-13)


@kinds
def test_extreme_temperatures_are_finite(normalised):
    for beta in (300.0, 5000.0):
        got = np.asarray(gamma(beta, 3, [0.0, 1e-3, 1.0, 1e3, 1e9], normalised))
        assert got[0] == 0
        assert np.all((got >= 0) & (got <= 1))
        assert np.all(np.diff(got) >= 0)
        assert got[-1] == pytest.approx(0.0 if normalised else 1.0, abs=1e-100)
    assert transition_time(5000.0, 3, 0.1) == np.inf


def test_float32_stays_float32():
    got = gamma(1.0, 32, jnp.linspace(0, 5, 5, dtype=jnp.float32))
    assert got.dtype == jnp.float32
    np.testing.assert_allclose(got, gamma(1.0, 32, np.linspace(0, 5, 5)), atol=1e-5)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: gamma(-1.0, 3, [1.0]), "beta must be at least 0, but it is -1"),
        (lambda: gamma(np.inf, 3, [1.0]), "beta must be finite"),
        (lambda: gamma(1.0, 1, [1.0]), "n must be a whole number of at least 2"),
        (lambda: gamma(1.0, 3, [0.0, -2.0]), "ts must be at least 0, but it is -2"),
        (lambda: gap(1.0, 3, [np.nan]), "ts must be finite"),
        (lambda: transition_time(1.0, 3, 0.0), "delta must lie between 0 and 1"),
        (lambda: transition_time(1.0, 3, 1.0), "delta must lie between 0 and 1"),
        (lambda: transition_time(np.array([1.0, -3.0]), 3, 0.1), "beta must be at least 0"),
    ],
)
def test_bad_input_is_refused(call, said):
    with pytest.raises(InputError, match=said):
        call()
