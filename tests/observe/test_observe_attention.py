import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm

import attnflow as af
import reference
from attnflow.errors import InputError
from attnflow.observe import attention
from attnflow.spaces import Euclidean, Space
from attnflow.systems import System

examples = settings(deadline=None, max_examples=6, derandomize=True)
keys = st.integers(0, 2**32 - 1)
eye = np.eye(3)


def tokens(key, n=5):
    return np.asarray(af.initial.normalise(np.random.default_rng(key).normal(size=(n, 3))))


@pytest.mark.parametrize(("System", "normalised"), [(af.SA, True), (af.USA, False)])
@given(key=keys, beta=st.floats(0, 5), weighted=st.booleans(), causal=st.booleans())
@examples
def test_weights_are_those_of_the_reference(System, normalised, key, beta, weighted, causal):
    rng = np.random.default_rng(key)
    x, Q, K = tokens(key), rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
    masses = rng.uniform(0.1, 5, size=5) if weighted else None
    system = System(beta, Q=Q, K=K, mask="causal" if causal else None)
    mask = np.tri(5, dtype=bool) if causal else None
    want = reference.attention_matrix(x, Q, K, beta, masses, mask, normalised)
    np.testing.assert_allclose(attention(system, x, masses=masses), want, rtol=1e-12)


def test_rows_are_stochastic():
    P = attention(af.SA(beta=4.0), tokens(0))
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-14)


def test_one_matrix_for_each_head(rng):
    x, Q = tokens(0), rng.normal(size=(4, 3, 3))
    P = attention(af.PureAttention(Q=Q), x)
    assert P.shape == (4, 5, 5)
    for h in range(4):
        np.testing.assert_allclose(P[h], reference.attention_matrix(x, Q[h], eye, 1.0), rtol=1e-12)


def test_they_multiply_the_values(rng):
    x, V = tokens(0), rng.normal(size=(3, 3))
    system = af.PureAttention(V=V)
    np.testing.assert_allclose(
        attention(system, x) @ x @ V.T, system.velocity(0.0, jnp.asarray(x)), rtol=1e-12
    )


def test_weights_at_a_time():
    x = tokens(0)
    system = af.SA(beta=1.0, Q=lambda t: t * jnp.eye(3))
    for t in (0.0, 2.0):
        want = reference.attention_matrix(x, t * eye, eye, 1.0)
        np.testing.assert_allclose(attention(system, x, t), want, rtol=1e-13)


def test_rescaled_tokens_attend_as_the_tokens_they_stand_for(rng):
    V = rng.normal(size=(3, 3))
    z = tokens(0)
    want = reference.attention_matrix(z @ expm(0.7 * V).T, eye, eye, 1.0)
    got = attention(af.RescaledAttention(V=V), z, 0.7)
    np.testing.assert_allclose(got, want, rtol=1e-10)


def test_whole_numbers_are_tokens():
    x = np.array([[1, 0], [0, 1]])
    want = reference.attention_matrix(x, np.eye(2), np.eye(2), 0.5)
    np.testing.assert_allclose(attention(af.SA(beta=0.5), x), want, rtol=1e-14)


def test_float32_stays_float32():
    x = jnp.eye(3, dtype=jnp.float32)
    assert attention(af.SA(beta=1.0), x, masses=np.ones(3)).dtype == jnp.float32


def test_jit_and_vmap():
    system = af.SA(beta=2.0)
    xs = jnp.stack([jnp.asarray(tokens(s)) for s in range(3)])
    got = jax.jit(jax.vmap(lambda x: attention(system, x)))(xs)
    np.testing.assert_allclose(got[1], attention(system, xs[1]), rtol=1e-13)


class Still(System):
    space: Space = Euclidean()

    def velocity(self, t, x, masses=None):
        return jnp.zeros_like(x)


def test_a_system_without_attention_says_so():
    with pytest.raises(InputError, match="Still has no attention matrix"):
        attention(Still(), eye)


@pytest.mark.parametrize("shape", [(3,), (2, 3, 3)])
def test_tokens_are_a_matrix(shape, untyped):
    with pytest.raises(InputError, match=r"x must have shape \(n, d\)"):
        attention(af.SA(beta=1.0), np.ones(shape))


def test_masses_are_as_many_as_tokens(untyped):
    with pytest.raises(InputError, match=r"masses must have shape \(3,\)"):
        attention(af.SA(beta=1.0), eye, masses=np.ones(2))
