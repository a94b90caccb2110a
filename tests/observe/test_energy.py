import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import attnflow as af
from attnflow.errors import InputError
from attnflow.observe import energy
from attnflow.observe.energy import BLOCK

examples = settings(deadline=None, max_examples=6, derandomize=True)
keys = st.integers(0, 2**32 - 1)
betas = st.floats(-5, 5).filter(lambda b: b == 0 or abs(b) > 1e-3)


def tokens(key, n=5, d=3):
    x = np.random.default_rng(key).normal(size=(n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def double_sum(x, beta, m):
    total = 0.0
    for i in range(len(x)):
        for j in range(len(x)):
            s = np.dot(x[i], x[j])
            total += m[i] * m[j] * (s / 2 if beta == 0 else np.exp(beta * s) / (2 * beta))
    return total / np.sum(m) ** 2


@given(key=keys, beta=betas, weighted=st.booleans())
@examples
def test_energy_is_the_double_sum(key, beta, weighted):
    x = tokens(key)
    m = np.random.default_rng(key).uniform(0.1, 5, size=5)
    got = energy(x, beta, m if weighted else None)
    want = double_sum(x, beta, m if weighted else np.ones(5))
    # at β = 0 the sum is |Σ m x|²: it may cancel
    assert float(got) == pytest.approx(want, rel=1e-13, abs=1e-14)


@pytest.mark.parametrize("n", [BLOCK - 1, BLOCK, BLOCK + 45])
def test_energy_of_more_than_a_block(n):
    x = tokens(0, n)
    s = x @ x.T
    assert float(energy(x, 3.0)) == pytest.approx(np.exp(3 * s).mean() / 6, rel=1e-13)


def test_zero_is_the_limit_without_its_constant():
    x = tokens(0)
    gaps = [float(energy(x, b)) - 1 / (2 * b) - float(energy(x, 0.0)) for b in (1e-3, 1e-4)]
    assert abs(gaps[1]) < 1e-4
    assert gaps[0] / gaps[1] == pytest.approx(10, rel=0.01)


@pytest.mark.parametrize("beta", [0, 2])
def test_whole_numbers_are_temperatures_tokens_and_masses(beta):
    x = np.array([[1, 0], [0, 1], [-1, 0]])
    m = np.array([1, 2, 1])
    assert float(energy(x, beta, m)) == pytest.approx(double_sum(x, beta, m), rel=1e-14)
    assert float(energy(x, 0.5)) == pytest.approx(double_sum(x, 0.5, np.ones(3)), rel=1e-14)


@given(key=keys, beta=betas)
@examples
def test_a_mass_is_a_repeated_token(key, beta):
    x, times = tokens(key, 4), np.array([1, 3, 2, 2])
    split = float(energy(np.repeat(x, times, axis=0), beta))
    assert float(energy(x, beta, times)) == pytest.approx(split, rel=1e-12, abs=1e-14)


@given(key=keys, beta=betas)
@examples
def test_order_rotation_and_scale_of_masses_do_not_matter(key, beta):
    rng = np.random.default_rng(key)
    x, m, p = tokens(key), rng.uniform(0.1, 5, size=5), rng.permutation(5)
    O = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    moved = float(energy(x[p] @ O, beta, 7 * m[p]))
    assert float(energy(x, beta, m)) == pytest.approx(moved, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("beta", [1.0, 4.0])
def test_one_cluster_has_the_most_energy(beta):
    most = np.exp(beta) / (2 * beta)
    assert float(energy(np.tile([1.0, 0.0], (5, 1)), beta)) == pytest.approx(most, rel=1e-14)
    assert float(energy(tokens(0), beta)) < most


@pytest.mark.parametrize("beta", [0.0, 1.5])
def test_usa_climbs_the_energy(beta):
    x = jnp.asarray(tokens(0))
    uphill = 5 * jax.grad(energy)(x, beta)
    system = af.USA(beta=beta)
    np.testing.assert_allclose(
        system.space.project(x, uphill), system.velocity(0.0, x), rtol=1e-12, atol=1e-14
    )


def test_jit_and_vmap():
    x = jnp.asarray(tokens(0))
    betas = jnp.array([0.0, 1.0, 3.0])
    got = jax.jit(jax.vmap(energy, in_axes=(None, 0)))(x, betas)
    np.testing.assert_allclose(got, [energy(x, float(b)) for b in betas], rtol=1e-14)


def test_a_second_call_compiles_nothing(caplog):
    energy(tokens(0), 1.0)
    with jax.log_compiles():
        energy(tokens(1), 2.0)
    assert "Compiling" not in caplog.text


@pytest.mark.parametrize("beta", [0, 0.0, 2.0])
def test_float32_stays_float32(beta):
    assert energy(jnp.eye(3, dtype=jnp.float32), beta, np.ones(3)).dtype == jnp.float32


@pytest.mark.parametrize("shape", [(3,), (2, 3, 3)])
def test_tokens_are_a_matrix(shape, untyped):
    with pytest.raises(InputError, match=r"x must have shape \(n, d\)"):
        energy(np.ones(shape), 1.0)


def test_masses_are_as_many_as_tokens(untyped):
    with pytest.raises(InputError, match=r"masses must have shape \(3,\)"):
        energy(np.eye(3), 1.0, np.ones(1))
