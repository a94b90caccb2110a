"""Densities on the circle in cells: the field, what is conserved, and the scheme's order."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow import meanfield
from attnflow.meanfield import CircleDensity, CircleModes

N = 256
WIDTH = 2 * np.pi / N
CENTRES = WIDTH * (np.arange(N) + 0.5)
EDGES = WIDTH * np.arange(N)
BUMPY = meanfield.density(lambda x: np.exp(np.cos(x - 1)) * (1 + 0.3 * np.cos(3 * x)), N)


def kernel(phi, beta):
    return np.exp(beta * np.cos(phi))


def field(system, rho, at):
    """X by a plain double sum over many points, from the formulas of theory."""
    phi = CENTRES[None, :] - at[:, None]
    m = rho * WIDTH
    match system:
        case af.SA() | af.AngularSA():
            weight = kernel(phi, float(system.beta)) * m
            return (weight * np.sin(phi)).sum(1) / weight.sum(1)
        case af.USA() | af.AngularUSA():
            return (kernel(phi, float(system.beta)) * m * np.sin(phi)).sum(1)
        case af.Kuramoto():
            return 0.5 + 2 * (np.sin(phi) * m).sum(1)
        case af.CircleCoupling():
            return 3 * ((np.sin(phi) + 0.5 * np.cos(2 * phi)) * m).sum(1)


def daido(phi):
    return jnp.sin(phi) + 0.5 * jnp.cos(2 * phi)


SYSTEMS = [
    af.AngularSA(5.0),
    af.SA(5.0),
    af.AngularUSA(5.0),
    af.USA(0.0),
    af.SA(0.0),
    af.Kuramoto(K=2.0, omega=0.5),
    af.CircleCoupling(daido, K=3.0),
]


@pytest.mark.parametrize("system", SYSTEMS, ids=repr)
def test_the_field_is_that_of_the_tokens(system):
    expected = field(system, np.asarray(BUMPY)[:, 0], EDGES)
    scale = np.abs(expected).max()
    # A kernel that is averaged over a cell differs by Δ²/24 of its second derivative.
    np.testing.assert_allclose(
        CircleDensity(system).speeds(BUMPY), expected, atol=5 * WIDTH**2 / 24 * scale * 6
    )


@pytest.mark.parametrize("kind", [af.AngularSA, af.AngularUSA, af.SA, af.USA])
def test_tokens_at_the_centres_of_cells_have_its_velocity(kind):
    """The particle system with the masses of the cells moves a test token as X does."""
    at = 40
    theta = np.append(CENTRES, EDGES[at])[:, None]
    masses = np.append(np.asarray(BUMPY)[:, 0] * WIDTH, 1e-12)
    system = kind(2.0)
    if isinstance(system.space, af.spaces.Circle):
        speed = system.velocity(0.0, jnp.asarray(theta), jnp.asarray(masses))[-1, 0]
    else:
        x = jnp.asarray(np.concatenate([np.cos(theta), np.sin(theta)], axis=1))
        speed = system.velocity(0.0, x, jnp.asarray(masses))[-1] @ jnp.array([-x[-1, 1], x[-1, 0]])
    measured = CircleDensity(system).speeds(BUMPY)[at]
    assert float(measured) == pytest.approx(float(speed), rel=2e-3)


def test_a_number_v_and_noise_act_as_they_do_on_tokens():
    plain = CircleDensity(af.SA(3.0))
    turned = CircleDensity(af.SA(3.0, V=-2.0))
    np.testing.assert_allclose(turned.speeds(BUMPY), -2 * plain.speeds(BUMPY), rtol=1e-12)
    noisy = CircleDensity(af.Noisy(af.SA(3.0), 0.25))
    rho = np.asarray(BUMPY)[:, 0]
    second = (np.roll(rho, -1) - 2 * rho + np.roll(rho, 1)) / WIDTH**2
    added = noisy.velocity(0.0, BUMPY) - plain.velocity(0.0, BUMPY)
    np.testing.assert_allclose(added[:, 0], 0.25 * second, atol=1e-10)


@pytest.mark.parametrize("beta", [0.0, 5.0])
def test_the_energy_is_that_of_tokens_in_the_cells(beta):
    x = jnp.asarray(np.stack([np.cos(CENTRES), np.sin(CENTRES)], axis=1))
    expected = af.observe.energy(x, beta, BUMPY[:, 0])
    assert float(CircleDensity(af.SA(beta)).energy(BUMPY)) == pytest.approx(float(expected), 1e-12)


RUNS = {
    "adaptive": af.Adaptive(),
    "heun": af.Fixed(0.99 * WIDTH / 2, "heun"),  # SA moves nothing faster than 1
    "loose": af.Adaptive(1e-4, 1e-6, solver="tsit5"),
}


@pytest.mark.parametrize(
    "method", ["adaptive", "heun", pytest.param("loose", marks=pytest.mark.slow)]
)
def test_mass_sign_and_growing_energy_up_to_clusters_of_a_cell(method):
    system = CircleDensity(af.SA(20.0))
    run = af.simulate(system, BUMPY, np.linspace(0, 10, 11), method=RUNS[method])
    masses = np.asarray(jax.vmap(system.mass)(run.xs))
    assert np.abs(masses - 1).max() < 1e-12
    assert float(run.xs.min()) >= 0
    energies = np.asarray(jax.vmap(system.energy)(run.xs))
    assert np.all(np.diff(energies) > 0)
    # Nearly all the mass is in a few cells at last.
    heaviest = np.sort(np.asarray(run.final)[:, 0])[::-1]
    assert WIDTH * heaviest[:12].sum() > 0.9


def test_energy_grows_at_every_instant_in_cells(rng):
    """Also for a density that no grid resolves, for SA and for USA."""
    rough = rng.random((N, 1)) ** 8
    rough = jnp.asarray(rough / (rough.sum() * WIDTH))
    for system in (CircleDensity(af.SA(20.0)), CircleDensity(af.USA(3.0))):
        rate = jax.jvp(system.energy, (rough,), (system.velocity(0.0, rough),))[1]
        assert float(rate) > 0


@pytest.mark.parametrize(
    "resolutions", [(128, 256), pytest.param((256, 512, 1024), marks=pytest.mark.slow)]
)
def test_the_order_of_convergence_is_two(resolutions):
    system, ts = af.AngularSA(3.0), [0.0, 1.0]

    def start(cells):
        return meanfield.density(
            lambda x: np.exp(1.5 * np.cos(x)) * (1 + 0.5 * np.cos(2 * x)), cells
        )

    spectral = CircleModes(system)
    smooth = af.simulate(spectral, meanfield.modes(start(512), 63), ts, method=af.Fixed(0.01)).final
    assert float(spectral.tail(smooth)) < 1e-9
    errors = []
    for cells in resolutions:
        method = af.Fixed(np.pi / cells / 2, "heun")
        rho = af.simulate(CircleDensity(system), start(cells), ts, method=method).final
        error = np.abs(np.asarray(rho - spectral.density(smooth, cells)))
        errors.append(2 * np.pi * error.mean())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all((orders > 1.9) & (orders < 2.2)), orders


def test_a_turned_start_gives_a_turned_rate():
    system = CircleDensity(af.Noisy(af.SA(4.0), 0.1))
    turned = system.velocity(0.0, jnp.roll(BUMPY, 7, axis=0))
    np.testing.assert_allclose(turned, jnp.roll(system.velocity(0.0, BUMPY), 7, axis=0), atol=1e-12)


def test_a_new_beta_compiles_nothing():
    traced = []

    @eqx.filter_jit
    def rate(system, x):
        traced.append(None)
        return system.velocity(0.0, x)

    values = [
        rate(CircleDensity(af.Noisy(af.SA(b), s)), BUMPY) for b, s in ((1.0, 0.1), (2.0, 0.2))
    ]
    assert len(traced) == 1
    assert not np.allclose(*values)


def test_single_precision_and_batches():
    system = CircleDensity(af.SA(2.0))
    x = BUMPY.astype(jnp.float32)
    rate = jax.vmap(lambda x: system.velocity(0.0, x))(jnp.stack([x, x]))
    assert rate.dtype == jnp.float32
    np.testing.assert_allclose(rate[1], system.velocity(0.0, BUMPY), atol=2e-4)
    assert system.positions(x).shape == (N, 2)


def test_a_cut_off_density_keeps_its_mass():
    y = BUMPY.at[3, 0].set(-0.01)
    cut = CircleDensity(af.SA(1.0)).retract(y)
    assert float(cut.min()) == 0
    assert float(cut.sum()) == pytest.approx(float(y.sum()), rel=1e-14)
    assert jnp.all(CircleDensity(af.SA(1.0)).retract(BUMPY) == BUMPY)


@pytest.mark.parametrize(
    ("x0", "says"),
    [
        (BUMPY[:, 0], r"shape"),
        (jnp.ones((N, 2)), r"\(N, 1\)"),
        (2 * BUMPY, "mass 1"),
        (BUMPY.at[0, 0].set(-0.1), "negative"),
    ],
)
def test_what_is_no_density_is_refused(untyped, x0, says):
    with pytest.raises(af.InputError, match=says):
        af.simulate(CircleDensity(af.SA(1.0)), x0, [0.0, 1.0])


@pytest.mark.parametrize(
    "system",
    [
        af.PureAttention(),
        af.SA(1.0, V=np.diag([1.0, 2.0])),
        af.SA(1.0, mask="causal"),
        af.Kuramoto(K=1.0, omega=np.arange(3.0)),
        af.Kuramoto(K=1.0, graph=np.ones((3, 3))),
        "SA",
    ],
    ids=str,
)
def test_systems_without_a_density_are_refused(untyped, system):
    with pytest.raises(af.InputError, match="system must"):
        CircleDensity(system)


def test_a_density_has_no_masses_and_a_coupling_no_energy():
    with pytest.raises(af.InputError, match="masses"):
        CircleDensity(af.SA(1.0)).velocity(0.0, BUMPY, jnp.ones(N))
    with pytest.raises(af.InputError, match="energy"):
        CircleDensity(af.Kuramoto(K=1.0)).energy(BUMPY)
