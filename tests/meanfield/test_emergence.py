"""The number of clusters that first appear, counted among tokens."""

import numpy as np
import pytest

import attnflow as af
from attnflow import meanfield


def on_circle(theta):
    return np.stack([np.cos(theta), np.sin(theta)], axis=-1)


def lumps(rng, k, n, width):
    centres = 2 * np.pi / k * rng.integers(k, size=n) + 0.3
    return centres + width * rng.uniform(-1, 1, n)


@pytest.mark.parametrize("k", [1, 3, 8])
def test_lumps_are_counted_when_they_have_formed(rng, k):
    n = 2000
    theta = np.stack([rng.uniform(0, 2 * np.pi, n), lumps(rng, k, n, 0.02)])
    found = meanfield.first_clusters(on_circle(theta))
    assert found == (k, 1)


def test_a_uniform_cloud_is_no_cluster_however_even(rng):
    n = 2000
    even = np.linspace(0, 2 * np.pi, n, endpoint=False)
    for theta in (even, rng.uniform(0, 2 * np.pi, n)):
        assert meanfield.first_clusters(on_circle(theta[None])) == (-1, -1)


def test_batches_and_turned_tokens_are_counted_alike(rng):
    theta = lumps(rng, 4, 1500, 0.05)
    both = np.stack([theta, theta + 0.77])[:, None]
    np.testing.assert_array_equal(meanfield.first_clusters(on_circle(both)).count, [4, 4])


@pytest.mark.slow
def test_tokens_first_form_about_as_many_clusters_as_the_fastest_mode():
    for beta in (2.0, 16.0):
        rate = af.theory.linear_growth(beta, 2, np.arange(1, 20)).max()
        ts = np.linspace(0, 14, 57) / rate
        theta = np.random.default_rng(0).uniform(0, 2 * np.pi, (8, 1200))
        run = af.simulate(
            af.SA(beta, backend="spectral"), on_circle(theta), ts, method=af.Fixed(0.1 / rate)
        )
        counts = meanfield.first_clusters(run.xs).count
        assert counts.min() > 0
        assert abs(np.median(counts) - int(af.theory.fastest_mode(beta))) <= 1


def test_bad_input_is_refused(untyped):
    with pytest.raises(af.InputError, match=r"\(T, n, 2\)"):
        meanfield.first_clusters(np.zeros((5, 2)))
