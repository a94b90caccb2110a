import jax.numpy as jnp
import numpy as np
import pytest

from attnflow.observe import overlaps


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
def test_overlaps_are_inner_products(batch, rng):
    x = rng.normal(size=(*batch, 4, 3))
    got = overlaps(x)
    assert got.shape == (*batch, 4, 4)
    for i in range(4):
        for j in range(4):
            want = (x[..., i, :] * x[..., j, :]).sum(axis=-1)
            np.testing.assert_allclose(got[..., i, j], want, rtol=1e-12, atol=1e-14)


def test_overlaps_of_orthonormal_tokens():
    np.testing.assert_array_equal(overlaps(jnp.eye(3)), np.eye(3))


def test_float32_stays_float32():
    assert overlaps(jnp.eye(3, dtype=jnp.float32)).dtype == jnp.float32
