import jax
import numpy as np
import pytest

from attnflow.errors import InputError
from attnflow.randomness import as_key


@pytest.mark.parametrize("key", [3, np.int64(3), 0, -1, 2**31, 2**40 + 3, 2**63 - 1, -(2**63)])
def test_an_integer_stands_for_its_key(key):
    assert as_key(key) == jax.random.key(int(key))
    with jax.enable_x64(False):
        assert as_key(key) == jax.random.key(int(key))


def test_an_integer_stands_for_its_key_of_any_generator():
    with jax.default_prng_impl("rbg"):
        assert as_key(3) == jax.random.key(3)


@pytest.mark.parametrize("key", [jax.random.key(3), jax.random.PRNGKey(3)])
def test_a_key_is_itself(key):
    assert as_key(key) is key


@pytest.mark.parametrize("key", [jax.random.split(jax.random.key(3)), jax.numpy.zeros(2)])
def test_an_array_that_is_no_key_is_refused(key, untyped):
    with pytest.raises(InputError, match=r"key must be an integer or a jax.random key"):
        as_key(key)


@pytest.mark.parametrize("key", [None, True, 1.0, "0"])
def test_a_key_is_an_integer(key, untyped):
    with pytest.raises(InputError, match="key must be an integer"):
        as_key(key)


@pytest.mark.parametrize("key", [2**63, -(2**63) - 1, 10**400])
def test_a_key_has_64_bits(key, untyped):
    with pytest.raises(InputError, match="key must be an integer of 64 bits"):
        as_key(key)
    assert as_key(2**63 - 1).shape == as_key(-(2**63)).shape == ()
