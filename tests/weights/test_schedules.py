from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnflow.errors import InputError
from attnflow.weights import Redrawn, ginibre, graphs
from attnflow.weights.breaks import rounding

draw = partial(ginibre, 2)


def same(a, b):
    return bool(jnp.all(a == b))


def test_each_period_has_its_own_draw():
    V = Redrawn(draw, every=0.5, key=0)
    for period in (0, 1, 7, -1):
        folded = jax.random.fold_in(jax.random.key(0), jnp.int32(period))
        assert same(V(0.5 * period + 0.2), draw(key=folded))


def test_constant_within_a_period_and_new_in_the_next():
    V = Redrawn(draw, every=0.5, key=0)
    assert same(V(0.0), V(0.4999))
    assert not same(V(0.4999), V(0.5))
    assert same(V(0.5), V(0.9999))


@pytest.mark.parametrize("as_time", [float, np.float64, np.float32, jnp.float64, jnp.float32])
def test_times_of_every_kind_agree(as_time):
    V = Redrawn(draw, every=0.5, key=0)
    assert same(V(as_time(1.25)), V(1.25))
    assert not same(V(as_time(1.25)), V(as_time(1.75)))


def test_whole_numbers_are_times():
    V = Redrawn(draw, every=1, key=0)
    assert V.every == 1.0
    assert same(V(3), V(3.5))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_sum_of_steps_reaches_the_multiple(dtype):
    V = Redrawn(draw, every=0.3, key=0)
    t = dtype(0)
    for k in range(1, 31):
        t = dtype(t + dtype(0.1))
        if k % 3 == 0:
            assert same(V(t), V(dtype(0.1 * k + 0.05)))


@pytest.mark.parametrize(("dtype", "part"), [(np.float64, 1e-10), (np.float32, 1e-4)])
def test_rounding_is_a_small_part_of_a_period(dtype, part):
    assert rounding(np.dtype(dtype)) == part
    V = Redrawn(draw, every=1.0, key=0)
    assert same(V(dtype(1 - part / 2)), V(dtype(1)))
    assert not same(V(dtype(1 - part * 2)), V(dtype(1)))


def test_late_times_do_not_lose_their_period():
    V = Redrawn(draw, every=1.0, key=0)
    assert not same(V(2.0**25), V(2.0**25 + 1))


def test_traceable_in_time():
    V = Redrawn(draw, every=0.5, key=0)
    ts = jnp.array([0.1, 0.4, 0.6])
    a, b, c = jax.vmap(V)(ts)
    assert same(a, b)
    assert not same(b, c)
    assert same(c, V(0.6))


def test_the_same_key_is_the_same_sequence():
    V = Redrawn(draw, every=0.5, key=4)
    assert same(V(3.0), Redrawn(draw, every=0.5, key=jax.random.key(4))(3.0))
    assert not same(V(3.0), Redrawn(draw, every=0.5, key=5)(3.0))


@pytest.mark.parametrize(
    "make",
    [
        lambda **key: Redrawn(draw, every=0.5, **key),
        lambda **key: graphs.erdos_renyi(5, 0.5, **key),
    ],
)
def test_what_draws_asks_for_a_key(make):
    with pytest.raises(TypeError, match="'key'"):
        make()
    with pytest.raises(InputError, match=r"key must be an integer or a jax\.random key"):
        make(key=True)
    with pytest.raises(TypeError, match="'seed' any more: it is called 'key' now"):
        make(seed=0)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_a_period_is_positive(bad):
    with pytest.raises(InputError, match="every must be a finite number above 0"):
        Redrawn(draw, every=float(bad), key=0)
