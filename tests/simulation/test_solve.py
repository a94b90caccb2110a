"""`solve` chooses and checks as `simulate` does."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InputError

X0 = af.initial.sphere(n=4, d=3, key=0)
TS = jnp.array([0.0, 0.1])
NOISY = af.Noisy(af.SA(1.0), 0.5)


def test_noise_is_not_dropped():
    """The same steps and the same motion as under simulate, whose first member has key 0 folded."""
    theirs = af.simulate(NOISY, X0, TS, key=7).final
    key = jax.random.fold_in(jax.random.key(7), 0)
    np.testing.assert_allclose(af.solve(NOISY, X0, TS, key=key).final, theirs, atol=1e-12)
    flow = af.simulate(af.SA(1.0), X0, TS).final
    assert np.abs(theirs - flow).max() > 0.05


@pytest.mark.parametrize("run", [af.solve, af.simulate])
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "draws random numbers"),
        ({"method": af.Fixed(0.1, "euler")}, "draws random numbers"),
        ({"method": af.Layers(0.1)}, "draws random numbers"),
        ({"method": af.Adaptive(), "key": 0}, "which has noise"),
        ({"method": af.Fixed(0.1), "key": 0}, "which has noise"),
    ],
)
def test_refusals_under_tracing(run, given, said):
    """What the system and the method are is known under jit too."""
    with pytest.raises(InputError, match=said):
        jax.eval_shape(lambda x, ts: run(NOISY, x, ts, **given), X0, TS)


@pytest.mark.parametrize(
    ("system", "method", "said"),
    [
        (af.PostNorm(1.0, D=np.ones(3)), af.Adaptive(), "is a map in time"),
        (af.Hardmax(), None, "runs on the host"),
        (af.SA(1.0), af.Filippov(), "is for Hardmax"),
        (af.SA(1.0, mask="causal"), af.Coarsening(), "Coarsening"),
        (af.SA(1.0), "rk4", "method must be"),
        (af.SA, None, "system must be a System"),
    ],
)
def test_refusals_of_structure(untyped, system, method, said):
    with pytest.raises(InputError, match=said):
        jax.eval_shape(lambda x: af.solve(system, x, TS, method=method), X0)


def test_maps_take_layers():
    """PostNorm has no velocity: the default was Adaptive, which has nothing to integrate."""
    system = af.PostNorm(1.0, D=np.ones(3))
    ts = jnp.array([0.0, 2.0])
    theirs = af.simulate(system, X0, ts).final
    np.testing.assert_allclose(af.solve(system, X0, ts).final, theirs, atol=1e-14)
