import builtins
import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow import checks
from attnflow.errors import InputError


def traced_sees(check):
    """Whether `check` passes a tracer of a bad value."""
    jax.jit(lambda value: check(value) or value)(jnp.array(jnp.nan))


def test_is_traced_only_inside_a_transformation():
    seen = []
    jax.jit(lambda v: seen.append(checks.is_traced({"a": [1.0, v]})) or v)(1.0)
    assert seen == [True]
    assert not checks.is_traced({"a": [1.0, jnp.ones(2)], "b": None})


@pytest.mark.parametrize("value", [None, 1, 2.5, [1.0, 2.0], np.ones((2, 3)), jnp.zeros(())])
def test_finite_values_pass(value):
    checks.require_finite(value, "x0")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_is_named(bad):
    with pytest.raises(InputError, match=r"^beta must be finite.* 1 NaN or infinite entry\.$"):
        checks.require_finite(bad, "beta")


def test_the_first_bad_entry_is_located():
    x = np.ones((4, 3))
    x[2, 1] = x[3, 0] = np.nan
    with pytest.raises(InputError, match=r"x0 must be finite.* 2 .* entries at index \(2, 1\)"):
        checks.require_finite(x, "x0")


@pytest.mark.parametrize("value", [1, 0.5, np.float32(2), jnp.array(3.0)])
def test_positive_values_pass(value):
    checks.require_positive(value, "dt")


@pytest.mark.parametrize("bad", [0, -1.0, np.nan, np.inf, "1", True, None, np.array([1.0, 0.0])])
def test_what_is_not_positive_is_named(bad):
    with pytest.raises(InputError, match="dt must be a finite number above 0"):
        checks.require_positive(bad, "dt")


@pytest.mark.parametrize("value", [3, np.int32(3), np.uint8(3)])
def test_a_count_comes_back_as_an_int(value):
    count = checks.require_count(value, "n")
    assert type(count) is int
    assert count == 3


@pytest.mark.parametrize("bad", [0, -2, 2.0, True, "3", None, np.float64(3)])
def test_what_is_not_a_count_is_named(bad):
    with pytest.raises(InputError, match="n must be a whole number of at least 1, not"):
        checks.require_count(bad, "n")


def test_a_count_has_a_least_value():
    assert checks.require_count(0, "k", least=0) == 0
    with pytest.raises(InputError, match="k must be a whole number of at least 2"):
        checks.require_count(1, "k", least=2)


@pytest.mark.parametrize(
    "check",
    [
        lambda v: checks.require_finite(v, "v"),
        lambda v: checks.require_positive(v, "v"),
    ],
)
def test_traced_values_pass_unseen(check):
    traced_sees(check)
    with pytest.raises(InputError, match="v must be"):
        check(jnp.nan)


def test_integers_become_floats_and_floats_keep_their_precision():
    assert checks.as_floats([1, 2]).dtype == float
    assert checks.as_floats(np.ones(2, np.float32)).dtype == np.float32
    assert checks.as_floats(0.1).dtype == float


@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 2), (0, 2), (2, 0)])
def test_a_state_is_a_matrix(shape):
    with pytest.raises(InputError, match=r"x must have shape \(n, d\)"):
        checks.require_state(np.ones(shape))


@pytest.mark.parametrize("shape", [(), (1,), (4,), (3, 1)])
def test_a_state_has_one_mass_for_each_token(shape):
    checks.require_state(np.ones((3, 2)), np.ones(3))
    with pytest.raises(InputError, match=r"masses must have shape \(3,\)"):
        checks.require_state(np.ones((3, 2)), np.ones(shape))


def test_available_memory_is_less_than_all_of_it():
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < checks.available_memory() <= physical


def test_available_memory_without_meminfo(monkeypatch):
    def refuse(*_):
        raise OSError

    monkeypatch.setattr(builtins, "open", refuse)
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 8, "SC_PAGE_SIZE": 4096}.__getitem__)
    assert checks.available_memory() == 8 * 4096
    monkeypatch.setattr(os, "sysconf", refuse)
    assert checks.available_memory() is None


