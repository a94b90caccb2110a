"""Frequencies and graphs of oscillators: their laws."""

import numpy as np
import pytest
from scipy import stats

import attnflow as af
from attnflow.weights import frequencies, graphs

LAWS = {
    "lorentzian": stats.cauchy(0.3, 0.5),
    "normal": stats.norm(0.3, 0.5),
    "uniform": stats.uniform(-0.2, 1.0),
}
each = pytest.mark.parametrize("name", LAWS)


@each
def test_draws_have_their_law(name):
    draw = getattr(frequencies, name)
    omega = np.asarray(draw(20_000, 0.5, centre=0.3, key=1))
    assert stats.kstest(omega, LAWS[name].cdf).pvalue > 1e-3
    assert not np.array_equal(omega, draw(20_000, 0.5, centre=0.3, key=2))


@each
def test_even_frequencies_are_quantiles(name):
    omega = getattr(frequencies, name)(9, 0.5, centre=0.3, even=True)
    assert np.allclose(LAWS[name].cdf(omega), np.arange(1, 10) / 10, atol=1e-14)


def test_the_table_names_them():
    assert set(frequencies.FREQUENCIES) == set(LAWS)


def test_erdos_renyi_graphs_have_the_right_edges():
    n, p = 200, 0.1
    a = np.asarray(graphs.erdos_renyi(n, p, key=0))
    assert np.array_equal(a, a.T)
    assert set(np.unique(a)) == {0.0, 1.0}
    assert np.trace(a) == 0
    edges = a[np.triu_indices(n, 1)].sum()
    assert stats.binomtest(int(edges), n * (n - 1) // 2, p).pvalue > 1e-3
    assert stats.kstest(a.sum(axis=0), stats.binom(n - 1, p).cdf).statistic < 0.15
    assert graphs.erdos_renyi(5, 1, key=0).sum() == 20
    assert graphs.erdos_renyi(5, 0, key=0).sum() == 0


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: graphs.erdos_renyi(5, 1.5, key=0), "p must be a probability"),
        (lambda: graphs.erdos_renyi(0, 0.5, key=0), "n must be a whole number"),
        (lambda: frequencies.lorentzian(5, 1.0), "pass a key, or even=True"),
        (lambda: frequencies.normal(5, 0.0, key=0), "width must be a finite number above 0"),
        (lambda: af.initial.angles(5, arc=-1.0, key=0), "arc must be a finite number above 0"),
    ],
)
def test_what_cannot_be_drawn(make, said):
    with pytest.raises(af.InputError, match=said):
        make()
