import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import linregress, t

from attnflow.errors import InputError
from attnflow.observe import doubly_exponential_rate, exponential_rate

ts = np.linspace(1, 6, 40)


def test_exact_data():
    fit = exponential_rate(ts, 0.3 * np.exp(0.7 * ts))
    assert (fit.rate, fit.prefactor) == pytest.approx((-0.7, 0.3))
    assert fit.error < 1e-12
    fit = doubly_exponential_rate(ts, np.exp(-0.2 * np.exp(0.9 * ts)))
    assert (fit.rate, fit.prefactor) == pytest.approx((0.9, 0.2))


def test_the_error_is_that_of_linear_regression(rng):
    values = np.exp(-1.3 * ts + 0.2 * rng.normal(size=40))
    fit, want = exponential_rate(ts, values), linregress(ts, np.log(values))
    assert fit.rate == pytest.approx(-want.slope, rel=1e-12)
    assert fit.error == pytest.approx(want.stderr, rel=1e-12)
    assert fit.prefactor == pytest.approx(np.exp(want.intercept), rel=1e-12)


@pytest.mark.parametrize(
    ("fit", "decay"),
    [
        (exponential_rate, lambda noise: np.exp(-1.5 * ts + noise)),
        (doubly_exponential_rate, lambda noise: np.exp(-np.exp(1.5 * (ts - 3) + noise))),
    ],
)
def test_error_bars_cover_the_truth_as_often_as_they_should(fit, decay, rng):
    fits = [fit(ts, decay(0.3 * rng.normal(size=40))) for _ in range(2000)]
    off = np.array([(f.rate - 1.5) / f.error for f in fits])
    # Student's t with 38 degrees of freedom, ± 3 standard errors of the count
    assert np.mean(np.abs(off) < 1) == pytest.approx(0.676, abs=0.032)
    assert np.mean(np.abs(off) < 2) == pytest.approx(0.947, abs=0.015)
    assert abs(off.mean()) < 0.08


@pytest.mark.parametrize("points", [3, 5, 20])
@pytest.mark.parametrize("confidence", [0.68, 0.95])
def test_intervals_hold_the_truth_with_few_points_too(points, confidence, rng):
    """Two standard errors hold it in 86% of the cases with 5 points, and in 70% with 3."""
    times = np.linspace(0, 3, points)
    logs = -1.5 * times + 0.3 * rng.normal(size=(4000, points))
    ends = np.array([exponential_rate(times, np.exp(y)).interval(confidence) for y in logs])
    held = np.mean((ends[:, 0] < 1.5) & (ends[:, 1] > 1.5))
    assert held == pytest.approx(confidence, abs=4 * np.sqrt(confidence * (1 - confidence) / 4000))
    fit = exponential_rate(times, np.exp(logs[0]))
    assert fit.interval(confidence) == pytest.approx(
        t.interval(confidence, points - 2, fit.rate, fit.error)
    )


def test_a_confidence_is_a_probability():
    fit = exponential_rate(ts, np.exp(-ts))
    for confidence in (0.0, 1.0, 95):
        with pytest.raises(InputError, match="confidence must be"):
            fit.interval(confidence)


def test_later_clocks_change_the_prefactor_alone(rng):
    values = np.exp(-2 * ts + 0.1 * rng.normal(size=40))
    early, late = exponential_rate(ts, values), exponential_rate(ts + 10, values)
    assert (late.rate, late.error) == pytest.approx((early.rate, early.error), rel=1e-9)
    assert late.prefactor == pytest.approx(early.prefactor * np.exp(10 * early.rate), rel=1e-9)
    assert exponential_rate(jnp.asarray(ts), values).rate == pytest.approx(early.rate)


@pytest.mark.parametrize("fit", [exponential_rate, doubly_exponential_rate])
def test_what_has_no_rate_is_refused(fit, untyped):
    with pytest.raises(InputError, match="at least 3 times"):
        fit([0.0, 1.0], [0.5, 0.4])
    with pytest.raises(InputError, match="at least 3 times"):
        fit([1.0, 1.0, 1.0], [0.5, 0.4, 0.3])
    with pytest.raises(InputError, match=r"values must be positive.*smallest is -0.1"):
        fit([0.0, 1.0, 2.0], [0.5, 0.0, -0.1])
    with pytest.raises(InputError, match="values must be finite"):
        fit([0.0, 1.0, 2.0], [0.5, np.nan, 0.1])
    with pytest.raises(InputError, match="vectors of one length"):
        fit([0.0, 1.0, 2.0], [0.5, 0.1])


def test_values_of_a_double_exponential_are_below_one():
    values = np.array([1.0, 0.5, 0.25])
    with pytest.raises(InputError, match=r"values must be below 1.*largest is 1"):
        doubly_exponential_rate(np.arange(3), values)
    assert exponential_rate(np.arange(3), 4 * values).rate == pytest.approx(np.log(2))
