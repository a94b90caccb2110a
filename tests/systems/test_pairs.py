"""Systems that sum over pairs: many tokens go in blocks, and memory does not grow like n²."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.systems import Map, kernels

SYSTEMS = {
    "AngularSA": (af.AngularSA(4.0), 1),
    "AngularUSA": (af.AngularUSA(2.0), 1),
    "CircleCoupling": (af.CircleCoupling(jnp.sin, 1.0), 1),
    "Hardmax": (af.Hardmax(), 2),
    "Aggregation": (af.Aggregation("morse"), 2),
    "Krause": (af.Krause("cauchy"), 2),
    "HegselmannKrause": (af.HegselmannKrause(1.0), 2),
    "MeanShift": (af.MeanShift(1.0), 2),
    "MeanShift with data": (af.MeanShift(1.0, data=np.eye(2), kernel="flat"), 2),
    "CuckerSmale": (af.CuckerSmale(), 4),
    "Vicsek": (af.Vicsek(0.3).with_key(jax.random.key(0)), 3),
}
each_system = pytest.mark.parametrize("name", SYSTEMS)


def moved(system, x):
    return system.layer(1, x, 1.0) if isinstance(system, Map) else system.velocity(0.0, x)


@each_system
def test_blocks_give_what_all_pairs_at_once_give(name, rng, monkeypatch):
    """Of 23 tokens in blocks of 5 the last one is not full."""
    system, columns = SYSTEMS[name]
    x = jnp.asarray(2 * rng.normal(size=(23, columns)))

    def gradient(x):
        return jax.grad(lambda x: jnp.sum(moved(system, x) ** 2))(x)

    whole, slope = moved(system, x), gradient(x)
    monkeypatch.setattr(kernels, "MAX_UNBLOCKED", 22)
    monkeypatch.setattr(kernels, "BLOCK_ROWS", 5)
    np.testing.assert_allclose(moved(system, x), whole, rtol=0, atol=1e-14)
    np.testing.assert_allclose(gradient(x), slope, rtol=0, atol=1e-12)


@each_system
@pytest.mark.parametrize("of", ["tokens", "gradient"])
def test_memory_grows_like_n(name, of):
    """All pairs of 20,000 tokens are 3.2 GB for every number that a pair has."""
    system, columns = SYSTEMS[name]
    fn = {
        "tokens": lambda x: moved(system, x),
        "gradient": jax.grad(lambda x: jnp.sum(moved(system, x) ** 2)),
    }[of]
    compiled = jax.jit(fn).lower(jnp.zeros((20_000, columns))).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 1e9
    assert system.cost(20_000).held <= 20_000 * 256
