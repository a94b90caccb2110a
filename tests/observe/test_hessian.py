import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InputError
from attnflow.observe import energy, gradient, hessian, jacobian, saddle_index
from attnflow.observe.tangent import tangent_bases

MASSES = np.array([1.0, 3.0, 0.5, 2.0])


def tokens(key=0, n=4, d=3):
    return np.asarray(af.initial.sphere(n=n, d=d, key=key))


def plain_energy(x, beta, m):
    s = x @ x.T
    value = s / 2 if beta == 0 else np.exp(beta * s) / (2 * beta)
    return m @ value @ m / m.sum() ** 2


def along_geodesics(x, u, s):
    """Every token moved by s along the great circle of its tangent vector."""
    speed = np.linalg.norm(u, axis=1, keepdims=True)
    safe = np.where(speed > 0, speed, 1)
    return np.cos(s * speed) * x + np.sin(s * speed) * u / safe


def second_difference(f, h=1e-3):
    """f''(0) to O(h⁴)."""
    return (-f(2 * h) + 16 * f(h) - 30 * f(0) + 16 * f(-h) - f(-2 * h)) / (12 * h**2)


def plain_hessian(x, beta, m):
    """By polarisation of second differences along geodesics, in the same bases."""
    B = np.asarray(tangent_bases(af.spaces.Sphere(), jnp.asarray(x)))
    size = len(x) * (x.shape[1] - 1)

    def form(c):
        u = np.einsum("ida,ia->id", B, c.reshape(len(x), -1))
        return second_difference(lambda s: plain_energy(along_geodesics(x, u, s), beta, m))

    e = np.eye(size)
    return np.array([[(form(a + b) - form(a - b)) / 4 for b in e] for a in e])


@pytest.mark.parametrize("beta", [0.0, 1.5, -1.0])
@pytest.mark.parametrize("masses", [None, MASSES])
def test_second_derivatives_along_geodesics(beta, masses):
    x = tokens()
    want = plain_hessian(x, beta, np.ones(4) if masses is None else masses)
    np.testing.assert_allclose(hessian(x, beta, masses), want, atol=1e-8)


def test_on_the_circle_it_is_the_hessian_in_the_angles():
    theta, beta, e = np.array([0.1, 2.0, 3.5, 5.9]), 2.0, np.eye(4)

    def at(theta):
        x = np.stack([np.cos(theta), np.sin(theta)], axis=1)
        return plain_energy(x, beta, np.ones(4))

    def form(c):
        return second_difference(lambda s: at(theta + s * c))

    want = [[(form(a + b) - form(a - b)) / 4 for b in e] for a in e]
    x = np.stack([np.cos(theta), np.sin(theta)], axis=1)
    np.testing.assert_allclose(hessian(x, beta), want, atol=1e-8)
    slopes = np.sum(gradient(x, beta) * np.stack([-x[:, 1], x[:, 0]], axis=1), axis=1)
    differences = [(at(theta + 1e-5 * c) - at(theta - 1e-5 * c)) / 2e-5 for c in e]
    np.testing.assert_allclose(slopes, differences, atol=1e-9)


@pytest.mark.parametrize("beta", [0, 3.0])
@pytest.mark.parametrize("masses", [None, MASSES])
def test_the_gradient_is_that_of_the_energy(beta, masses):
    """And USA follows it: x_i' = (M / m_i) ∇_i E."""
    x = jnp.asarray(tokens())
    free = jax.grad(energy)(x, beta, masses)
    got = gradient(x, beta, masses)
    np.testing.assert_allclose(got, af.spaces.Sphere().project(x, free), atol=1e-14)
    m = jnp.ones(4) if masses is None else jnp.asarray(masses)
    v = af.USA(beta).velocity(0.0, x, m)
    np.testing.assert_allclose((m.sum() / m)[:, None] * got, v, atol=1e-13)


def test_the_flow_is_linear_with_n_times_the_hessian():
    x = tokens(1)
    np.testing.assert_allclose(jacobian(af.USA(2.0), x), 4 * hessian(x, 2.0), atol=1e-12)


def test_equally_spaced_tokens():
    n = 4
    beta, phi = 2.0, 2 * np.pi * np.arange(n) / n
    slope = -np.exp(beta * np.cos(phi)) * (np.cos(phi) - beta * np.sin(phi) ** 2) / n**2
    want = (slope * (1 - np.cos(np.arange(n)[:, None] * phi))).sum(axis=1)
    x = af.initial.circle(n)
    np.testing.assert_allclose(gradient(x, beta), 0, atol=1e-15)
    np.testing.assert_allclose(np.linalg.eigvalsh(hessian(x, beta)), np.sort(want), atol=1e-12)
    assert int(saddle_index(x, beta)) == np.sum(want > 1e-8)


def tetrahedron():
    return np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / np.sqrt(3)


def equator(n):
    x = np.asarray(af.initial.circle(n))
    return np.concatenate([x, np.zeros((n, 1))], axis=1)


@pytest.mark.parametrize("beta", [0.5, 4.0])
@pytest.mark.parametrize(
    "x",
    [tetrahedron(), equator(3), equator(4), np.array([[0, 0, 1.0], [0, 0, 1.0], [0, 0, -1.0]])],
    ids=["tetrahedron", "triangle", "square", "two against one"],
)
def test_the_index_of_critical_points(x, beta):
    np.testing.assert_allclose(gradient(x, beta), 0, atol=1e-14)
    values = np.linalg.eigvalsh(plain_hessian(x, beta, np.ones(len(x))))
    index = int(saddle_index(x, beta))
    assert index == np.sum(values > 1e-5 * np.abs(values).max())
    assert index >= 1


@pytest.mark.parametrize("beta", [0.0, 1.0, 9.0])
def test_one_cluster_is_a_maximum(beta):
    x = np.tile(tokens(n=1), (4, 1))
    assert int(saddle_index(x, beta)) == 0
    assert int(saddle_index(x, beta, MASSES)) == 0


def test_order_and_rotation(rng):
    x, p = tokens(), rng.permutation(4)
    O = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    values, moved = (
        np.linalg.eigvalsh(hessian(y, 2.0, m)) for y, m in ((x, MASSES), (x[p] @ O, 5 * MASSES[p]))
    )
    np.testing.assert_allclose(moved, values, atol=1e-13)
    got = gradient(x[p] @ O, 2.0, MASSES[p])
    np.testing.assert_allclose(got, gradient(x, 2.0, MASSES)[p] @ O, atol=1e-14)


def test_float32_and_many_tokens():
    x = jnp.asarray(tokens(), jnp.float32)
    assert hessian(x, 1.0).dtype == gradient(x, 1.0).dtype == jnp.float32
    many = jnp.asarray(tokens(n=1100))
    y = np.asarray(many)
    free = np.exp(2 * y @ y.T) @ y / 1100**2
    want = free - np.sum(free * y, axis=1, keepdims=True) * y
    np.testing.assert_allclose(gradient(many, 2.0), want, atol=1e-15)


def test_tokens_are_on_the_sphere():
    for fn in (gradient, hessian, saddle_index):
        with pytest.raises(InputError, match="rows of norm 1, but token 1 has 3"):
            fn(np.diag([1.0, 3.0]), 1.0)
