"""Every system meets every consumer: what comes back is right, or refused in one sentence.

Right means: it agrees with a computation that does not ask the system what it is. The systems are
those of the table, variants that resemble them, and one that declares nothing.
"""

import tomllib
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow import meanfield, observe
from attnflow.observe.stability import PERTURBATION_SALT
from attnflow.simulation.solve import solve
from attnflow.spaces import Sphere
from attnflow.spec import write_spec
from attnflow.spec.read import parse_spec, parse_sweep
from attnflow.spec.system import key_for
from attnflow.sweep.check import check as check_sweep
from attnflow.sweep.draws import run_hash
from attnflow.sweep.tile import Computer
from attnflow.systems import System
from attnflow.weights import PerLayer
from every_system import EXAMPLES, built


class Undeclared(System):
    """SA with β = 2 by a stranger, who says nothing of what it is."""

    space: Any
    beta: Any

    def __init__(self):
        self.space, self.beta = Sphere(), jnp.asarray(2.0)

    def velocity(self, t, x, masses=None):
        m = jnp.ones(len(x)) if masses is None else masses
        weights = m * jnp.exp(self.beta * (x @ x.T - 1))
        return self.space.project(x, weights @ x / weights.sum(axis=1, keepdims=True))


SPHERE = af.initial.sphere(n=12, d=2, key=3)
PLANE = jax.random.normal(jax.random.key(3), (12, 2))
VARIANTS = {
    "plain SA": (af.SA(2.0), SPHERE),
    "plain USA": (af.USA(1.0), SPHERE),
    "plain attention": (af.PureAttention(), PLANE),
    "masked SA": (af.SA(2.0, mask="causal"), SPHERE),
    "SA with Q": (af.SA(2.0, Q=np.diag([1.0, -1.0])), SPHERE),
    "SA with V(t)": (af.SA(2.0, V=lambda t: 1.0 - t), SPHERE),
    "repulsive USA": (af.USA(1.0, V=-1.0), SPHERE),
    "layered SA": (af.SA(2.0, V=PerLayer(np.array([1.0, -1.0]))), SPHERE),
    "two heads": (af.SA(2.0, V=np.stack([np.eye(2), -0.3 * np.eye(2)])), SPHERE),
    "rotary": (af.Transformer(2.0, rotary=[0.7]), SPHERE),
    "noisy SA": (af.Noisy(af.SA(2.0), 0.1).with_key(jax.random.key(0)), SPHERE),
    "undeclared": (Undeclared(), SPHERE),
}
NAMES = [*af.SYSTEMS, *VARIANTS]
every = pytest.mark.parametrize("name", NAMES)


def met(name):
    """The system of this name and a state of it."""
    return VARIANTS[name] if name in VARIANTS else built(name)


def refused(fn):
    """What `fn` gives, or None where it refuses in one sentence."""
    try:
        return fn()
    except af.InputError as error:
        said = str(error)
        assert said.endswith("."), said
        assert "\n" not in said, said
        return None


def token_velocities(system, x, masses=None):
    """The tokens of a state, and how fast they move."""
    velocity = system.velocity(0.0, x, masses)
    return jax.jvp(system.positions, (x,), (velocity,))


def energy(x, beta, m):
    """E_β in plain NumPy."""
    s = np.asarray(x) @ np.asarray(x).T
    each = s / 2 if beta == 0 else np.exp(beta * s) / (2 * beta)
    return float(m @ each @ m / m.sum() ** 2)


@every
def test_the_rate_of_the_energy(name):
    system, x = met(name)
    rate = refused(lambda: observe.energy_rate(system, x))
    if rate is None:
        assert name not in ("plain SA", "plain USA", "repulsive USA", "SA with V(t)")
        return
    m, h, v = np.ones(len(x)), 1e-4, system.velocity(0.0, x)
    up, down = (energy(system.retract(x + s * h * v), float(system.beta), m) for s in (1, -1))
    assert float(rate) == pytest.approx((up - down) / (2 * h), rel=1e-5)


