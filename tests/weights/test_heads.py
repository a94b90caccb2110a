import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnflow.errors import InputError
from attnflow.weights import Heads, Redrawn, apply

H, K, D = 4, 2, 3
eye = jnp.eye(D)


def normal(*shape, key=0):
    return np.random.default_rng(key).normal(size=shape)


@pytest.mark.parametrize("batch", [(), (5,), (2, 5)])
def test_apply_multiplies_each_token(batch):
    x = normal(*batch, D)
    W = normal(K, D, key=1)
    assert apply(None, jnp.asarray(x)).shape == x.shape
    np.testing.assert_allclose(apply(jnp.array(-2.0), jnp.asarray(x)), -2 * x)
    np.testing.assert_allclose(
        apply(jnp.asarray(W), jnp.asarray(x)), np.einsum("kd,...d->...k", W, x), rtol=1e-13
    )


def test_apply_of_nothing_does_nothing():
    assert apply(None, eye) is eye


@pytest.mark.parametrize(
    ("weights", "count", "dim"),
    [
        ({}, None, None),
        ({"V": -1.0}, None, None),
        ({"V": 2}, None, None),
        ({"V": eye}, None, D),
        ({"Q": np.ones((K, D)), "K": np.ones((K, D))}, None, D),
        ({"Q": np.ones((H, K, D)), "K": np.ones((K, D)), "V": 1.0}, H, D),
        ({"V": np.ones((H, D, D))}, H, D),
        ({"V": lambda t: t * eye}, None, D),
        ({"V": lambda t: jnp.sin(t)}, None, None),
        ({"K": lambda t: jnp.ones((H, D, D)), "Q": eye}, H, D),
    ],
)
def test_count_and_dim_come_from_the_matrices(weights, count, dim):
    heads = Heads(**weights)
    assert heads.count == count
    assert heads.dim == dim


@pytest.mark.parametrize("V", [2, np.eye(2, dtype=int), np.eye(2, dtype=np.uint8), jnp.eye(2)])
def test_integers_become_floats(V):
    assert Heads(V=V).V.dtype == np.float64


def test_floats_keep_their_precision():
    assert Heads(V=np.eye(2, dtype=np.float32)).V.dtype == np.float32


def test_breaks_are_the_periods_of_redrawn_weights():
    jumps = Redrawn(lambda key: eye, every=0.5, key=0)
    assert Heads(Q=jumps, V=Redrawn(lambda key: eye, every=2, key=1)).breaks.periods == (0.5, 2.0)
    assert not Heads(Q=eye, V=lambda t: t * eye).breaks


def test_at_a_time_all_are_arrays_of_the_dtype():
    heads = Heads(K=lambda t: t * eye, V=2).at(3.0, jnp.float32)
    assert heads.Q is None
    np.testing.assert_array_equal(heads.K, 3 * np.eye(D))
    assert heads.K.dtype == heads.V.dtype == jnp.float32
    assert heads.V == 2


def test_at_takes_the_same_weight_twice():
    W = jnp.asarray(normal(D, D))
    heads = Heads(Q=W, K=W, V=W).at(0.0, float)
    np.testing.assert_array_equal(heads.Q, heads.K)
    turning = Redrawn(lambda key: jax.random.normal(key, (D, D)), every=1.0, key=0)
    heads = Heads(Q=turning, K=turning).at(2.5, float)
    np.testing.assert_array_equal(heads.Q, turning(2.0))
    np.testing.assert_array_equal(heads.K, turning(2.0))


def test_at_is_traceable_in_time():
    heads = Heads(V=lambda t: t * eye)
    slope = jax.jacfwd(lambda t: heads.at(t, float).V)(2.0)
    np.testing.assert_array_equal(slope, np.eye(D))


def test_weights_are_array_leaves():
    leaves = jax.tree.leaves(eqx.filter(Heads(Q=eye, V=-1.0), eqx.is_array))
    assert [leaf.shape for leaf in leaves] == [(D, D), ()]


def test_a_single_head_has_no_axis():
    heads = Heads(V=eye)
    assert heads.each(lambda head: head.V).shape == (D, D)
    assert heads.sum(lambda head: head.V).shape == (D, D)


