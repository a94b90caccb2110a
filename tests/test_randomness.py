import jax
import numpy as np
import pytest

from attnflow.errors import InputError
from attnflow.randomness import as_key


@pytest.mark.parametrize("seed", [3, np.int64(3)])
def test_a_seed_is_the_key_of_that_seed(seed):
    assert as_key(seed, None) == jax.random.key(3)


@pytest.mark.parametrize("key", [jax.random.key(3), jax.random.PRNGKey(3)])
def test_a_key_is_itself(key):
    assert as_key(None, key) is key


def test_exactly_one_of_seed_and_key():
    with pytest.raises(InputError, match=r"exactly one of seed .* and key"):
        as_key(None, None)
    with pytest.raises(InputError, match=r"exactly one of seed .* and key"):
        as_key(0, jax.random.key(0))


@pytest.mark.parametrize("seed", [True, 1.0, "0"])
def test_a_seed_is_an_integer(seed, untyped):
    with pytest.raises(InputError, match="seed must be an integer"):
        as_key(seed, None)


@pytest.mark.parametrize("seed", [2**63, -(2**63) - 1, 10**400])
def test_a_seed_has_64_bits(seed, untyped):
    with pytest.raises(InputError, match="seed must be an integer of 64 bits"):
        as_key(seed, None)
    assert as_key(2**63 - 1, None).shape == as_key(-(2**63), None).shape == ()
