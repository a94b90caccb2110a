"""No step straddles a break: jumps of weights, declared times, save times of noise."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.linalg import expm

import attnflow as af
from attnflow.errors import InputError
from attnflow.spaces import Euclidean, Space
from attnflow.systems import Cost, System
from attnflow.weights import Breaks, PerLayer, Scheduled

LAYERS = np.random.default_rng(0).normal(size=(4, 3, 3)) / 2
X = np.array([[0.3, -0.5, 0.8]])


class Still(System):
    """Nothing moves but by noise."""

    noise_obstacle = None

    space: Space

    def velocity(self, t, x, masses=None):
        return jnp.zeros_like(x)

    def cost(self, n):
        return Cost(n, n)


def linear(V):
    """x' = V(t) x, which attention of a single token is."""
    return af.PureAttention(V=V)


def exact(t, every=1.0):
    """The product of the exponentials of the layers."""
    x = X.T
    for k, V in enumerate(LAYERS):
        x = expm(max(0.0, min(t - k * every, every)) * V) @ x
    return x.T


@pytest.mark.parametrize("every", [1.0, 0.3])
def test_fixed_steps_do_not_straddle_jumps_of_weights(every):
    """dt = 0.007 divides neither period: the error was 7e-3."""
    ts = np.array([0.0, 0.45, 1.1]) * every * 3
    run = af.simulate(linear(PerLayer(LAYERS, every=every)), X, ts, method=af.Fixed(0.007))
    for t, x in zip(ts, run.xs, strict=True):
        np.testing.assert_allclose(x, exact(t, every), atol=1e-8)


def test_fixed_steps_in_float32_stop_at_the_same_breaks():
    system, x = linear(PerLayer(LAYERS, every=0.3)), X.astype(np.float32)
    run = af.simulate(system, x, [0.0, 1.1], method=af.Fixed(0.007))
    assert int(run.steps) == 3 * 43 + 29
    np.testing.assert_allclose(run.final, exact(1.1, 0.3), atol=1e-5)


@pytest.mark.parametrize(
    "system",
    [
        pytest.param(linear, id="R^3", marks=pytest.mark.slow),
        pytest.param(lambda V: af.SA(1.0, V=V), id="sphere"),
    ],
)
def test_noise_over_jumps_is_that_of_the_pieces(system):
    """Between breaks a run with noise is the run of a constant weight, with the same motion."""
    x0 = af.initial.sphere(n=4, d=3, key=1)
    method = af.Fixed(0.3, "heun")
    whole = af.simulate(
        af.Noisy(system(PerLayer(LAYERS)), 0.1), x0, [0.0, 2.5], method=method, key=3
    )
    assert int(whole.steps) == 4 + 4 + 2
    x = x0
    for k, end in enumerate((1.0, 2.0, 2.5)):
        piece = af.Noisy(system(LAYERS[k]), 0.1)
        x = af.simulate(piece, x, [float(k), end], method=method, key=3).final
    np.testing.assert_allclose(whole.final, x, atol=1e-12)


@pytest.mark.parametrize("start", [0.0, 0.05])
def test_no_two_steps_share_their_draw(start):
    """A start half a step away from a multiple gave two steps in a row one draw."""
    noisy = af.Noisy(Still(Euclidean()), 0.5)
    ts = start + np.linspace(0.0, 1.0, 11)
    xs = af.simulate(noisy, jnp.zeros((4000, 1)), ts, method=af.Fixed(0.1, "euler"), key=1).xs
    steps = np.diff(np.asarray(xs)[..., 0], axis=0)
    correlations = np.corrcoef(steps) - np.eye(10)
    assert np.abs(correlations).max() < 0.1


@pytest.mark.slow
def test_a_run_continued_with_another_step_sees_new_noise():
    noisy = af.Noisy(Still(Euclidean()), 0.5)
    first = af.simulate(
        noisy, jnp.zeros((4000, 1)), [0.0, 1.0], method=af.Fixed(0.1, "euler"), key=1
    )
    later = af.simulate(noisy, first, [1.0, 2.0], method=af.Fixed(0.2, "euler"), key=1)
    a, b = np.asarray(first.final)[:, 0], np.asarray(later.final - first.final)[:, 0]
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.1


