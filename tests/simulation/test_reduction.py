"""A flow that stays in the span of its tokens is the same in R^n, lifted."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.simulation import solve
from attnflow.simulation.reduction import WORTHWHILE, reduce

N, D = 4, 12
TS = jnp.array([0.0, 1.0, 2.0])
FIXED = af.Fixed(0.1)
rng = np.random.default_rng(0)


def matrix(*shape):
    return rng.normal(size=shape) / 4


def start(n=N, d=D, **options):
    return af.initial.sphere(n, d, key=1, **options)


def keeping(x):
    """A matrix that maps the span of x into itself, and everything else anywhere."""
    B = np.linalg.qr(np.asarray(x).T)[0]
    return B @ matrix(N, N) @ B.T + matrix(D, D) @ (np.eye(D) - B @ B.T)


REDUCIBLE = {
    "none": af.SA(3.0),
    "number": af.SA(2.0, Q=2.0, V=-1.0),
    "low QK": af.SA(2.0, Q=matrix(2, D), K=matrix(2, D)),
    "high QK": af.SA(2.0, Q=matrix(20, D), K=matrix(20, D)),
    "Q alone": af.USA(1.0, Q=matrix(D, D)),
    "K and a number": af.SA(1.0, Q=-2.0, K=matrix(D, D)),
    "heads": af.SA(1.0, Q=matrix(3, 2, D), K=matrix(2, D)),
    "V": af.SA(1.0, V=keeping(start())),
    "mask": af.SA(1.0, mask="causal"),
    "R^d": af.PureAttention(V=-1.0),
    "rescaled": af.RescaledAttention(),
}
IRREDUCIBLE = {
    "V": af.SA(1.0, V=matrix(D, D)),
    "in time": af.SA(1.0, Q=lambda t: jnp.eye(D) * t),
    "ellipsoid": af.EllipsoidAttention(1.0, D=jnp.linspace(1, 2, D)),
    "normalised": af.PreNorm(1.0, D=jnp.linspace(1, 2, D)),
    "rescaled": af.RescaledAttention(V=np.diag(np.linspace(0.1, 1, D))),
}


def system_of(table):
    return pytest.mark.parametrize("system", table.values(), ids=table.keys())


@system_of(REDUCIBLE)
def test_velocities_in_the_span_are_the_same(system):
    x = start()
    inside, c, basis = reduce(system, x[None])
    assert c.shape == (1, N, N)
    np.testing.assert_allclose(c[0] @ basis[0], x, atol=1e-14)
    lifted = inside.velocity(0.5, c[0]) @ basis[0]
    np.testing.assert_allclose(lifted, system.velocity(0.5, x), atol=1e-13)


@system_of(IRREDUCIBLE)
def test_what_leaves_the_span_is_left_alone(system):
    assert reduce(system, start()[None]).basis is None


@pytest.mark.parametrize("name", ["none", "low QK", "V"])
def test_runs_are_those_in_full_dimension(name):
    system, x = REDUCIBLE[name], start()
    traj = af.simulate(system, x, TS, method=FIXED)
    found = jax.jit(lambda x: solve(system, x, TS, method=FIXED))(x)
    assert traj.xs.shape == (3, N, D)
    np.testing.assert_allclose(traj.xs, found.xs, atol=1e-12)
    np.testing.assert_allclose(traj.final, found.final, atol=1e-12)
    assert traj.system is system


def test_members_have_their_own_spans():
    x = start(batch=5)
    assert reduce(af.SA(3.0), x).x.shape == (5, N, N)
    batch = af.simulate(af.SA(3.0), x, TS, method=FIXED)
    alone = af.simulate(af.SA(3.0), x[3], TS, method=FIXED)
    np.testing.assert_allclose(batch.xs[3], alone.xs, atol=1e-12)


def test_members_share_a_span_where_there_are_matrices():
    system = REDUCIBLE["low QK"]
    assert reduce(system, start(batch=5)).basis is None
    inside, c, basis = reduce(system, start(batch=2))
    assert c.shape == (2, N, 2 * N)
    lifted = inside.velocity(0.0, c[1]) @ basis[1]
    np.testing.assert_allclose(lifted, system.velocity(0.0, start(batch=2)[1]), atol=1e-13)


def first_entry(t, x):
    return x[0]


def test_what_is_saved_are_functions_of_the_tokens_themselves():
    x = start(batch=2)
    states = af.simulate(af.SA(3.0), x, TS, method=FIXED)
    saved = af.simulate(af.SA(3.0), x, TS, method=FIXED, save=first_entry)
    np.testing.assert_allclose(saved.xs, states.xs[:, :, 0], atol=1e-13)


def test_tokens_that_coincide_are_no_obstacle():
    x = start().at[1].set(start()[0])
    traj = af.simulate(af.SA(3.0), x, TS, method=FIXED)
    final = jax.jit(lambda x: solve(af.SA(3.0), x, TS, method=FIXED).final)(x)
    np.testing.assert_allclose(traj.final, final, atol=1e-12)


def test_merging_in_the_span():
    traj = af.simulate(af.SA(3.0), start(), [0.0, 1e4], method=af.Coarsening())
    assert int(traj.merges.count) == N - 1
    assert np.ptp(np.asarray(traj.final), axis=0).max() == 0


def test_nothing_is_done_where_nothing_is_gained():
    assert reduce(af.SA(1.0), start(D, D)[None]).basis is None
    assert reduce(af.SA(1.0), start(2, WORTHWHILE)[None]).basis is None


def test_a_traced_start_is_left_alone():
    shapes = jax.eval_shape(lambda x: af.simulate(af.SA(1.0), x, TS, method=FIXED).final, start())
    assert shapes.shape == (N, D)
    jaxpr = jax.make_jaxpr(lambda x: reduce(af.SA(1.0), x).x)(start()[None])
    assert "qr" not in str(jaxpr)


def test_single_precision_stays():
    x = start(dtype=jnp.float32)
    traj = af.simulate(REDUCIBLE["low QK"], x, TS, method=FIXED)
    assert traj.xs.dtype == jnp.float32
    wide = af.simulate(REDUCIBLE["low QK"], start(), TS, method=FIXED)
    assert np.isfinite(np.asarray(traj.xs)).all()
    assert wide.xs.dtype == jnp.float64
