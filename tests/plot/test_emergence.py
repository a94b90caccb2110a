"""The picture of how many clusters first appear."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.special import ive

import attnflow as af
from attnflow.errors import InputError
from attnflow.plot import emergence_diagram
from attnflow.plot.meanfield import counted, first_counts, growth_rates

BETA = np.geomspace(1, 50, 40)


@pytest.fixture
def ax():
    return Figure().subplots()


def test_the_curves_are_growth_rates(ax):
    growth_rates(ax, BETA, 4)
    for k, line in enumerate(ax.get_lines()[:4], start=1):
        expected = k**2 * ive(k, BETA) / (BETA * ive(0, BETA))
        np.testing.assert_allclose(line.get_ydata(), expected, rtol=1e-10)


def test_the_staircase_is_the_largest_rate(ax):
    first_counts(ax, BETA)
    k = np.arange(1, 30)
    rates = k**2 * ive(k, BETA[:, None]) / ive(0, BETA[:, None])
    np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), k[rates.argmax(axis=1)])


def test_runs_are_dots_of_the_area_of_their_number(ax):
    counted(ax, {4.0: [3, 3, 3, 4]})
    [dots] = ax.collections
    np.testing.assert_array_equal(dots.get_offsets(), [[4, 3], [4, 4]])
    assert dots.get_sizes()[0] == 3 * dots.get_sizes()[1]


def test_the_picture_is_written(tmp_path):
    emergence_diagram(BETA, measured={4.0: [3, 3]}, path=tmp_path / "e.png")
    assert (tmp_path / "e.png").stat().st_size > 10_000


def test_bad_input_is_refused(untyped, ax):
    with pytest.raises(af.InputError, match="beta"):
        emergence_diagram(np.array([-1.0, 1.0]))
    with pytest.raises(af.InputError, match="no counts"):
        counted(ax, {4.0: []})


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_a_beta_that_no_logarithm_has_is_refused(bad):
    with pytest.raises(InputError, match="every beta must be a finite number above 0"):
        emergence_diagram(np.array([1.0, bad, 2.0]))
