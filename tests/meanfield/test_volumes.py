"""Finite volumes: what is conserved, what stays positive, and of which order they are."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnflow.meanfield import continuity_rate, limited_slopes, positive_step

N = 16
CELLS = st.lists(st.one_of(st.just(0.0), st.floats(1e-12, 1e3)), min_size=N, max_size=N).map(
    np.array
)
SPEEDS = st.lists(st.floats(-5, 5), min_size=N, max_size=N).map(np.array)


def plain_rate(rho, speeds, width, sigma):
    """The same by a loop over cells, from the textbook's formulas."""
    n, flux = len(rho), np.zeros(len(rho))
    slope = np.zeros(n)
    for i in range(n):
        a, b = rho[i] - rho[i - 1], rho[(i + 1) % n] - rho[i]
        slope[i] = 2 * a * b / (a + b) if a * b > 0 else 0.0
    for i in range(n):
        upwind = rho[i - 1] + slope[i - 1] / 2 if speeds[i] > 0 else rho[i] - slope[i] / 2
        flux[i] = speeds[i] * upwind - sigma * (rho[i] - rho[i - 1]) / width
    return np.array([(flux[i] - flux[(i + 1) % n]) / width for i in range(n)])


def test_it_is_the_textbooks_scheme(rng):
    rho, speeds = rng.random(N), rng.normal(size=N)
    expected = plain_rate(rho, speeds, 0.3, 0.2)
    rate = continuity_rate(jnp.asarray(rho), jnp.asarray(speeds), 0.3, 0.2)
    np.testing.assert_allclose(rate, expected, atol=1e-13)
    batch = jax.jit(jax.vmap(lambda r: continuity_rate(r, jnp.asarray(speeds), 0.3, 0.2)))
    np.testing.assert_allclose(batch(jnp.stack([rho, rho]))[1], expected, atol=1e-13)


@settings(max_examples=150, deadline=None)
@given(CELLS, SPEEDS, st.floats(0, 2))
def test_a_step_within_the_limit_keeps_mass_and_sign(rho, speeds, sigma):
    width = 0.1
    dt = float(positive_step(jnp.asarray(speeds), width, sigma))
    if not np.isfinite(dt):
        return
    after = rho + dt * np.asarray(
        continuity_rate(jnp.asarray(rho), jnp.asarray(speeds), width, sigma)
    )
    assert after.min() >= -1e-13 * rho.max()
    assert abs(after.sum() - rho.sum()) <= 1e-13 * N * max(rho.max(), 1)


def test_a_longer_step_does_not():
    rho, speeds = jnp.zeros(N).at[5].set(1.0), jnp.full(N, -1.0).at[6:].set(1.0)
    dt = float(positive_step(speeds, 0.1))
    assert float((rho + dt * continuity_rate(rho, speeds, 0.1)).min()) == pytest.approx(
        0, abs=1e-15
    )
    assert float((rho + 1.1 * dt * continuity_rate(rho, speeds, 0.1)).min()) < -0.05


def test_slopes_make_no_new_extremum(rng):
    rho = jnp.asarray(rng.random(64))
    half = limited_slopes(rho) / 2
    for edge, other in ((rho + half, jnp.roll(rho, -1)), (rho - half, jnp.roll(rho, 1))):
        assert bool(jnp.all((edge - rho) * (edge - other) <= 1e-16))


def averages(primitive, n, width):
    return np.diff(primitive(width * np.arange(n + 1))) / width


def test_the_order_is_two_where_the_density_is_smooth():
    errors = []
    for n in (128, 256, 512):
        width = 2 * np.pi / n
        edges = width * np.arange(n)
        rho = averages(lambda x: 2 * x - np.cos(x), n, width)  # 2 + sin x
        expected = -averages(lambda x: np.cos(x) * (2 + np.sin(x)), n, width)
        rate = continuity_rate(jnp.asarray(rho), jnp.cos(jnp.asarray(edges)), width)
        errors.append(np.mean(np.abs(np.asarray(rate) - expected)[_away(edges + width / 2)]))
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all((orders > 1.9) & (orders < 2.1))


def _away(x):
    """Away from the extrema of sin, where every limiter is of first order."""
    return np.abs(np.cos(x)) > 0.2


def test_it_translates_and_reflects_with_the_grid(rng):
    rho, speeds = jnp.asarray(rng.random(N)), jnp.asarray(rng.normal(size=N))
    rate = continuity_rate(rho, speeds, 0.2, 0.1)
    moved = continuity_rate(jnp.roll(rho, 3), jnp.roll(speeds, 3), 0.2, 0.1)
    np.testing.assert_allclose(moved, jnp.roll(rate, 3), atol=1e-13)
    # Cell i becomes cell N − 1 − i, whose left edge is the old right one, edge i + 1.
    mirrored = continuity_rate(rho[::-1], -jnp.roll(speeds, -1)[::-1], 0.2, 0.1)
    np.testing.assert_allclose(mirrored, rate[::-1], atol=1e-13)


def test_single_precision_stays_single():
    rho = jnp.ones(8, jnp.float32)
    assert continuity_rate(rho, rho, 0.5, 0.1).dtype == jnp.float32
