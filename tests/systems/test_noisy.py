import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ive

import attnflow as af
from attnflow.errors import InputError
from attnflow.spaces import Euclidean, Space, Sphere
from attnflow.systems import Cost, System


class Still(System):
    """Nothing moves but by noise."""

    noise_obstacle = None

    space: Space

    def velocity(self, t, x, masses=None):
        return jnp.zeros_like(x)

    def cost(self, n):
        return Cost(n, n)


class Decay(Still):
    """x' = −rate x: with noise an Ornstein–Uhlenbeck process."""

    rate: float = 1.0

    def velocity(self, t, x, masses=None):
        return -self.rate * x


class Pole(Still):
    """Tokens run to the first axis: θ' = −sin θ on the circle."""

    def velocity(self, t, x, masses=None):
        return self.space.project(x, jnp.zeros_like(x).at[:, 0].set(1.0))


def test_brownian_motion_on_r_d():
    x0 = jnp.zeros((20_000, 2))
    noisy = af.Noisy(Still(Euclidean()), 0.3)
    xs = np.asarray(
        af.simulate(noisy, x0, [0.0, 0.5, 2.0], method=af.Fixed(0.05, "euler"), key=1).xs
    )
    assert np.allclose(xs.var(axis=(1, 2)), 2 * 0.3 * np.array([0, 0.5, 2.0]), rtol=0.03)
    late = xs[2] - xs[1]
    assert abs(np.mean(late * xs[1])) < 0.01, "increments are independent"


def test_ornstein_uhlenbeck_is_stationary():
    noisy = af.Noisy(Decay(Euclidean()), 0.4)
    final = af.simulate(
        noisy, jnp.zeros((20_000, 1)), [0.0, 8.0], method=af.Fixed(0.02, "euler"), key=2
    ).final
    assert abs(float(final.var()) - 0.4) < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["heun", "euler"])
@pytest.mark.parametrize(("d", "sigma"), [(2, 0.3), (4, 0.1)])
def test_brownian_motion_on_the_sphere(d, sigma, solver):
    """E<x(t), x(0)> = e^{−(d−1)σt}; the step's bias is O(dt)."""
    x0 = af.initial.sphere(n=20_000, d=d, key=0)
    noisy = af.Noisy(Still(Sphere()), sigma)
    traj = af.simulate(noisy, x0, [0.0, 1.0], method=af.Fixed(0.005, solver), key=3)
    found = float(jnp.mean(jnp.sum(traj.final * x0, axis=1)))
    assert abs(found - np.exp(-(d - 1) * sigma)) < 0.02
    assert float(jnp.abs(jnp.linalg.norm(traj.final, axis=1) - 1).max()) < 1e-12


def test_without_noise_it_is_the_system():
    x0 = af.initial.sphere(n=8, d=3, key=0)
    plain = af.simulate(af.SA(2.0), x0, [0.0, 1.0], method=af.Fixed(0.1, "heun"))
    noisy = af.simulate(
        af.Noisy(af.SA(2.0), 0.0), x0, [0.0, 1.0], method=af.Fixed(0.1, "heun"), key=0
    )
    assert np.allclose(plain.final, noisy.final, atol=1e-14)


def test_keys():
    x0 = af.initial.sphere(n=4, d=2, key=0, batch=3)
    noisy, ts = af.Noisy(af.SA(1.0), 0.1), [0.0, 0.5, 1.0]

    def run(x, key):
        return np.asarray(af.simulate(noisy, x, ts, method=af.Fixed(0.1, "euler"), key=key).xs)

    same = jnp.broadcast_to(x0[0], x0.shape)
    xs = run(same, 5)
    assert (xs == run(same, jax.random.key(5))).all()
    assert not np.isclose(xs[0, -1], xs[1, -1]).any(), "each member draws its own"
    assert np.allclose(xs[:1], run(same[:1], 5), atol=1e-12), "which does not depend on the others"
    assert not np.isclose(xs[0, -1], run(same, 6)[0, -1]).any()
    with pytest.raises(InputError, match="draws random numbers"):
        af.simulate(noisy, x0, ts)


def test_a_continued_run_sees_new_noise():
    x0 = jnp.zeros((2000, 1))
    noisy, method = af.Noisy(Still(Euclidean()), 0.5), af.Fixed(0.25, "euler")
    first = af.simulate(noisy, x0, [0.0, 1.0], method=method, key=1)
    second = af.simulate(noisy, first, [1.0, 2.0], method=method, key=1)
    a, b = np.asarray(first.final[:, 0]), np.asarray((second.final - first.final)[:, 0])
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.1


