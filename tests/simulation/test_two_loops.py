"""The loop of concrete runs takes the steps that diffrax' own loop takes in traced ones."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.weights import Redrawn, Scheduled, ginibre

TS = np.array([0.0, 0.3, 1.0, 1.25, 3.0])
SQUARE = np.array([[1.0, 0.4], [0.0, -0.6]])
REDRAWN = Redrawn(partial(ginibre, 2), every=0.5, key=0)

RUNS = {
    "adaptive": (lambda beta: af.SA(beta), af.Adaptive(), None),
    "looser": (lambda beta: af.SA(20 * beta), af.Adaptive(1e-4, solver="tsit5"), None),
    "fixed": (lambda beta: af.USA(beta), af.Fixed(0.3), None),
    "heun": (lambda beta: af.SA(beta), af.Fixed(0.25, "heun"), None),
    "layers": (lambda beta: af.SA(beta), af.Layers(0.05), None),
    "encoded": (lambda beta: af.RescaledAttention(beta, V=SQUARE), af.Adaptive(), None),
    "breaks": (lambda beta: af.SA(beta, V=REDRAWN), None, None),
    "schedule": (
        lambda beta: af.SA(beta, V=Scheduled(lambda t: jnp.cos(t) * jnp.eye(2))),
        None,
        None,
    ),
    "noise": (lambda beta: af.Noisy(af.SA(beta), 0.3), None, 5),
}


@pytest.mark.parametrize("name", RUNS)
def test_both_take_the_same_steps(name):
    make, method, key = RUNS[name]
    x0 = af.initial.sphere(n=7, d=2, key=3)

    def run(beta):
        traj = af.simulate(make(beta), x0, TS, method=method, key=key)
        return traj.xs, traj.final, traj.steps, traj.rejected

    here, traced = run(2.0), jax.jit(run)(2.0)
    assert int(here[2]) == int(traced[2])
    assert int(here[3]) == int(traced[3])
    assert int(here[2]) > 4
    for ours, theirs in zip(here[:2], traced[:2], strict=True):
        assert np.allclose(ours, theirs, rtol=0, atol=1e-11)


def test_steps_that_are_rejected_are_counted_in_both():
    """Tokens that pair up suddenly after a long wait, so that steps have grown too long."""
    x0 = af.initial.normalise(af.initial.circle(16) + 1e-6 * af.initial.gaussian(16, 2, key=0))
    system, method = af.SA(30.0), af.Adaptive(1e-6)
    here = af.simulate(system, x0, 5 * TS, method=method)
    traced = jax.jit(lambda x: af.simulate(system, x, 5 * TS, method=method))(x0)
    assert int(here.rejected) > 0
    assert (int(here.steps), int(here.rejected)) == (int(traced.steps), int(traced.rejected))
