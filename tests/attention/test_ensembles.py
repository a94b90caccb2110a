"""Many small systems at once: the layout with replicates last gives what each would alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.attention import Softmax, Unnormalised, attend
from attnflow.attention.dense import MIN_REPLICATES_LAST_AXIS

N = 5
SYSTEMS = [af.SA, af.USA]


def replicates(count=MIN_REPLICATES_LAST_AXIS, n=N, d=2, key=0):
    return af.initial.sphere(n, d, key=key, batch=count)


def velocities(system, x, *masses):
    return jax.jit(jax.vmap(lambda x, *m: system.velocity(0.0, x, *m)))(x, *masses)


def one_by_one(system, x, *masses):
    velocity = jax.jit(lambda x, *m: system.velocity(0.0, x, *m))
    return jnp.stack([velocity(*each) for each in zip(x, *masses, strict=True)])


def is_replicates_last(fn, *args):
    """Whether arrays of tokens × replicates take part."""
    return f"f64[{N},{MIN_REPLICATES_LAST_AXIS}]" in str(jax.make_jaxpr(fn)(*args))


@pytest.mark.parametrize("kind", SYSTEMS)
@pytest.mark.parametrize("weighted", [False, True])
def test_each_replicate_moves_as_if_alone(kind, weighted):
    x, system = replicates(), kind(3.0)
    masses = (jnp.asarray(np.random.default_rng(0).uniform(0, 2, x.shape[:2])),) * weighted
    together = velocities(system, x, *masses)
    np.testing.assert_allclose(together, one_by_one(system, x, *masses), rtol=1e-11, atol=1e-14)


def test_tokens_off_the_circle_move_as_if_alone():
    """As stages of a Runge–Kutta step are."""
    x = 1.1 * replicates()
    np.testing.assert_allclose(
        velocities(af.SA(3.0), x), one_by_one(af.SA(3.0), x), rtol=1e-11, atol=1e-14
    )


def test_it_is_used_for_many_small_systems_only():
    def vmapped(d, **options):
        velocity = jax.vmap(lambda x: af.SA(1.0, **options).velocity(0.0, x))
        return lambda count: is_replicates_last(velocity, replicates(count, d=d))

    assert vmapped(2)(MIN_REPLICATES_LAST_AXIS)
    assert not vmapped(2)(MIN_REPLICATES_LAST_AXIS - 1)
    assert not vmapped(3)(MIN_REPLICATES_LAST_AXIS)
    assert not vmapped(2, Q=2.0)(MIN_REPLICATES_LAST_AXIS)
    assert not vmapped(2, mask="causal")(MIN_REPLICATES_LAST_AXIS)


def test_each_replicate_may_have_its_temperature():
    x, betas = replicates(), jnp.linspace(0.1, 30, MIN_REPLICATES_LAST_AXIS)
    together = jax.jit(jax.vmap(lambda x, b: af.SA(b).velocity(0.0, x)))(x, betas)
    for i in (0, MIN_REPLICATES_LAST_AXIS // 2, MIN_REPLICATES_LAST_AXIS - 1):
        alone = af.SA(betas[i]).velocity(0.0, x[i])
        np.testing.assert_allclose(together[i], alone, rtol=1e-11, atol=1e-14)


def test_one_start_at_many_temperatures():
    x, betas = replicates()[0], jnp.linspace(0.1, 30, MIN_REPLICATES_LAST_AXIS)
    together = jax.jit(jax.vmap(lambda b: af.SA(b).velocity(0.0, x)))(betas)
    np.testing.assert_allclose(together[7], af.SA(betas[7]).velocity(0.0, x), rtol=1e-11)


def test_tiny_forces_survive():
    """Two tokens almost opposite at β = 40: forces of 1e-35 that no own term may drown."""
    angle = np.pi - 1e-3
    pair = jnp.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)]])
    x = jnp.broadcast_to(pair, (MIN_REPLICATES_LAST_AXIS, 2, 2))
    want = np.exp(40 * (np.cos(angle) - 1)) * np.sin(angle)
    got = velocities(af.SA(40.0), x)
    np.testing.assert_allclose(got[:, 0, 1], want, rtol=1e-9)


@pytest.mark.parametrize("kind", [Softmax(), Unnormalised()], ids=["softmax", "unnormalised"])
def test_gradients_are_those_of_each_alone(kind):
    x = replicates()

    def pull(x, beta):
        means = attend(x, x, x, beta=beta, kind=kind, unit=True, tangential=True)
        return jnp.sum(jnp.sin(af.spaces.Sphere().project(x, means)))

    together = jax.jit(jax.grad(lambda x, b: jax.vmap(pull, (0, None))(x, b).sum(), (0, 1)))
    alone = [jax.grad(pull, (0, 1))(x[i], 2.0) for i in range(3)]
    slopes, total = together(x[:3].repeat(MIN_REPLICATES_LAST_AXIS, 0), 2.0)
    for i, (slope, _) in enumerate(alone):
        np.testing.assert_allclose(
            slopes[i * MIN_REPLICATES_LAST_AXIS], slope, rtol=1e-10, atol=1e-13
        )
    expected = MIN_REPLICATES_LAST_AXIS * sum(float(b) for _, b in alone)
    assert float(total) == pytest.approx(expected, rel=1e-10)


def test_an_ensemble_runs_like_its_members():
    x0 = replicates()
    traj = af.simulate(af.SA(4.0), x0, [0.0, 2.0], method=af.Fixed(0.1))
    alone = af.simulate(af.SA(4.0), x0[5], [0.0, 2.0], method=af.Fixed(0.1))
    np.testing.assert_allclose(traj.final[5], alone.final, atol=1e-9)
