import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ive

import attnflow as af
import reference
from attnflow.errors import InputError
from attnflow.observe import jacobian, jacobian_spectrum, lyapunov_exponent
from attnflow.observe.stability import PERTURBATION_SALT
from attnflow.observe.tangent import tangent_bases
from attnflow.spaces import Circle, Space, Sphere
from attnflow.systems import System

eye = np.eye(3)


def tokens(key=0, n=4, d=3):
    return np.asarray(af.initial.sphere(n=n, d=d, key=key))


def differences(velocity, x, bases, h=1e-5):
    """The derivative in coordinates of the bases, by central differences along geodesics."""
    n, _, r = bases.shape
    columns = []
    for i in range(n):
        for a in range(r):
            u = np.zeros_like(x)
            u[i] = h * bases[i, :, a]
            sides = [velocity(moved(x, s * u)) for s in (1, -1)]
            slope = (sides[0] - sides[1]) / (2 * h)
            columns.append(np.einsum("ida,id->ia", bases, slope).ravel())
    return np.stack(columns, axis=1)


def moved(x, u):
    y = x + u
    return y * np.linalg.norm(x, axis=1, keepdims=True) / np.linalg.norm(y, axis=1, keepdims=True)


@pytest.mark.parametrize("masses", [None, np.array([1.0, 3.0, 0.5, 2.0])])
@pytest.mark.parametrize(("make", "speed"), [(af.SA, 1.0), (af.USA, np.exp(2.0))])
def test_one_cluster(make, speed, masses):
    """u_i' = mean(u) − u_i, times e^β for USA: −1 with multiplicity (n−1)(d−1), and 0."""
    x = np.tile(tokens(n=1), (4, 1))
    got = jacobian_spectrum(make(2.0), x, masses=masses)
    np.testing.assert_allclose(got, speed * np.array([0] * 2 + [-1] * 6), atol=1e-10)


def test_the_sphere_by_finite_differences(rng):
    x, Q, V = tokens(), rng.normal(size=(3, 3)), rng.normal(size=(3, 3))
    m = rng.uniform(0.5, 2, size=4)
    bases = np.asarray(tangent_bases(af.spaces.Sphere(), jnp.asarray(x)))
    want = differences(lambda y: reference.sphere_velocity(y, [Q], [eye], [V], 1.5, m), x, bases)
    got = jacobian(af.SA(1.5, Q=Q, V=V), x, masses=m)
    np.testing.assert_allclose(got, want, atol=1e-8)


def test_space_by_finite_differences(rng):
    x, V = rng.normal(size=(3, 2)), rng.normal(size=(2, 2))
    I = np.eye(2)
    h = 1e-6
    columns = []
    for step in h * np.eye(6).reshape(6, 3, 2):
        up, down = (reference.drift(x + s * step, [I], [I], [V], 1.0) for s in (1, -1))
        columns.append(((up - down) / (2 * h)).ravel())
    got = jacobian(af.PureAttention(V=V), x)
    np.testing.assert_allclose(got, np.stack(columns, axis=1), atol=1e-8)


def test_an_ellipsoid_has_tangent_planes_too():
    D = np.array([2.0, 1.0, 0.5])
    x = tokens() * D
    bases = np.asarray(tangent_bases(af.spaces.Ellipsoid(D), jnp.asarray(x)))
    np.testing.assert_allclose(np.einsum("ida,idb->iab", bases, bases), [np.eye(2)] * 4, atol=1e-14)
    np.testing.assert_allclose(np.einsum("ida,id->ia", bases, x / D**2), 0, atol=1e-14)
    assert jacobian(af.EllipsoidAttention(1.0, D=D), x).shape == (8, 8)


