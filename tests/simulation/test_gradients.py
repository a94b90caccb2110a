"""Derivatives of a trajectory against finite differences."""

from functools import partial

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.simulation.programs import holds_functions

TS = np.array([0.0, 0.7, 1.5])
X0 = af.initial.sphere(n=5, d=3, key=1)
TARGET = jnp.asarray(np.random.default_rng(0).normal(size=(5, 3)))
V0 = jnp.array([[1.0, 0.3, 0.0], [-0.2, 0.8, 0.1], [0.0, 0.4, -0.5]])
TIGHT = af.Adaptive(1e-11, 1e-12)


def on_sphere(beta, V, x0):
    return af.simulate(af.SA(beta, V=V), x0, TS, method=TIGHT).final


def rescaled(beta, V, x0):
    return af.simulate(af.RescaledAttention(V=V, beta=beta), x0, TS, method=TIGHT).final


def layers(beta, V, x0):
    ts = np.array([0.0, 0.75, 1.5])
    return af.simulate(af.SA(beta, V=V), x0, ts, method=af.Layers(0.25)).final


def rescaled_layers(beta, V, x0):
    ts = np.array([0.0, 0.75, 1.5])
    return af.simulate(af.RescaledAttention(V=V, beta=beta), x0, ts, method=af.Layers(0.25)).final


SLOW = pytest.mark.slow
RUNS = [
    on_sphere,
    pytest.param(layers, marks=SLOW),
    pytest.param(rescaled, marks=SLOW),
    pytest.param(rescaled_layers, marks=SLOW),
]


@pytest.mark.parametrize("run", RUNS, ids=["SA", "layers", "rescaled", "rescaled layers"])
def test_gradients_agree_with_finite_differences(run):
    def value(beta, V, x0):
        return jnp.sum(TARGET * run(beta, V, af.initial.normalise(x0)))

    at = (jnp.asarray(1.3), V0, X0)
    slope = jax.grad(value, argnums=(0, 1, 2))
    slopes = (slope if run is layers else jax.jit(slope))(*at)
    rng, h = np.random.default_rng(3), 1e-5
    for i in range(3):
        direction = jnp.asarray(rng.normal(size=at[i].shape))

        def moved(s, i=i, direction=direction):
            return value(*(a + s * direction if j == i else a for j, a in enumerate(at)))

        numeric = (moved(h) - moved(-h)) / (2 * h)
        assert float(jnp.sum(slopes[i] * direction)) == pytest.approx(
            float(numeric), rel=2e-6, abs=1e-8
        )


@SLOW
def test_forward_mode():
    def run(beta):
        system = af.SA(beta, V=V0)
        return af.solve(
            system, X0, jnp.asarray(TS), method=TIGHT, adjoint=diffrax.ForwardMode()
        ).final

    forward, h = jax.jacfwd(run)(1.3), 1e-5
    numeric = (on_sphere(1.3 + h, V0, X0) - on_sphere(1.3 - h, V0, X0)) / (2 * h)
    assert np.allclose(forward, numeric, atol=1e-7)


@SLOW
def test_vmap_over_beta():
    betas = jnp.array([0.5, 2.0])
    together = jax.vmap(lambda beta: on_sphere(beta, V0, X0))(betas)
    for beta, x in zip(betas, together, strict=True):
        assert np.abs(x - on_sphere(beta, V0, X0)).max() < 1e-9


def test_a_traced_run_that_stops_early_raises():
    run = jax.jit(
        lambda x: af.simulate(af.SA(3.0), x, [0.0, 50.0], method=af.Adaptive(max_steps=5)).final
    )
    with pytest.raises(Exception, match="stopped before"):
        run(X0).block_until_ready()


def test_a_gradient_outside_of_jit_is_compiled_once(programs):
    def spread(beta):
        return af.simulate(af.SA(beta), X0, [0.0, 0.5], method=af.Fixed(0.25)).final.var()

    once = float(jax.grad(spread)(2.0))
    programs.clear()
    again = float(jax.grad(spread)(2.5))
    assert programs == []
    assert again != once
    slope = float(spread(2.5 + 1e-5) - spread(2.5 - 1e-5)) / 2e-5
    assert again == pytest.approx(slope, rel=1e-6)


class Reads:
    """A function that reads what may change between two calls."""

    factor = 1.0

    def value(self, t, x):
        return self.factor * x[0, 0]

    def matrix(self, t):
        return self.factor * jnp.eye(3)


@pytest.mark.slow
def test_a_function_that_reads_what_has_changed_is_not_taken_from_the_cache():
    """Functions are known by what they are, not by what they read: they are traced anew."""
    reads = Reads()

    def kept(beta):
        system = af.SA(beta)
        return af.simulate(system, X0, [0.0, 0.5], method=af.Fixed(0.25), save=reads.value).xs.sum()

    def moved(beta):
        system = af.SA(beta, V=reads.matrix)
        return af.simulate(system, X0, [0.0, 0.5], method=af.Fixed(0.25)).final[0, 0]

    for f in (kept, moved):
        reads.factor = 1.0
        first = jax.grad(f)(2.0)
        reads.factor = 2.0
        second = jax.grad(f)(2.0)
        assert abs(second - first) > 1e-3 * abs(first)
    reads.factor = 1.0
    alone = jax.grad(kept)(1.0)

    def both(w):
        reads.factor = w
        return kept(w)

    at_one = af.simulate(af.SA(1.0), X0, [0.0, 0.5], method=af.Fixed(0.25)).xs[:, 0, 0].sum()
    assert float(jax.grad(both)(1.0)) == pytest.approx(float(alone + at_one), rel=1e-12)


def test_what_may_read_something_else_is_told_from_what_cannot():
    class Mine(eqx.Module):
        def __call__(self, t, x):
            return x.sum()

    assert not holds_functions((af.SA(1.0, V=V0), TIGHT, partial(af.weights.ginibre, d=3)))
    assert not holds_functions(
        af.SA(1.0, V=af.weights.Redrawn(partial(af.weights.ginibre, d=3), every=1.0, key=0))
    )
    for own in (Mine(), Reads().value, partial(Reads().value, 0.0), lambda t: t, {"a": [print]}):
        assert holds_functions((af.SA(1.0), own))