def tokens_of_a_density(system, d):
    """A state and masses that stand for the density 1 + u/2 of u = <x, e>."""
    if d == 2:
        theta = 2 * np.pi * (np.arange(400) + 0.5) / 400
        circle = np.stack([np.cos(theta), np.sin(theta)], axis=1)
        x = theta[:, None] if is_of_angles(system) else circle
        return jnp.asarray(x), jnp.asarray(1 + circle[:, 0] / 2)
    spiral = np.arange(4000) + 0.5
    u, turn = 1 - 2 * spiral / 4000, np.pi * (1 + 5**0.5) * spiral
    ring = np.sqrt(1 - u**2)
    x = np.stack([u, ring * np.cos(turn), ring * np.sin(turn)], axis=1)
    return jnp.asarray(x), jnp.asarray(1 + u / 2)


def is_of_angles(system):
    """Whether a state is a column of angles."""
    try:
        system.space.admit(jnp.zeros((3, 1)))
    except af.InputError:
        return False
    return system.positions(jnp.zeros((3, 1))).shape == (3, 2)


def mean_velocity(system, d):
    """How fast the mean token of the density 1 + u/2 moves along e, by the tokens' own velocity."""
    x, masses = tokens_of_a_density(system, d)
    _, velocities = token_velocities(system, x, masses)
    return float(masses @ velocities[:, 0] / masses.sum())


def noise_of(system):
    """What noise takes from the mean of u, per time and (d − 1): σ times it."""
    return 0.0 if system.intensity is None else float(system.intensity)


@every
def test_densities_in_finite_volumes(name):
    system, _ = met(name)
    limit = refused(lambda: meanfield.CircleDensity(system))
    if limit is None:
        assert name not in ("plain SA", "plain USA", "AngularSA", "AngularUSA", "noisy SA")
        return
    theta = 2 * np.pi * (np.arange(400) + 0.5) / 400
    rho = (1 + np.cos(theta) / 2) / (2 * np.pi)
    rate = np.asarray(limit.velocity(0.0, jnp.asarray(rho)[:, None]))[:, 0]
    found = float(rate @ np.cos(theta) * 2 * np.pi / 400)
    expected = mean_velocity(system, 2) - noise_of(system) / 4
    assert found == pytest.approx(expected, abs=2e-4 * max(1, abs(expected)))


@every
def test_densities_in_modes(name):
    system, _ = met(name)
    limit = refused(lambda: meanfield.CircleModes(system))
    if limit is None:
        assert name not in ("plain SA", "plain USA", "AngularSA", "AngularUSA", "noisy SA")
        return
    x = jnp.zeros((32, 2)).at[0, 0].set(1.0).at[1, 0].set(0.25)
    expected = mean_velocity(system, 2) - noise_of(system) / 4
    found = float(limit.velocity(0.0, x)[1, 0])
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-9)


@every
def test_zonal_densities(name):
    system, _ = met(name)
    limit = refused(lambda: meanfield.ZonalModes(system, d=3))
    if limit is None:
        assert name not in ("plain SA", "plain USA", "noisy SA")
        return
    x = meanfield.zonal_modes(lambda u: 1 + u / 2, d=3, M=24)
    expected = mean_velocity(system, 3) - 2 * noise_of(system) / 6
    found = float(limit.velocity(0.0, x)[1, 0]) / 3**0.5
    assert found == pytest.approx(expected, rel=1e-3)


@every
def test_fewer_dimensions(name):
    """Restricted to turned coordinates of the whole space, the flow is the same, turned."""
    system, x = met(name)
    d = x.shape[-1]
    B = jnp.linalg.qr(jax.random.normal(jax.random.key(d), (d, d)))[0]
    inside = system.restricted(B)
    if inside is None:
        assert name not in ("plain SA", "SA with Q", "plain attention", "Krause")
        return
    moved = inside.layer(1, x @ B.T, 0.3) @ B
    np.testing.assert_allclose(moved, system.layer(1, x, 0.3), rtol=1e-9, atol=1e-11)


