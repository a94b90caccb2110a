"""Every function of `observe` runs under jit and vmap as its docstring says, or on the host."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow import observe

STATES = af.initial.sphere(n=4, d=3, key=0, batch=2)
MATRICES = jax.nn.softmax(STATES @ STATES.mT, axis=-1)
V = np.array([[1.0, 2.0, 0.0], [0.0, -1.0, 1.0], [0.0, 0.0, 0.5]])

COMPILED = {
    "attention": (lambda x: observe.attention(af.SA(1.0), x), STATES),
    "boolean_distance": (observe.boolean_distance, MATRICES),
    "cluster_count": (lambda x: observe.cluster_count(x, 0.8), STATES),
    "diameter": (observe.diameter, STATES),
    "dual_coordinates": (lambda x: observe.dual_coordinates(x, V), STATES),
    "effective_rank": (observe.effective_rank, STATES),
    "energy": (lambda x: observe.energy(x, 2.0), STATES),
    "energy_rate": (lambda x: observe.energy_rate(af.SA(2.0), x), STATES),
    "entropy": (observe.entropy, MATRICES),
    "gradient": (lambda x: observe.gradient(x, 2.0), STATES),
    "hessian": (lambda x: observe.hessian(x, 2.0), STATES),
    "jacobian": (lambda x: observe.jacobian(af.SA(2.0), x), STATES),
    "jacobian_spectrum": (
        lambda x: observe.jacobian_spectrum(af.SA(2.0), x),
        jnp.stack([jnp.tile(x[:1], (4, 1)) for x in STATES]),
    ),
    "leaders": (lambda P: observe.leaders(P, share=0.3), MATRICES),
    "lyapunov_exponent": (
        lambda x: observe.lyapunov_exponent(af.SA(2.0), x, 2.0, method=af.Fixed(0.5)).exponent,
        STATES,
    ),
    "order_parameter": (observe.order_parameter, STATES),
    "overlap_histogram": (lambda x: observe.overlap_histogram(x, bins=5)[0], STATES),
    "overlaps": (observe.overlaps, STATES),
    "pairs_clustered": (lambda x: observe.pairs_clustered(x, 0.9), STATES),
    "rank": (observe.rank, MATRICES),
    "saddle_index": (lambda x: observe.saddle_index(x, 2.0), STATES),
    "span_dimension": (observe.span_dimension, STATES),
}

FUNCTIONS = {name: fn for name, fn in vars(observe).items() if inspect.isfunction(fn)}


SLOW = {"lyapunov_exponent": pytest.mark.slow}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=SLOW.get(name, ())) for name in COMPILED]
)
def test_compiled_for_a_batch_is_one_by_one(name):
    fn, batch = COMPILED[name]
    got = jax.jit(jax.vmap(fn))(batch)
    want = np.stack([fn(one) for one in batch])
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_function_says_where_it_runs(name):
    said = " ".join(FUNCTIONS[name].__doc__.split())
    if name in COMPILED:
        assert "under jit and vmap" in said
    else:
        assert "on the host" in said


def test_everything_is_exported():
    assert set(FUNCTIONS) <= set(observe.__all__)
    assert set(COMPILED) <= set(FUNCTIONS)
    assert list(observe.__all__) == sorted(observe.__all__)