def test_equally_spaced_on_the_circle():
    """In the angles the Jacobian is circulant, so its eigenvalues are sums of cosines."""
    n = 5
    beta, phi = 2.0, 2 * np.pi * np.arange(n) / n
    slope = -np.exp(beta * np.cos(phi)) * (np.cos(phi) - beta * np.sin(phi) ** 2) / n
    k = np.arange(n)
    want = (slope * (1 - np.cos(k[:, None] * phi))).sum(axis=1)
    x = af.initial.circle(n)
    np.testing.assert_allclose(jacobian_spectrum(af.USA(beta), x), np.sort(want)[::-1], atol=1e-9)
    row = jacobian(af.USA(beta), x)[0]
    np.testing.assert_allclose(row[1:], -slope[1:], atol=1e-12)


def test_order_and_rotation(rng):
    x, p = tokens(), rng.permutation(4)
    O = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    want = jacobian_spectrum(af.SA(2.0), x)
    np.testing.assert_allclose(jacobian_spectrum(af.SA(2.0), x[p] @ O), want, atol=1e-12)
    assert np.all(np.diff(want.real) <= 1e-12)


@pytest.mark.parametrize(
    ("V", "want", "most"),
    [
        (np.array([[0.05, 3.0, 0.0], [0.0, -0.2, 1.0], [0.0, 0.0, -1.0]]), 0.05, 3e-3),
        (np.array([[-0.1, -2.0, 0.0], [2.0, -0.1, 0.0], [1.0, 0.0, -0.8]]), -0.1, 0.02),
        (np.array([[0.1, -5.0, 0.0], [0.5, 0.1, 0.0], [1.0, 0.0, -0.8]]), 0.1, 0.2),
    ],
    ids=["real", "rotation", "elliptic rotation"],
)
def test_a_linear_flow(V, want, most):
    """x' = Vx for a single token: the largest real part of an eigenvalue, to the stated error."""
    found = lyapunov_exponent(af.PureAttention(V=V), np.ones((1, 3)), 60.0)
    assert abs(found.exponent - want) <= found.error + 1e-6
    assert found.error < most
    assert found.ts[-1] == 60
    assert found.estimates[-1] == found.exponent


def test_a_saddle_and_a_cluster():
    """At a saddle the exponent is the largest eigenvalue; where all tokens meet, rotations stay."""
    system, saddle = af.SA(1.0), af.initial.circle(3)
    want = jacobian_spectrum(system, saddle)[0].real
    assert want > 0.1
    steps = af.Fixed(0.05)
    found = lyapunov_exponent(system, saddle, 25.0, method=steps)
    assert abs(found.exponent - want) < 1e-3
    met = lyapunov_exponent(system, tokens(n=3, d=2), 60.0, method=steps)
    assert abs(met.exponent) < 1e-3
    assert abs(met.exponent) <= 2 * met.error + 1e-6


@pytest.mark.slow
def test_two_trajectories_part_as_their_tangent_flow_says(rng):
    """The growth of a small distance over the last three quarters, with weights of all kinds."""
    system = af.SA(2.0, Q=rng.normal(size=(3, 3)), V=rng.normal(size=(3, 3)))
    x0, m = tokens(n=3), np.array([1.0, 2.0, 0.5])
    steps = af.Fixed(0.02)
    found = lyapunov_exponent(system, x0, 8.0, masses=m, method=steps, key=3)
    u = jax.random.normal(jax.random.fold_in(jax.random.key(3), PERTURBATION_SALT), (3, 3))
    both = af.initial.normalise(np.stack([x0 + 1e-6 * u, x0 - 1e-6 * u]))
    xs = np.asarray(af.simulate(system, both, [0.0, 2.0, 8.0], method=steps, masses=m).xs)
    apart = np.linalg.norm(xs[0] - xs[1], axis=(1, 2))
    assert np.log(apart[2] / apart[1]) / 6 == pytest.approx(float(found.exponent), abs=1e-5)


@pytest.mark.slow
def test_tokens_that_run_away_stop_the_run():
    with pytest.raises(InputError, match=r"horizon is too long: .* stop at t = \d+"):
        lyapunov_exponent(af.PureAttention(V=9 * np.eye(3)), np.ones((1, 3)), 100.0)