def test_layers_have_a_kick():
    noisy = af.Noisy(Still(Euclidean()), 0.5)
    final = af.simulate(
        noisy, jnp.zeros((20_000, 1)), [0.0, 3.0], method=af.Layers(0.5), key=1
    ).final
    assert abs(float(final.var()) - 3.0) < 0.1


def _path(system, x0, steps, w):
    """Heun's method by hand, for a given Brownian path."""
    coarse = w.reshape(steps, -1, *w.shape[1:]).sum(axis=1)

    def step(x, dw):
        def move(y):
            return system.velocity(0.0, y) / steps + system.apply_noise(0.0, y, dw)

        guess = move(x)
        return system.retract(x + (guess + move(x + guess)) / 2), None

    return jax.lax.scan(step, x0, coarse)[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("inner", "x0", "expected"),
    [
        (af.SA(1.0), af.initial.sphere(n=4, d=3, key=0), 0.5),
        (Decay(Euclidean()), jnp.ones((4, 3)), 1.0),
    ],
    ids=["sphere", "R^3"],
)
def test_strong_order(inner, x0, expected):
    """½ on the sphere, where the noise does not commute, and 1 where it is constant."""
    system = af.Noisy(inner, 0.3)
    w = jax.random.normal(jax.random.key(0), (200, 1024, *x0.shape)) / np.sqrt(1024)
    ends = {
        steps: jax.jit(jax.vmap(lambda w, s=steps: _path(system, x0, s, w)))(w)
        for steps in (8, 16, 32, 1024)
    }
    errors = [float(jnp.abs(ends[s] - ends[1024]).mean()) for s in (8, 16, 32)]
    order = np.polyfit(np.log([1 / 8, 1 / 16, 1 / 32]), np.log(errors), 1)[0]
    assert abs(order - expected) < 0.2


@pytest.mark.slow
@pytest.mark.parametrize(("solver", "order"), [("heun", 2), ("euler", 1)])
def test_weak_order(solver, order):
    """The mean of cos θ for θ' = −sin θ on the circle is I₁(1/σ)/I₀(1/σ) in the end."""
    x0, sigma = af.initial.sphere(n=400_000, d=2, key=0), 0.5
    errors = []
    for dt in (0.8, 0.4):
        noisy = af.Noisy(Pole(Sphere()), sigma)
        method = af.Fixed(dt, solver)
        final = af.simulate(noisy, x0, [0.0, 8.0], method=method, key=3).final
        errors.append(float(final[:, 0].mean()) - ive(1, 1 / sigma) / ive(0, 1 / sigma))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.5)


@pytest.mark.parametrize(
    ("d", "sigma", "t"),
    [
        (512, 0.02, 0.1),
        pytest.param(64, 0.3, 0.05, marks=pytest.mark.slow),
        pytest.param(8, 0.1, 1.0, marks=pytest.mark.slow),
        pytest.param(2, 3.0, 0.3, marks=pytest.mark.slow),
    ],
)
def test_the_default_step_resolves_the_noise(d, sigma, t):
    """E<x(t), x(0)> = e^{−(d−1)σt} within the statistical error; 0.3948 for 0.3599 before."""
    x0 = af.initial.sphere(n=100_000 // d, d=d, key=0)
    final = af.simulate(af.Noisy(Still(Sphere()), sigma), x0, [0.0, t], key=1).final
    overlaps = np.sum(np.asarray(final) * np.asarray(x0), axis=1)
    error = overlaps.std() / np.sqrt(len(overlaps))
    assert error < 0.01
    assert abs(overlaps.mean() - np.exp(-(d - 1) * sigma * t)) < 3 * error


def test_the_default_step_resolves_the_drift():
    """A drift of rate 100 has steps of a tenth of 1/100, and the usual ones are not longer."""
    x0 = jnp.ones((4, 2))
    fast = af.simulate(af.Noisy(Decay(Euclidean(), 100.0), 0.1), x0, [0.0, 0.01], key=0)
    slow = af.simulate(af.Noisy(Decay(Euclidean(), 1.0), 0.1), x0, [0.0, 0.01], key=0)
    assert float(fast.method.dt) == pytest.approx(1e-3)
    assert float(slow.method.dt) == pytest.approx(1e-2)


def test_a_traced_intensity_has_its_own_steps():
    x0 = af.initial.sphere(n=4, d=3, key=0)

    def run(sigma):
        traj = af.simulate(af.Noisy(Still(Sphere()), sigma), x0, jnp.array([0.0, 0.1]), key=1)
        return traj.final, traj.steps

    final, steps = jax.jit(jax.vmap(run))(jnp.array([1.0, 40.0]))
    assert steps.tolist() == [10, 84]
    np.testing.assert_allclose(final[1], run(40.0)[0], atol=1e-12)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: af.Noisy("SA", 0.1), "system must be a System"),
        (lambda: af.Noisy(af.SA(1.0), -0.1), "sigma must be at least 0"),
        (lambda: af.Noisy(af.RescaledAttention(), 0.1), "whose state takes noise"),
        (lambda: af.Noisy(af.PostNorm(1.0, D=np.ones(2)), 0.1), "whose state takes noise"),
    ],
)
def test_bad_input(untyped, make, said):
    with pytest.raises(InputError, match=said):
        make()