@given(
    key=st.integers(0, 2**32 - 1),
    q=st.sampled_from([(), (K, D), (H, K, D)]),
    v=st.sampled_from([None, (), (D, D), (H, D, D)]),
)
@settings(deadline=None, max_examples=6, derandomize=True)
def test_each_head_sees_its_own_matrices(key, q, v):
    x = jnp.asarray(normal(5, D, key=key))
    Q, V = normal(*q, key=key), None if v is None else normal(*v, key=key + 1)
    Kh = normal(H, *(q[-2:] or (D, D)), key=key + 2)

    def f(head):
        return apply(head.V, apply(head.Q, x) @ apply(head.K, x).T @ x)

    def matrix(W, h):
        W = np.eye(D) if W is None else W
        return W * np.eye(D) if W.ndim == 0 else (W[h] if W.ndim == 3 else W)

    heads = Heads(Q=Q, K=Kh, V=V)
    want = [(x @ matrix(Q, h).T) @ (x @ Kh[h].T).T @ x @ matrix(V, h).T for h in range(H)]
    np.testing.assert_allclose(heads.each(f), want, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(heads.sum(f), np.sum(want, axis=0), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ["Q", "K", "V"])
@pytest.mark.parametrize("shape", [(D,), (1, 1, D, D)])
def test_a_weight_is_a_number_a_matrix_or_a_stack(name, shape):
    with pytest.raises(InputError, match=f"{name} must be a number, a matrix or a stack"):
        Heads(**{name: np.ones(shape)})


@pytest.mark.parametrize("name", ["Q", "K", "V"])
@pytest.mark.parametrize("bad", [np.nan, np.array([[1.0, np.inf], [0.0, 1.0]])])
def test_weights_are_finite(name, bad):
    with pytest.raises(InputError, match=f"{name} must be finite"):
        Heads(**{name: bad})


@pytest.mark.parametrize("name", ["Q", "K", "V"])
@pytest.mark.parametrize(
    "bad",
    [1j, True, *(eye(2, dtype=t) for eye in (np.eye, jnp.eye) for t in (complex, bool))],
)
def test_weights_are_real(name, bad):
    with pytest.raises(InputError, match=f"{name} must be made of real numbers"):
        Heads(**{name: bad})


@pytest.mark.parametrize("bad", ["identity", [[1.0], [1.0, 2.0]], {}], ids=repr)
def test_weights_are_numbers(bad, untyped):
    with pytest.raises(InputError, match="V must be made of real numbers"):
        Heads(V=bad)


@pytest.mark.parametrize("value", [None, True, 1j, [1.0, 2.0]], ids=repr)
def test_a_function_of_time_returns_a_real_array(value):
    with pytest.raises(InputError, match=r"V\(t\) must be a number or real matrices"):
        Heads(V=lambda t: value)


def test_columns_agree():
    with pytest.raises(InputError, match=r"Q, K and V .* columns.*: Q has 3, K has 3, V has 2"):
        Heads(Q=np.ones((K, D)), K=np.ones((K, D)), V=np.eye(2))


def test_heights_of_q_and_k_agree():
    with pytest.raises(InputError, match=r"Q and K .* same height, but Q has 2 rows and K has 4"):
        Heads(Q=np.ones((2, D)), K=np.ones((4, D)))


@pytest.mark.parametrize(("given", "missing"), [("Q", "K"), ("K", "Q")])
def test_an_identity_beside_a_rectangle_is_pointed_out(given, missing):
    with pytest.raises(InputError, match=rf"same height.*\({missing} is the identity\)"):
        Heads(**{given: np.ones((2, D))})


def test_a_schedule_is_checked_like_a_matrix():
    with pytest.raises(InputError, match=r"Q and K .* same height"):
        Heads(Q=lambda t: jnp.ones((2, D)), K=eye)


def test_v_is_square():
    with pytest.raises(InputError, match=r"V must be square .* \(2, 3\)"):
        Heads(V=np.ones((2, 3)))


def test_numbers_of_heads_agree():
    with pytest.raises(InputError, match="same number of heads: Q has 2, V has 4"):
        Heads(Q=np.ones((2, D, D)), V=np.ones((H, D, D)))
