"""Laws of the papers along random runs: energies, hulls, dual coordinates and distances."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import strategies as st

import attnflow as af
from attnflow import observe
from properties.runs import LARGER
from properties.strategies import (
    always,
    arrays,
    betas,
    gaussian,
    masses,
    matrices,
    unit,
)

pytestmark = pytest.mark.slow

N, D = LARGER[0]
ADAPTIVE = af.Adaptive()
spans = st.floats(0.1, 4)
strengths = st.floats(0.1, 2)


def times(span):
    return span * np.array([0.0, 0.2, 0.6, 1.0])


def falls(values, rounding=1e-8):
    """Whether no value along the first axis is above the one before."""
    values = np.asarray(values)
    return (np.diff(values, axis=0) <= rounding * (1 + np.abs(values).max())).all()


@always(
    st.sampled_from([af.SA, af.USA]),
    betas,
    strengths,
    st.sampled_from([1, -1]),
    arrays(N, D).map(unit),
    masses(N),
    spans,
)
def test_the_energy_rises_and_falls_for_repulsion(make, beta, strength, sign, x, m, span):
    """[P](3.6) and Lemma 3.7, with masses."""
    xs = af.simulate(make(beta, V=sign * strength), x, times(span), masses=m).xs
    assert falls([-sign * observe.energy(x, beta, m) for x in xs])


@always(betas, matrices(D, D), matrices(D, D), strengths, arrays(N, D), masses(N), spans)
def test_the_hull_shrinks(beta, Q, K, c, x, m, span):
    """T3.1: no later token is outside of the hull of the earlier ones."""
    system = af.RescaledAttention(Q=Q, K=K, V=c, beta=beta)
    xs = np.asarray(af.simulate(system, x, times(span), masses=m).xs)
    for now, later in pairwise(xs):
        assert observe.hull(now).depth(later).min() >= -1e-7


@always(betas, gaussian(D, D), st.lists(spans, min_size=D, max_size=D), arrays(N, D), masses(N))
def test_dual_coordinates_draw_together(beta, basis, eigenvalues, x, m):
    """L-dual, for V with the given eigenvectors and eigenvalues λ ≥ 0."""
    basis = unit(basis) + 2 * np.eye(D)
    V = basis @ np.diag(np.array(eigenvalues) / 4) @ np.linalg.inv(basis)
    system = af.RescaledAttention(Q=np.eye(D), K=np.eye(D), V=V, beta=beta)
    xs = np.asarray(af.simulate(system, x, times(1.0), masses=m).xs)
    coordinates = xs @ np.linalg.inv(basis).T
    assert falls(coordinates.max(axis=1))
    assert falls(-coordinates.min(axis=1))


@always(arrays(N, D), masses(N), st.floats(0.1, 1.5))
def test_distances_grow(x, m, span):
    """L-dist: pure attention with QᵀK = V = I."""
    xs = np.asarray(af.simulate(af.PureAttention(), x, times(span), masses=m).xs)
    apart = np.linalg.norm(xs[:, :, None] - xs[:, None], axis=-1)
    assert falls(-apart)