@pytest.mark.parametrize(
    ("method", "ts", "said"),
    [
        (af.Adaptive(), [0.0, 1.0], "which has noise"),
        (af.Fixed(0.1, "rk4"), [0.0, 1.0], "which has noise"),
        (af.Layers(0.1), [0.0, 0.95, 1.0], "whole number of layers"),
    ],
)
def test_methods_that_cannot(method, ts, said):
    x0 = af.initial.sphere(n=4, d=2, key=0)
    with pytest.raises(InputError, match=said):
        af.simulate(af.Noisy(af.SA(1.0), 0.1), x0, ts, method=method, key=0)


def _order(sigma, start, n=10_000):
    """r of eight runs of noisy Kuramoto with K = 1, which is SA with β = 0 on the circle.

    In blocks of ten units of time, which are as good as independent, once the first 20 are over.
    """
    noisy = af.Noisy(af.Kuramoto(1.0), sigma)
    save = lambda t, x: af.observe.order_parameter(noisy.positions(x))  # noqa: E731
    method = af.Fixed(0.05, "heun")
    runs = af.simulate(noisy, start(n), np.arange(0.0, 80.0), method=method, key=11, save=save)
    return np.asarray(runs.xs)[:, 20:].reshape(-1, 10)


def _mean_and_error(blocks):
    means = blocks.mean(axis=1)
    return means.mean(), means.std(ddof=1) / np.sqrt(len(means))


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [0.2, 0.4])
def test_the_order_below_the_threshold_is_self_consistent(sigma):
    """r = I₁(r/σ)/I₀(r/σ) for n → ∞ ([P] Problem 7 at β = 0)."""
    expected = brentq(lambda r: ive(1, r / sigma) / ive(0, r / sigma) - r, 1e-3, 1)
    mean, error = _mean_and_error(_order(sigma, lambda n: jnp.zeros((8, n, 1))))
    assert error < 0.002
    assert abs(mean - expected) < 3 * error


@pytest.mark.slow
def test_the_order_above_the_threshold_is_that_of_chance():
    """E r² = 1/(n (1 − 1/(2σ)))."""
    sigma, n = 0.9, 10_000
    r = _order(sigma, lambda n: af.initial.angles(n, key=0, batch=8), n)
    mean, error = _mean_and_error(n * r**2)
    assert error < 0.2
    assert abs(mean - 1 / (1 - 1 / (2 * sigma))) < 3 * error


@pytest.mark.parametrize("system", [af.SA(1.0), af.Kuramoto(1.0)])
def test_work_is_that_of_the_system_inside(system):
    assert af.Noisy(system, 0.5).cost(50).pairs == system.cost(50).pairs
    assert af.Kuramoto(1.0).cost(50).pairs < af.SA(1.0).cost(50).pairs


def test_runs_under_jit_and_vmap_over_noise():
    x0 = af.initial.angles(6, arc=1.0, key=0)
    ts, method = np.array([0.0, 0.5]), af.Fixed(0.1, "heun")

    def final(sigma):
        return af.simulate(af.Noisy(af.AngularSA(1.0), sigma), x0, ts, method=method, key=3).final

    sigmas = jnp.array([0.0, 0.4])
    together = jax.jit(jax.vmap(final))(sigmas)
    for sigma, found in zip(sigmas, together, strict=True):
        np.testing.assert_allclose(found, final(float(sigma)), atol=1e-12)