def test_in_angles_it_is_that_of_tokens_on_the_circle():
    theta = af.initial.angles(6, arc=1.0, key=0)
    x = jnp.concatenate([jnp.cos(theta), jnp.sin(theta)], axis=1)
    angles = af.observe.jacobian(af.AngularSA(2.0), theta)
    assert np.abs(angles - af.observe.jacobian(af.SA(2.0), x)).max() < 1e-12


class Pendulum(System):
    """θ' = −sin θ, as an angle or as a token that runs to the first axis of the plane."""

    noise_obstacle = None

    space: Space

    def velocity(self, t, x, masses=None):
        if isinstance(self.space, Circle):
            return -jnp.sin(x)
        return self.space.project(x, jnp.zeros_like(x).at[:, 0].set(1.0))


@pytest.mark.parametrize(
    ("space", "x0", "more"),
    [
        (Circle(), np.zeros((1, 1)), 0.0),
        pytest.param(Sphere(), np.eye(1, 2), -1.0, marks=pytest.mark.slow),
    ],
    ids=["angle", "token"],
)
def test_noise_moves_the_perturbation_too(space, x0, more):
    """λ = −E cos θ = −I₁(1/σ)/I₀(1/σ); that of the drift alone is −1.

    On the sphere neighbours see other tangential parts of the same noise, which brings them closer
    by σ more.
    """
    sigma = 1.0
    noisy = af.Noisy(Pendulum(space), sigma)
    steps = None if more else af.Fixed(0.05, "heun")

    def one(key):
        return lyapunov_exponent(noisy, x0, 20.0, method=steps, key=key).exponent

    found = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(0), 1000))
    error = found.std() / np.sqrt(1000)
    assert error < 0.03
    assert abs(found.mean() - (more * sigma - ive(1, 1 / sigma) / ive(0, 1 / sigma))) < 3 * error


def test_noise_needs_a_key_and_maps_have_no_tangent_flow():
    with pytest.raises(InputError, match="draws random numbers"):
        lyapunov_exponent(af.Noisy(af.SA(1.0), 0.1), np.eye(2), 1.0)
    with pytest.raises(InputError, match="which has noise"):
        lyapunov_exponent(af.Noisy(af.SA(1.0), 0.1), np.eye(2), 1.0, method=af.Adaptive(), key=0)
    for system in (af.PostNorm(1.0, D=np.ones(2)), af.Hardmax()):
        with pytest.raises(InputError, match="no tangent flow"):
            lyapunov_exponent(system, np.eye(2), 1.0)


def test_bad_input(untyped):
    with pytest.raises(InputError, match="rows of norm 1, but token 0 has 2"):
        jacobian(af.SA(1.0), 2 * np.eye(2))
    with pytest.raises(InputError, match="system must be a System"):
        jacobian(af.SA, np.eye(2))
    with pytest.raises(InputError, match=r"x must have shape \(n, d\)"):
        jacobian(af.SA(1.0), np.ones(2))
    with pytest.raises(InputError, match="horizon must be"):
        lyapunov_exponent(af.SA(1.0), np.eye(2), -1.0)
    with pytest.raises(InputError, match="has no velocity"):
        jacobian(af.PostNorm(1.0, D=np.ones(2)), np.eye(2))


def test_jit_and_vmap():
    xs = jnp.asarray(np.stack([tokens(s) for s in range(2)]))
    got = jax.jit(jax.vmap(lambda x: jacobian(af.SA(1.0), x)))(xs)
    np.testing.assert_allclose(got[1], jacobian(af.SA(1.0), xs[1]), atol=1e-12)


@pytest.mark.parametrize("method", [af.Layers(0.5), af.Coarsening()])
def test_methods_without_a_tangent_flow_are_refused(method):
    x = af.initial.sphere(n=4, d=3, key=0)
    with pytest.raises(af.InputError, match=r"Adaptive\(\) or Fixed\(dt\)"):
        af.observe.lyapunov_exponent(af.SA(1.0), x, 32, method=method)