@every
def test_noise(name):
    """Where noise can be added, none of it leaves the velocity as it is, and some the space."""
    system, x = met(name)
    noisy = refused(lambda: af.Noisy(system, 0.0))
    if noisy is None:
        assert name not in ("SA", "plain attention", "AngularSA", "Kuramoto", "Krause")
        return
    np.testing.assert_array_equal(noisy.velocity(0.0, x), system.velocity(0.0, x))
    stirred = af.Noisy(system, 0.3).with_key(jax.random.key(1)).layer(0, x, 0.01)
    np.testing.assert_allclose(stirred, system.retract(stirred), atol=1e-12)
    assert system.positions(stirred).shape == system.positions(x).shape


@every
def test_specs(name):
    """A spec that is written describes the very same dynamics, or is refused."""
    system, x = met(name)
    if system.random:
        system = eqx.tree_at(lambda s: s.key, system, None)
    written = refused(lambda: write_spec(system, np.asarray(x), np.array([0.0, 1.0])))
    if written is None:
        assert name in VARIANTS or name == "PostNormTransformer", "its weights change in time"
        return
    run = parse_spec(tomllib.loads(written)).build()
    again, before = run.system, system
    if before.random:
        again, before = (s.with_key(jax.random.key(5)) for s in (again, before))
    np.testing.assert_allclose(
        again.layer(1, jnp.asarray(run.x0), 0.01), before.layer(1, x, 0.01), rtol=1e-9, atol=1e-12
    )


MERGED = ("plain SA", "plain USA", "SA with Q", "two heads", "repulsive USA", "Aggregation")
"""Some of those that may be merged, and must not be refused."""


@every
def test_merging(name):
    """Tokens that are a hair apart stay so where merging is called exact."""
    system, x = met(name)
    run = refused(lambda: af.Coarsening().check(system, np.array([0.0, 1.0])) or True)
    if run is None:
        assert name not in MERGED
        return
    close = system.retract(x[:1] + 1e-9 * jnp.ones_like(x[:1]))
    state = jnp.concatenate([x, close])
    velocity = system.velocity(0.0, state)
    between, parting = state[-1] - state[0], velocity[-1] - velocity[0]
    assert between @ parting < 100 * (between @ between), "they part no faster than e^{100 t}"
    np.testing.assert_allclose(system.velocity(7.5, state), velocity, rtol=1e-12)
    order = jnp.array([len(x), *range(len(x))])
    np.testing.assert_allclose(system.velocity(0.0, state[order]), velocity[order], atol=1e-9)


@every
def test_solutions_of_filippov(name):
    system, x = met(name)
    run = refused(lambda: af.simulate(system, x[:4], [0.0, 0.05], method=af.Filippov()))
    if run is None:
        assert name != "Hardmax"
        return
    step, steps = 1e-4, np.asarray(x[:4])
    for _ in range(500):
        steps = steps + step * np.asarray(system.velocity(0.0, jnp.asarray(steps)))
    np.testing.assert_allclose(run.final, steps, atol=1e-3)


@every
def test_the_geometry_of_the_limit(name):
    """A run that stands still at its start: no geometry is made up for what is not on R^d."""
    system, x = met(name)
    one = jnp.zeros((), int)
    still = jnp.stack([x, x])
    run = af.Trajectory(jnp.array([0.0, 1.0]), still, x, None, one, one, system, af.Adaptive())
    found = refused(lambda: af.theory.measured_geometry(run))
    if found is None:
        assert name not in ("PureAttention", "RescaledAttention")
        return
    assert name in ("PureAttention", "RescaledAttention", "plain attention")
    assert found.kind in ("unsettled", "origin", "polytope", "hyperplanes", "polytope x subspace")


FLOWING = ("plain SA", "plain attention", "masked SA", "rotary", "Kuramoto", "Krause", "noisy SA")
"""Some of those that have a tangent flow, and must not be refused."""


APART_AND_STAYING = jnp.array([[1.0, 0.0], [-1.0, 0.5], [0.3, 1.2], [0.0, -1.4]])
"""Tokens that do not collide within the time of a test; the graph of Kuramoto needs all of its."""