def test_save_times_of_noise_are_steps():
    """Var x(t) = 2σt at times that are no multiples of dt, under jit too."""
    noisy, x0 = af.Noisy(Still(Euclidean()), 0.5), jnp.zeros((20_000, 1))
    ts, method = jnp.array([0.0, 0.13, 0.95, 1.0]), af.Fixed(0.1, "euler")
    run = af.simulate(noisy, x0, ts, method=method, key=1)
    assert int(run.steps) == 2 + 9 + 1
    np.testing.assert_allclose(np.asarray(run.xs).var(axis=(1, 2)), ts, rtol=0.04)
    traced = jax.jit(lambda ts: af.simulate(noisy, x0, ts, method=method, key=1).xs)(ts)
    np.testing.assert_allclose(traced, run.xs, atol=1e-12)


WIDTH = 1e-3
AREA = quad(lambda s: np.exp(-(s**2)), -10, 10)[0]


def bump(t):
    """A bump at t = 5 of area √π, a thousandth wide."""
    return jnp.exp(-(((t - 5) / WIDTH) ** 2)) / WIDTH


def test_breaks_around_a_bump_make_it_seen():
    """x' = b(t) x ends at e^{√π}; an adaptive step that is not told jumps over the bump."""
    told = Scheduled(bump, breaks=(4.99, 5.01))
    ends = [
        float(af.simulate(linear(V), jnp.ones((1, 1)), [0.0, 8.0]).final[0, 0])
        for V in (told, bump)
    ]
    np.testing.assert_allclose(ends, [np.exp(AREA), 1.0], rtol=1e-6)


@pytest.mark.parametrize("method", [af.Adaptive(), af.Fixed(0.02)], ids=["adaptive", "fixed"])
def test_a_function_that_jumps_where_it_says(method):
    """V(t) = 1 before 0.7, then t − 2: x(2) = exp(0.7 + ∫(t − 2))."""
    V = Scheduled(lambda t: jnp.where(t < 0.7, 1.0, t - 2), breaks=[0.7])
    run = af.simulate(linear(V), jnp.ones((1, 1)), [0.0, 0.7, 2.0], method=method)
    want = np.exp([0.0, 0.7, 0.7 - 1.3**2 / 2])
    np.testing.assert_allclose(run.xs[:, 0, 0], want, rtol=1e-7)


@pytest.mark.parametrize("method", [af.Adaptive(), af.Fixed(0.01)], ids=["adaptive", "fixed"])
def test_a_function_that_jumps_again_and_again(method):
    """A square wave of period 0.2, with the floor of a quotient that rounding disturbs."""
    V = Scheduled(lambda t: jnp.where(jnp.floor(t / 0.1) % 2 == 0, 1.0, -2.0), every=0.1)
    run = af.simulate(linear(V), jnp.ones((1, 1)), [0.0, 3.0, 3.1], method=method)
    want = np.exp([0.0, -1.5, -1.4])
    np.testing.assert_allclose(run.xs[:, 0, 0], want, rtol=1e-7)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_next_and_the_last_break(dtype):
    breaks = Breaks(periods=(0.3,), times=(0.5, 1.0))
    of = lambda fn, t: float(fn(jnp.asarray(t, dtype)))  # noqa: E731
    for t, last, following in [(0.1, 0.0, 0.3), (0.3, 0.3, 0.5), (0.55, 0.5, 0.6), (1.0, 1.0, 1.2)]:
        assert of(breaks.last, t) == pytest.approx(last, rel=1e-6)
        assert of(breaks.next, t) == pytest.approx(following, rel=1e-6)
    for t in (0.3, 0.5, 0.9, 1.0):
        assert bool(breaks.reached(jnp.asarray(t, dtype)))
        assert of(breaks.before, t) < t <= of(breaks.after, t) * (1 + 1e-7)
    assert not bool(breaks.reached(jnp.asarray(0.4, dtype)))
    assert of(breaks.before, 0.4) == of(breaks.after, 0.4) == float(dtype(0.4))
    assert float(Breaks(times=(1.0,)).next(jnp.asarray(1.0, dtype))) == np.inf
    assert breaks.count(0.0, 1.2) >= 6


def test_bad_breaks(untyped):
    for make, said in (
        (lambda: Scheduled(1.0), "fn must be a function of t"),
        (lambda: Scheduled(bump, breaks="soon"), "breaks must be a list of times"),
        (lambda: Scheduled(bump, breaks=[np.nan]), "breaks must be finite"),
        (lambda: Scheduled(bump, every=0), "every must be a finite number above 0"),
    ):
        with pytest.raises(InputError, match=said):
            make()
