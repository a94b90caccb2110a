"""Rescaled attention: its coordinates, its layers, and how far it can be followed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import attnflow as af
from attnflow.systems.balance import balance, conjugate, frame, power, split

SLOW = pytest.mark.slow
ROTATING = np.array([[0.4, 2.0], [-2.0, 0.4]])
JORDAN = np.array([[0.5, 1.0], [0.0, 0.5]])
MIXED = np.array([[1.0, 2.0, 0.5], [0.0, -0.5, 3.0], [0.0, -1.0, -0.4]])
MATRICES = {
    "diagonal": np.diag([1.0, 0.3]),
    "negative": np.diag([-0.5, -1.0]),
    "rotating": ROTATING,
    "jordan": JORDAN,
    "jordan at 0": np.array([[0.0, 1.0], [0.0, 0.0]]),
    "mixed": MIXED,
    "saddle": np.array([[1.0, 5.0], [0.0, -1.0]]),
}


@pytest.mark.parametrize("V", MATRICES.values(), ids=MATRICES)
def test_the_split_is_into_invariant_subspaces(V):
    basis, dual, part, _, C, mu = split(V)
    assert np.allclose(dual @ basis, np.eye(len(V)), atol=1e-12)
    blocks = dual @ V @ basis
    assert np.abs(blocks[part[:, None] != part]).max(initial=0.0) < 1e-12
    ours = np.sort_complex(np.round(np.linalg.eigvals(C), 6))
    all_ = np.linalg.eigvals(V)
    theirs = np.sort_complex(np.round(np.where(all_.real > 1e-6, all_, 0), 6))
    assert np.allclose(ours, theirs, atol=1e-5)
    assert np.allclose(C @ blocks, blocks @ C, atol=1e-12)
    assert mu == pytest.approx(max(all_.real.max(), 0), abs=1e-7)


def test_rates_of_decay_are_told_apart_where_the_basis_allows_it():
    S = np.array([[1.0, 0.5, 0.2], [0.0, 1.0, 0.4], [0.3, 0.0, 1.0]])
    V = S @ np.diag([1.0, -0.1, -2.0]) @ np.linalg.inv(S)
    assert split(V)[2].tolist() == [0, 1, 2]
    skew = np.array([[1.0, 0.0, 0.0], [0.0, -0.1, 1e4], [0.0, 0.0, -2.0]])
    assert split(skew)[2].tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("V", "heads"),
    [
        pytest.param(None, 1, marks=SLOW),
        (0.7, 1),
        *((V, 1) for V in MATRICES.values() if len(V) == 2),
        pytest.param(MIXED, 1, marks=SLOW),
        pytest.param(MIXED, 2, marks=SLOW),
    ],
)
def test_rescaling_connects_pure_and_rescaled(V, heads):
    d = 2 if V is None or np.ndim(V) == 0 else len(V)
    Q = af.weights.ginibre(d, rows=2, heads=heads if heads > 1 else None, key=1)
    K = af.weights.ginibre(d, rows=2, key=2)
    if heads > 1 and np.ndim(V) == 2:
        V = np.stack([V, 0.3 * af.weights.ginibre(d, key=3)])
    x0 = af.initial.gaussian(n=6, d=d, key=0)
    ts = np.linspace(0, 1.5, 6)
    rescaled = af.RescaledAttention(Q=Q, K=K, V=V, beta=0.5)
    z = af.simulate(rescaled, x0, ts, method=af.Adaptive(1e-10, 1e-12)).xs
    x = af.simulate(
        af.PureAttention(Q=Q, K=K, V=V, beta=0.5), x0, ts, method=af.Adaptive(1e-10, 1e-12)
    ).xs
    for t, z_t, x_t in zip(ts, z, x, strict=True):
        assert np.abs(rescaled.to_z(t, x_t) - z_t).max() < 1e-6 * np.abs(z_t).max()
        assert np.abs(rescaled.to_x(t, z_t) - x_t).max() < 1e-6 * np.abs(x_t).max()


@pytest.mark.parametrize(
    "V", [None, 0.7, *MATRICES.values()], ids=["identity", "number", *MATRICES]
)
def test_discrete_layers_are_connected_by_powers_of_R(V):
    d = 2 if V is None or np.ndim(V) == 0 else len(V)
    dt, x0 = 0.25, af.initial.gaussian(n=6, d=d, key=0)
    ts = dt * np.arange(9)
    z = af.simulate(af.RescaledAttention(V=V), x0, ts, method=af.Layers(dt)).xs
    x = af.simulate(af.PureAttention(V=V), x0, ts, method=af.Layers(dt)).xs
    matrix = np.eye(d) if V is None else V * np.eye(d) if np.ndim(V) == 0 else V
    R = np.eye(d) + dt * matrix
    for k in range(len(ts)):
        back = np.linalg.solve(np.linalg.matrix_power(R, k), x[k].T).T
        assert np.abs(back - z[k]).max() < 1e-10 * np.abs(z[k]).max()


@pytest.mark.parametrize(
    "V", [pytest.param(None, marks=SLOW), 2.0, 2 * np.eye(3)], ids=["I", "2", "2I"]
)
def test_finite_to_time_100_and_at_vertices(V):
    x0 = af.initial.cube(n=40, d=3, key=0)
    traj = af.simulate(af.RescaledAttention(V=V), x0, np.linspace(0, 100, 21))
    assert np.isfinite(traj.xs).all()
    found = af.observe.clusters(traj.final, 1e-3)
    hull = scipy.spatial.ConvexHull(found.centers)
    assert 3 < found.count < 20
    assert len(hull.vertices) == found.count


@SLOW
def test_float32_is_finite_where_scores_overflow():
    x0 = af.initial.cube(n=20, d=3, key=0, dtype=np.float32)
    traj = af.simulate(af.RescaledAttention(), x0, [0.0, 60.0])
    assert np.isfinite(traj.final).all()


@SLOW
def test_many_layers_do_not_overflow():
    x0 = af.initial.cube(n=10, d=2, key=0)
    for V in (1.0, np.array([[1.0, 0.4], [0.0, 0.8]])):
        traj = af.simulate(af.RescaledAttention(V=V), x0, [0.0, 1500.0], method=af.Layers(1.0))
        assert np.isfinite(traj.final).all()


@SLOW
def test_velocity_is_the_derivative_of_the_trajectory():
    system = af.RescaledAttention(V=MIXED)
    x0 = af.initial.gaussian(n=5, d=3, key=0)
    h = 1e-4
    before, at, after = af.simulate(
        system, x0, [0.0, 1 - h, 1.0, 1 + h], method=af.Adaptive(1e-12, 1e-13)
    ).xs[1:]
    slope = (after - before) / (2 * h)
    assert np.abs(system.velocity(1.0, at) - slope).max() < 1e-6 * np.abs(slope).max()


def test_the_attention_matrix_is_that_of_x():
    z = af.initial.gaussian(n=5, d=3, key=0)
    system = af.RescaledAttention(V=MIXED)
    P = af.observe.attention(system, z, t=0.8)
    Q = af.observe.attention(af.PureAttention(V=MIXED), system.to_x(0.8, z))
    assert np.abs(P - Q).max() < 1e-12


@pytest.mark.parametrize("V", [ROTATING, MIXED], ids=["rotating", "mixed"])
def test_derivatives_do_not_see_the_choice_of_coordinates(V):
    d, t = len(V), 0.7
    found = balance(jnp.asarray(V))
    W, C = np.asarray(found.matrix(jnp.asarray(V))), np.asarray(found.C)
    direction = jnp.asarray(np.random.default_rng(0).normal(size=(d, d)))
    inward, outward = (scipy.linalg.expm(s * t * C) for s in (-1, 1))
    for ours, literal in (
        (frame, lambda W: scipy.linalg.expm(-t * W) @ outward),
        (conjugate, lambda W: inward @ W @ outward),
    ):
        value, slope = jax.jvp(
            lambda W, f=ours: f(t, W, found.C, found.resting), (jnp.asarray(W),), (direction,)
        )
        h = 1e-6 * np.asarray(direction)
        numeric = (literal(W + h) - literal(W - h)) / 2e-6
        assert np.allclose(value, literal(W), atol=1e-10)
        assert np.allclose(slope, numeric, atol=1e-7)


def test_balance_is_the_same_under_jit():
    plain, compiled = balance(jnp.asarray(MIXED)), jax.jit(balance)(jnp.asarray(MIXED))
    for ours, theirs in zip(jax.tree.leaves(plain), jax.tree.leaves(compiled), strict=True):
        assert np.allclose(ours, theirs)


def test_power_of_a_traced_exponent():
    R = jnp.asarray(MIXED)
    for k in (0, 1, 7, 12):
        assert np.allclose(jax.jit(power)(R, k), np.linalg.matrix_power(MIXED, k))


def test_singular_layers_are_refused():
    x0 = af.initial.cube(n=4, d=2, key=0)
    with pytest.raises(af.InputError, match=r"I \+ Δt·V is singular.*dt = 0\.5"):
        af.simulate(af.RescaledAttention(V=-2.0), x0, [0.0, 1.0], method=af.Layers(0.5))
    system = af.RescaledAttention(V=np.array([[-2.0, 1.0], [0.0, 1.0]]))
    with pytest.raises(af.InputError, match="singular"):
        af.simulate(system, x0, [0.0, 1.0], method=af.Layers(0.5))


def test_layers_are_counted_from_zero():
    x0 = af.initial.cube(n=4, d=2, key=0)
    with pytest.raises(af.InputError, match=r"ts\[0\] = 0.1 must be a multiple"):
        af.simulate(af.RescaledAttention(), x0, [0.1, 0.6], method=af.Layers(0.5))


def test_a_value_that_changes_in_time_is_refused():
    with pytest.raises(af.InputError, match="V must be constant"):
        af.RescaledAttention(V=lambda t: jnp.eye(2) * t)


def test_a_run_into_a_hard_maximum_stops_and_says_so():
    x0 = af.initial.cube(n=40, d=3, key=0)
    system = af.RescaledAttention(V=np.diag([1.0, 1.0, -0.5]))
    with pytest.raises(af.IncompleteRun, match=r"reached t = .* of 60") as caught:
        af.simulate(system, x0, np.linspace(0, 60, 31), method=af.Adaptive(max_steps=100))
    partial = caught.value.trajectory
    assert 5 < caught.value.time < 60
    assert partial.ts[-1] <= caught.value.time
    assert np.isfinite(partial.xs).all()
    assert np.isfinite(partial.final).all()
