"""Frozen attention in closed form, against matrix exponentials and the flow."""

import numpy as np
import pytest
from scipy.linalg import expm

import attnflow as af
import reference
from attnflow.theory import MasterEquation

RNG = np.random.default_rng(5)
N, D = 7, 3
X0 = np.asarray(af.initial.cube(n=N, d=D, side=2.0, key=0))
MASSES = RNG.uniform(0.5, 2, N)
Q, K, V = (RNG.normal(size=(D, D)) for _ in range(3))
S = Q + Q.T
JORDAN = np.array([[0.5, 1.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, -0.2]])
EYE = np.eye(D)
TS = np.array([0.0, 0.3, 1.0])


def frozen(x, Qs, Ks, Vs, beta, ts, masses=None, mask=None):
    """e^{tM} X with the nd × nd matrix M = Σ_h P_h ⊗ V_h, literally."""
    heads = zip(Qs, Ks, Vs, strict=True)
    M = sum(
        np.kron(reference.attention_matrix(x, q, k, beta, masses, mask), v) for q, k, v in heads
    )
    return np.array([(expm(t * M) @ x.ravel()).reshape(x.shape) for t in ts])


CASES = {
    "plain": ({}, None, "eigenvectors", True),
    "masses": ({}, MASSES, "eigenvectors", True),
    "symmetric scores": ({"Q": S, "V": V}, MASSES, "eigenvectors", True),
    "any scores": ({"Q": Q, "K": K, "V": V}, MASSES, "eigenvectors", False),
    "causal": ({"mask": "causal", "V": -0.5}, None, "eigenvectors", False),
    "defective": ({"Q": Q, "K": K, "V": JORDAN}, None, "expm", False),
    "heads": (
        {"Q": np.stack([Q, K]), "K": np.stack([K, V]), "V": np.stack([V, -S])},
        MASSES,
        "expm",
        False,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_the_exponential_of_the_frozen_matrix(name):
    weights, masses, method, reversible = CASES[name]
    master = MasterEquation(af.PureAttention(beta=0.8, **weights), X0, masses)
    full = [weights.get(w, EYE) for w in "QKV"]
    full = [W if np.ndim(W) else W * EYE for W in full]
    lists = [list(W) if W.ndim == 3 else [W] for W in full]
    mask = np.tril(np.ones((N, N), bool)) if "mask" in weights else None
    theirs = frozen(X0, *lists, 0.8, TS, masses, mask)
    assert np.abs(master.tokens(TS) - theirs).max() < 1e-10 * np.abs(theirs).max()
    assert master.method == method
    if reversible:
        assert np.isrealobj(master.eigenvalues)
        assert master.eigenvalues[0] == pytest.approx(1, abs=1e-13)
        assert np.all(np.abs(master.eigenvalues[1:]) < 1)
    if name in ("plain", "masses"):
        assert master.eigenvalues.min() > 0


@pytest.mark.parametrize("V", [1.0, S, [[0.2, 1.0, 0.0], [-1.0, 0.2, 0.0], [0.0, 0.0, 0.5]]])
def test_eigenvectors_that_are_nearly_dependent_cost_no_digits(V):
    """At β = 3 weights of tokens differ by 1e12: six digits were lost."""
    x = np.random.default_rng(1).normal(size=(16, 3))
    V = V * EYE if np.ndim(V) == 0 else np.asarray(V)
    master = MasterEquation(af.PureAttention(beta=3.0, V=V), x)
    ts = np.array([0.3, 2.0])
    theirs = frozen(x, [EYE], [EYE], [V], 3.0, ts)
    assert np.abs(master.tokens(ts) - theirs).max() < 1e-13 * np.abs(theirs).max()
    assert master.method == "expm"


def test_eigenvalues_are_those_of_the_attention_matrix():
    master = MasterEquation(af.PureAttention(Q=Q, K=K), X0)
    P = reference.attention_matrix(X0, Q, K, 1.0)
    for value in master.eigenvalues:
        assert np.linalg.svd(P - value * np.eye(N), compute_uv=False)[-1] < 1e-12
    assert np.iscomplexobj(master.eigenvalues) == bool(np.abs(np.linalg.eigvals(P).imag).max() > 0)


@pytest.fixture(scope="module")
def run():
    """The flow itself, at geometric times."""
    system = af.PureAttention(Q=Q, K=K, V=V)
    ts = np.concatenate([[0.0], np.geomspace(1e-3, 1e-1, 5)])
    xs = reference.integrate(
        lambda t, x: reference.drift(x, [Q], [K], [V], 1.0), X0, ts, rtol=1e-13, atol=1e-14
    )
    return system, ts, xs


def test_it_follows_the_flow_to_second_order(run):
    """Freezing changes x'' and not x', so that the error is O(t²)."""
    system, ts, xs = run
    gaps = np.abs(MasterEquation(system, X0).tokens(ts) - xs).max(axis=(1, 2))
    slope = np.polyfit(np.log(ts[1:4]), np.log(gaps[1:4]), 1)[0]
    assert slope == pytest.approx(2, abs=0.05)


def test_departure_times_are_where_the_distance_is_the_tolerance(run):
    system, _, _ = run
    master = MasterEquation(system, X0)
    times = [master.departure_time(tol, horizon=0.5) for tol in (1e-3, 1e-2)]
    for t, tol in zip(times, (1e-3, 1e-2), strict=True):
        x = reference.integrate(lambda t, x: reference.drift(x, [Q], [K], [V], 1.0), X0, [0.0, t])[
            -1
        ]
        gap = np.linalg.norm(x - master.tokens([t])[0], axis=1).max()
        assert gap / np.linalg.norm(x, axis=1).max() == pytest.approx(tol, rel=1e-3)
    assert master.departure_time(1e-3, horizon=times[0] / 2) == np.inf


@pytest.mark.parametrize(
    ("system", "said"),
    [
        (af.SA(1.0), "PureAttention"),
        (af.PureAttention(V=lambda t: t * np.eye(D)), "V must not depend on time"),
    ],
)
def test_what_is_not_linear_when_frozen_is_refused(system, said, untyped):
    with pytest.raises(af.InputError, match=said):
        MasterEquation(system, X0)


def test_bad_numbers_are_refused(untyped):
    master = MasterEquation(af.PureAttention(), X0)
    with pytest.raises(af.InputError, match="tol"):
        master.departure_time(0.0)
    with pytest.raises(af.InputError, match="x0 must be a single start"):
        MasterEquation(af.PureAttention(), np.stack([X0, X0]))