def test_memory_that_does_not_fit_is_refused_with_numbers(monkeypatch):
    monkeypatch.setattr(checks, "available_memory", lambda: 2 * 2**30)
    checks.require_memory(2 * 2**30, "this run", "take fewer tokens")
    with pytest.raises(
        InputError, match=r"this run would need about 3\.5 GiB.* 2\.0 GiB .*: take fewer tokens\."
    ):
        checks.require_memory(3.5 * 2**30, "this run", "take fewer tokens")


def test_memory_is_not_refused_where_nothing_is_known(monkeypatch):
    monkeypatch.setattr(checks, "available_memory", lambda: None)
    checks.require_memory(10**30, "this run", "take fewer tokens")


@pytest.mark.parametrize("bad", [10**400, [1.0], {}, "a", None, True])
def test_what_is_no_number_is_refused(bad, untyped):
    with pytest.raises(InputError, match=r"^beta must be a"):
        checks.as_number(bad, "beta")


def test_a_whole_number_of_any_size_is_a_number():
    assert float(checks.as_number(2**64, "beta")) == 2.0**64


@pytest.mark.parametrize("bad", [[0.5], [[1.0], 2.0], {}, "a", 10**400, np.ones(1), 0, np.nan])
def test_only_a_single_positive_number_is_positive(bad, untyped):
    with pytest.raises(InputError, match=r"^dt must be a finite number above 0"):
        checks.require_positive(bad, "dt")


def test_a_count_fits_into_64_bits():
    assert checks.require_count(2**63 - 1, "n") == 2**63 - 1
    with pytest.raises(InputError, match=r"n must be a whole number below 2\^63"):
        checks.require_count(2**63, "n")


@pytest.mark.parametrize(
    "value", [2, 2.5, True, [1, 2], [[1.0], [2.5]], np.float32(2), np.ones((2, 3)), jnp.ones(2)]
)
def test_arrays_are_those_of_jax(value):
    ours, theirs = checks.as_array(value), jnp.asarray(value)
    np.testing.assert_array_equal(ours, theirs)
    assert (ours.dtype, ours.weak_type) == (theirs.dtype, theirs.weak_type)


def test_an_array_does_not_follow_what_it_was_made_of():
    value = np.ones(1000)
    array = checks.as_array(value)
    value[:] = 2
    assert np.all(np.asarray(array) == 1)


def test_numbers_are_taken_without_a_program(programs):
    jax.clear_caches()
    checks.as_number(3, "beta")
    checks.as_floats([[1, 2], [3, 4]])
    checks.as_floats(np.ones((2, 5), np.float32))
    assert programs == []


def test_what_is_done_on_the_host_stays_where_it_was():
    device = jax.devices()[-1]
    x = jax.device_put(np.ones(3), device)
    doubled = checks.on_host(lambda x: 2 * x, x)
    assert doubled.committed
    assert doubled.devices() == {device}
    assert not checks.on_host(lambda x: 2 * x, jnp.ones(3)).committed


def test_types_that_numpy_does_not_know_stay_with_jax():
    assert checks.on_host(lambda x: 0.5 * x, jnp.ones(3, jnp.bfloat16)).dtype == jnp.bfloat16


def test_a_masked_array_is_no_array_of_numbers():
    x = np.ma.array([[1.0, 0.0], [0.6, 0.8]], mask=[[True, False], [False, False]])
    with pytest.raises(af.InputError, match="x0 must be an array of tokens"):
        af.simulate(af.SA(1.0), x, [0.0, 1.0])


def test_arrays_of_other_machines_are_converted(untyped):
    D = np.array([1.0, 2.0], dtype=">f8")
    assert np.array_equal(af.spaces.Ellipsoid(D).D, [1.0, 2.0])


def test_integers_that_do_not_fit_are_refused():
    with jax.enable_x64(False), pytest.raises(OverflowError, match="int32"):
        checks.as_array([[2**40, 1]])


def test_a_number_that_changes_later_changes_nothing():
    dt = np.array(0.5)
    method = af.Fixed(dt)
    dt[...] = 7.0
    assert float(method.dt) == 0.5