def followed(system, x, ts, method, key):
    """The states at the times ts, which are steps: by the velocity or the layers alone.

    Noise is what it is for the same key: such runs are those of `solve`.
    """
    if system.random and system.dynamics == "diffusion":
        return solve(system, x, ts, method=method, key=key).xs
    system = system.with_key(key) if system.random else system
    step = eqx.filter_jit(layer if system.dynamics == "map" else rk4)
    states = [x]
    for t, dt in zip(ts[:-1], np.diff(ts), strict=True):
        states.append(step(system, t, states[-1], dt))
    return jnp.stack(states)


def layer(system, t, x, dt):
    """The layer that begins at t."""
    return system.layer(jnp.round(t / dt), x, dt)


def rk4(system, t, x, dt):
    """A step as in textbooks."""
    a = system.velocity(t, x)
    b = system.velocity(t + dt / 2, x + dt / 2 * a)
    c = system.velocity(t + dt / 2, x + dt / 2 * b)
    d = system.velocity(t + dt, x + dt * c)
    return system.retract(x + dt / 6 * (a + 2 * b + 2 * c + d))


def stepping(system, dt):
    """The method of one step size for a system."""
    if system.dynamics == "map":
        return {"name": "Layers", "dt": dt}
    return {"name": "Fixed", "dt": dt, "solver": "euler" if system.random else "rk4"}


@pytest.mark.slow
@every
def test_lyapunov_exponents(name):
    """The growth of a small perturbation, seen as the distance of two runs."""
    system, x = met(name)
    x = {"Kuramoto": x, "Aggregation": APART_AND_STAYING}.get(name, x[:4])
    key, ts = jax.random.key(3), jnp.linspace(0, 0.32, 65)
    method = af.Fixed(0.005, "euler" if system.random else "rk4")
    said = refused(lambda: observe.lyapunov_exponent(system, x, 0.32, method=method, key=key))
    if said is None:
        assert name not in FLOWING
        return
    direction = jax.random.fold_in(key, PERTURBATION_SALT)
    u = system.space.project(x, jax.random.normal(direction, x.shape))
    near = system.retract(x + 1e-6 * u / jnp.linalg.norm(u))
    one, other = (followed(system, start, ts, method, key) for start in (x, near))
    apart = np.linalg.norm(np.asarray(other - one).reshape(65, -1), axis=1)
    expected = np.log(apart[-1] / apart[16]) / (0.75 * 0.32)
    assert float(said.exponent) == pytest.approx(expected, rel=5e-3, abs=5e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", af.SYSTEMS)
def test_sweeps(name):
    """A cell of a sweep is the run that its spec describes."""
    given = EXAMPLES[name]
    small = {"n": 5} if "n" in given["start"] else {}
    dt = 1.0 if built(name)[0].dynamics == "map" else 0.1
    spec = refused(
        lambda: parse_sweep(
            {
                "key": 4,
                "system": given["system"],
                "start": given["start"] | small,
                "times": {"stop": 5 * dt, "count": 6},
                "method": stepping(built(name)[0], dt),
                "axes": {"method.dt": [dt]},
                "keep": {"width": {"observable": "diameter"}},
            }
        )
    )
    if spec is None or refused(lambda: check_sweep(spec)) is None:
        assert name == "Hardmax"
        return
    computer = Computer(spec)
    found = computer.values(computer.grid[0])["width"][0, 0]
    cell = spec.cell({"method.dt": dt})
    key = jax.random.key(4)
    for word in (*run_hash(cell), 0):
        key = jax.random.fold_in(key, word)
    system, x0 = cell.draw(key)
    x0, noise = system.space.admit(x0), key_for("noise", key)
    xs = followed(system, x0, jnp.linspace(0, 5 * dt, 6), cell.build_method(), noise)
    for x, width in zip(xs, found, strict=True):
        each = np.asarray(system.positions(x))
        expected = np.linalg.norm(each[:, None] - each, axis=-1).max()
        assert width == pytest.approx(expected, rel=1e-6)
