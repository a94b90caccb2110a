"""What holds for every system of the table: compiled, in batches, in both precisions, with masses.

Each is built from its example, so that none is left out.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from every_system import built

WITHOUT_MASSES = {"Vicsek", "MeanShift"}
UNMOVED = {"ResNet", "Hardmax", "CBO"}
"""Tokens that do not see each other, or follow a single one as long as nothing ties."""


every = pytest.mark.parametrize("name", af.SYSTEMS)


def layered(name):
    """The system, its start, and a function that makes a layer of step 0.01 from a state."""
    system, x = built(name)
    return system, x, lambda x, masses=None: system.layer(1, x, 0.01, masses)


@every
def test_compiled_and_in_a_batch_it_is_what_it_is(name):
    system, x, layer = layered(name)
    other = system.retract(0.9 * x + 0.1 * x[::-1])
    both = jax.jit(jax.vmap(layer))(jnp.stack([x, other]))
    assert np.abs(both[0] - x).max() > 1e-6, "it moves"
    for ours, start in zip(both, (x, other), strict=True):
        np.testing.assert_allclose(ours, layer(start), rtol=0, atol=1e-11)


@every
def test_precision_is_kept(name):
    """In single precision the layer is that of double precision, as far as it goes."""
    system, x, layer = layered(name)
    single = layer(x.astype(np.float32))
    assert single.dtype == np.float32
    assert system.positions(single).dtype == np.float32
    if not system.random:  # normal numbers of another precision are other numbers
        scale = 1 + float(jnp.abs(x).max())
        np.testing.assert_allclose(single, layer(x), rtol=0, atol=1e-3 * scale)


@pytest.mark.parametrize("name", sorted(af.SYSTEMS.keys() - WITHOUT_MASSES))
def test_masses_do_not_change_the_precision(name):
    _, x, layer = layered(name)
    assert layer(x.astype(np.float32), jnp.ones(len(x))).dtype == np.float32


@every
def test_a_heavy_token_pulls_more_or_masses_are_refused(name):
    _, x, layer = layered(name)
    masses = jnp.ones(len(x)).at[0].set(50.0)
    if name in WITHOUT_MASSES:
        with pytest.raises(af.InputError, match="masses"):
            layer(x, masses)
        return
    equal, heavy = layer(x, jnp.ones(len(x))), layer(x, masses)
    np.testing.assert_allclose(equal, layer(x), rtol=0, atol=1e-11)
    assert (np.abs(heavy - equal).max() > 1e-6) == (name not in UNMOVED)
