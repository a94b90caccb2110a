import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnflow.errors import InputError
from attnflow.observe import dual_coordinates, eigenbasis

examples = settings(deadline=None, max_examples=20, derandomize=True)
keys = st.integers(0, 2**32 - 1)


def with_eigenvalues(diagonal, key=0):
    """A real matrix similar to the given (block) diagonal one, and the matrix of the change."""
    d = len(diagonal)
    S = np.random.default_rng(key).normal(size=(d, d)) + 2 * np.eye(d)
    return S @ diagonal @ np.linalg.inv(S), S


@given(key=keys, d=st.integers(1, 6))
@examples
def test_it_diagonalises(key, d):
    V = np.random.default_rng(key).normal(size=(d, d))
    basis = eigenbasis(V)
    rounding = 1e-12 * np.linalg.cond(basis.vectors)
    np.testing.assert_allclose(V @ basis.vectors, basis.vectors * basis.values, atol=1e-12)
    np.testing.assert_allclose(basis.dual @ basis.vectors, np.eye(d), atol=rounding)
    np.testing.assert_allclose(np.linalg.norm(basis.vectors, axis=0), 1)
    assert np.all(np.diff(np.abs(basis.values)) <= 1e-12)


def test_the_order_of_the_paper():
    """By modulus; among equal moduli by real part, then by imaginary part."""
    blocks = np.zeros((6, 6))
    blocks[:2, :2] = [[0, -1], [1, 0]]  # ±i
    blocks[2:5, 2:5] = np.diag([-1, 1, 0.5])
    blocks[5, 5] = -2
    V, _ = with_eigenvalues(blocks)
    np.testing.assert_allclose(eigenbasis(V).values, [-2, 1, 1j, -1j, -1, 0.5], atol=1e-12)


def test_rounding_makes_no_complex_numbers():
    """Equal real eigenvalues of a matrix that is not symmetric stay real, as do their vectors."""
    for key in range(30):
        V, S = with_eigenvalues(np.diag([1.0, 1, 1, 0.5, 0.5]), key)
        basis = eigenbasis(V)
        assert not np.iscomplexobj(basis.dual)
        np.testing.assert_allclose(basis.values, [1, 1, 1, 0.5, 0.5], rtol=1e-8)
        projection = S[:, :3] @ np.linalg.inv(S)[:3]
        np.testing.assert_allclose(
            basis.vectors[:, :3] @ basis.dual[:3], projection, atol=1e-5 * np.linalg.cond(S)
        )


def test_the_signs_do_not_depend_on_the_machine():
    np.testing.assert_allclose(eigenbasis(np.diag([1.0, -3.0])).vectors, np.eye(2)[::-1])
    turn = eigenbasis(np.array([[0.0, -1.0], [1.0, 0.0]]))
    np.testing.assert_allclose(turn.values, [1j, -1j])
    np.testing.assert_allclose(turn.vectors, np.sqrt(0.5) * np.array([[1, 1], [-1j, 1j]]))


@pytest.mark.parametrize("key", range(3))
@pytest.mark.parametrize("size", [2, 3])
def test_jordan_blocks_are_refused(key, size):
    block = np.eye(4) + np.diag([1.0] * (size - 1) + [0.0] * (4 - size), 1)
    with pytest.raises(InputError, match="V must be diagonalisable"):
        eigenbasis(with_eigenvalues(block, key)[0])


def test_coordinates_are_those_of_the_combination(rng):
    """z = Σ_k c_k φ_k has the coordinates c."""
    V, _ = with_eigenvalues(np.diag([3.0, -2.0, 1.0]))
    basis = eigenbasis(V)
    c = rng.normal(size=(2, 5, 3))
    z = np.einsum("tnk,dk->tnd", c, basis.vectors)
    np.testing.assert_allclose(dual_coordinates(z, V), c, atol=1e-12)
    np.testing.assert_allclose(dual_coordinates(z[0, :1], V), c[0, :1], atol=1e-12)


@given(key=keys)
@examples
def test_each_coordinate_is_multiplied_by_its_eigenvalue(key):
    rng = np.random.default_rng(key)
    V, z = rng.normal(size=(4, 4)), rng.normal(size=(3, 4))
    c = np.asarray(dual_coordinates(z, V))
    want = c * eigenbasis(V).values
    np.testing.assert_allclose(dual_coordinates(z @ V.T, V), want, atol=1e-9)


@pytest.mark.parametrize("V", [None, 2.0, -1, np.eye(2)])
def test_multiples_of_the_identity_keep_the_tokens(V):
    z = np.array([[1.0, 2.0], [3.0, -4.0]])
    np.testing.assert_array_equal(dual_coordinates(z, V), z)


def test_precision_and_jit():
    V = np.array([[0.0, -1.0], [1.0, 0.0]])
    z = jnp.eye(2, dtype=jnp.float32)
    assert dual_coordinates(z, V).dtype == jnp.complex64
    assert dual_coordinates(z, np.diag([1.0, 2.0])).dtype == jnp.float32
    assert dual_coordinates(np.eye(2, dtype=int), V).dtype == jnp.complex128
    zs = jnp.asarray(np.random.default_rng(0).normal(size=(3, 4, 2)))
    got = jax.jit(jax.vmap(lambda z: dual_coordinates(z, V)))(zs)
    np.testing.assert_allclose(got, dual_coordinates(zs, V), rtol=1e-14)


def test_bad_input(untyped):
    with pytest.raises(InputError, match=r"V must be square.*\(2, 3\)"):
        eigenbasis(np.ones((2, 3)))
    with pytest.raises(InputError, match="V must be finite"):
        eigenbasis(np.array([[np.nan]]))
    with pytest.raises(InputError, match="dimension 3, but V expects 2"):
        dual_coordinates(np.ones((4, 3)), np.eye(2))
    with pytest.raises(InputError, match="V must be known"):
        jax.jit(lambda V: dual_coordinates(jnp.eye(2), V))(jnp.eye(2))
