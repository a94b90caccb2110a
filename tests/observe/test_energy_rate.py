import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InputError
from attnflow.observe import energy, energy_rate

MASSES = jnp.array([0.5, 3.0, 1.0, 2.0, 0.1, 1.5])


def tokens(key, n=6):
    return af.initial.sphere(n=n, d=3, key=key)


@eqx.filter_jit
def along_the_flow(system, x, masses=None, t=0.0):
    """dE/dt by the chain rule."""
    v = system.velocity(t, x, masses)
    return jax.jvp(lambda x: energy(x, system.beta, masses), (x,), (v,))[1]


@pytest.mark.parametrize("make", [af.SA, af.USA])
@pytest.mark.parametrize(
    ("masses", "Vs"), [(None, [None]), (MASSES, [-1.0, 2.5, 0.0])], ids=["plain", "masses and V"]
)
def test_the_identity_is_the_chain_rule(make, masses, Vs):
    x = tokens(0)
    for V in Vs:
        for beta in (0, 1.0, 6.0):
            got = float(energy_rate(make(beta, V=V), x, masses=masses))
            want = float(along_the_flow(make(beta, V=V), x, masses))
            assert got == pytest.approx(want, rel=1e-10, abs=1e-15)
            assert np.sign(got) == (1 if V is None else np.sign(V))


@pytest.mark.parametrize("make", [af.SA, pytest.param(af.USA, marks=pytest.mark.slow)])
def test_along_a_trajectory(make):
    """The rates integrate to the gain of energy, and are those of each state."""
    system, ts = make(2.0), np.linspace(0, 2, 41)
    run = af.simulate(system, tokens(1), ts)
    rates = jax.jit(jax.vmap(lambda x: energy_rate(system, x)))(run.xs)
    want = [float(along_the_flow(system, x)) for x in run.xs[::8]]
    np.testing.assert_allclose(rates[::8], want, rtol=1e-10)
    gain = float(energy(run.xs[-1], 2.0) - energy(run.xs[0], 2.0))
    simpson = (ts[1] / 3) * float(
        rates[0] + 4 * rates[1::2].sum() + 2 * rates[2:-1:2].sum() + rates[-1]
    )
    assert gain == pytest.approx(simpson, rel=1e-4)


def test_a_number_that_depends_on_time():
    system, x = af.SA(1.0, V=lambda t: jnp.asarray(1 - t)), tokens(0)
    for t in (0.0, 1.0, 3.0):
        got = float(energy_rate(system, x, t))
        assert got == pytest.approx(float(along_the_flow(system, x, t=t)), rel=1e-10, abs=1e-15)


def test_more_than_a_block_of_tokens():
    system, x = af.SA(3.0), tokens(0, n=300)
    assert float(energy_rate(system, x)) == pytest.approx(
        float(along_the_flow(system, x)), rel=1e-10
    )


def test_order_and_rotation(rng):
    x, p = np.asarray(tokens(0)), rng.permutation(6)
    O = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    moved = energy_rate(af.SA(2.0), x[p] @ O, masses=7 * MASSES[p])
    np.testing.assert_allclose(moved, energy_rate(af.SA(2.0), x, masses=MASSES), rtol=1e-12)


def test_float32_stays_float32():
    assert energy_rate(af.SA(1.0), tokens(0).astype(jnp.float32)).dtype == jnp.float32


@pytest.mark.parametrize(
    "system",
    [
        af.SA(1.0, Q=np.eye(3)),
        af.USA(1.0, K=2.0),
        af.SA(1.0, V=np.eye(3)),
        af.SA(1.0, mask="causal"),
        af.SinkhornSA(4.0),
        af.Noisy(af.SA(1.0), 0.1),
        af.PureAttention(),
        af.EllipsoidAttention(1.0, D=np.ones(3)),
    ],
)
def test_what_has_no_identity_is_refused(system):
    name = type(system).__name__
    with pytest.raises(InputError, match=rf"system must be SA\(beta\) or USA.* it is {name}\("):
        energy_rate(system, tokens(0))


def test_tokens_off_the_sphere_are_refused():
    with pytest.raises(af.InputError, match="rows of norm 1"):
        af.observe.energy_rate(af.SA(1.0), 2 * af.initial.sphere(n=4, d=3, key=0))
