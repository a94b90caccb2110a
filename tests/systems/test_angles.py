"""Angles on the circle: the flows of SA and USA, and the sums of [P](7.1), (7.2) and (7.5)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
import reference
from attnflow.report import summarise
from attnflow.weights.couplings import Exponential, Harmonics

N = 7
RNG = np.random.default_rng(3)
THETA = RNG.uniform(-4, 9, N)
OMEGA = RNG.normal(size=N)
GRAPH = RNG.uniform(size=(N, N)) * (RNG.uniform(size=(N, N)) < 0.5)
MASSES = RNG.uniform(0.2, 3, N)
SAKAGUCHI = Harmonics(sin=np.array([np.cos(0.4), 0.3]), cos=-np.sin(np.array([0.4])))
ALL = {
    "AngularSA": af.AngularSA(2.5),
    "AngularUSA": af.AngularUSA(2.5),
    "Kuramoto": af.Kuramoto(1.7, OMEGA),
    "Kuramoto on a graph": af.Kuramoto(1.7, OMEGA, GRAPH),
    "CircleCoupling": af.CircleCoupling(SAKAGUCHI, 1.7, OMEGA),
}
each = pytest.mark.parametrize("name", ALL)


def literal(name, theta, masses=None, omega=OMEGA, graph=GRAPH):
    """The equations as they are written, term by term."""
    n = len(theta)
    m = np.ones(n) if masses is None else masses
    speeds = []
    for i in range(n):
        ahead = [theta[j] - theta[i] for j in range(n)]
        if name.startswith("Angular"):
            weights = [m[j] * np.exp(2.5 * np.cos(ahead[j])) for j in range(n)]
            below = sum(weights) if name == "AngularSA" else sum(m)
            speeds.append(sum(w * np.sin(a) for w, a in zip(weights, ahead, strict=True)) / below)
            continue
        if name == "CircleCoupling":
            pulls = [np.sin(a - 0.4) + 0.3 * np.sin(2 * a) for a in ahead]
        else:
            pulls = np.sin(ahead) * (graph[i] if "graph" in name else 1)
        speeds.append(omega[i] + 1.7 / sum(m) * sum(m[j] * pulls[j] for j in range(n)))
    return np.array(speeds)[:, None]


@each
@pytest.mark.parametrize("masses", [None, MASSES], ids=["equal", "masses"])
def test_velocities_are_the_sums_of_the_paper(name, masses):
    m = None if masses is None else jnp.asarray(masses)
    ours = ALL[name].velocity(0.0, jnp.asarray(THETA)[:, None], m)
    assert np.abs(ours - literal(name, THETA, masses)).max() < 1e-13


PAIRS = [(af.AngularSA, af.SA), (af.AngularUSA, af.USA)]


@pytest.mark.parametrize(("angular", "sphere"), PAIRS)
def test_angular_speeds_are_those_of_tokens_on_the_circle(angular, sphere):
    x, m = jnp.asarray(THETA)[:, None], jnp.asarray(MASSES)
    tokens = angular(3.0).positions(x)
    along = np.column_stack([-tokens[:, 1], tokens[:, 0]])
    theirs = sphere(3.0).velocity(0.0, tokens, m)
    assert np.abs(angular(3.0).velocity(0.0, x, m) * along - theirs).max() < 1e-13


@pytest.mark.parametrize(
    ("angular", "sphere"), [PAIRS[0], pytest.param(*PAIRS[1], marks=pytest.mark.slow)]
)
def test_angles_follow_the_flow_of_attention_on_the_circle(angular, sphere):
    x0 = af.initial.sphere(n=12, d=2, key=0)
    theta0 = np.arctan2(x0[:, 1], x0[:, 0])[:, None]
    ts, method = np.linspace(0, 8, 5), af.Adaptive(rtol=1e-11, atol=1e-12)
    m = np.linspace(0.5, 2, 12)
    ours = af.simulate(angular(3.0), theta0, ts, method=method, masses=m).positions
    theirs = af.simulate(sphere(3.0), x0, ts, method=method, masses=m).xs
    assert np.abs(ours - theirs).max() < 1e-9


@pytest.mark.parametrize("angular", [af.AngularSA, af.AngularUSA])
def test_close_tokens_keep_the_digits_of_their_distance(angular):
    gap = 1e-13
    velocity = angular(4.0).velocity(0.0, jnp.array([[0.0], [gap]]))[:, 0]
    rate = float(velocity[1] - velocity[0]) / gap
    linear = -1.0 if angular is af.AngularSA else -np.exp(4.0)
    assert rate == pytest.approx(linear, rel=1e-12)


def test_beta_zero_is_kuramoto_and_attention_is_a_coupling():
    x = jnp.asarray(THETA)[:, None]
    kuramoto = af.Kuramoto(1).velocity(0.0, x)
    for other in (af.AngularUSA(0.0), af.AngularSA(0.0), af.CircleCoupling(jnp.sin, 1)):
        assert np.abs(other.velocity(0.0, x) - kuramoto).max() < 1e-15
    whole = af.Kuramoto(1.0, graph=np.ones((N, N), bool))
    assert np.abs(whole.velocity(0.0, x) - kuramoto).max() < 1e-15
    coupled = af.CircleCoupling(Exponential(2.5), 1.0).velocity(0.0, x)
    assert np.abs(coupled - af.AngularUSA(2.5).velocity(0.0, x)).max() < 1e-14


@each
def test_turning_all_angles_or_one_by_a_full_turn_changes_no_speed(name):
    x = jnp.asarray(THETA)[:, None]
    speed = ALL[name].velocity(0.0, x)
    assert np.abs(ALL[name].velocity(0.0, x + 1.234) - speed).max() < 1e-13
    assert np.abs(ALL[name].velocity(0.0, x.at[2].add(2 * np.pi)) - speed).max() < 1e-13


@each
def test_permuted_tokens_move_alike(name):
    order = np.random.default_rng(0).permutation(N)
    system = ALL[name]
    moved = {
        "Kuramoto": lambda: af.Kuramoto(1.7, OMEGA[order]),
        "Kuramoto on a graph": lambda: af.Kuramoto(1.7, OMEGA[order], GRAPH[np.ix_(order, order)]),
        "CircleCoupling": lambda: af.CircleCoupling(SAKAGUCHI, 1.7, OMEGA[order]),
    }.get(name, lambda: system)()
    x = jnp.asarray(THETA)[:, None]
    assert np.abs(moved.velocity(0.0, x[order]) - system.velocity(0.0, x)[order]).max() < 1e-14


@each
def test_equal_tokens_move_as_one_token_with_a_mass(name):
    counts = np.array([1, 3, 2, 1, 1, 1, 2])
    spread = np.repeat(np.arange(N), counts)
    x = jnp.asarray(THETA)[:, None]
    heavy = ALL[name].velocity(0.0, x, jnp.asarray(counts, float))
    many = {
        "Kuramoto": lambda: af.Kuramoto(1.7, OMEGA[spread]),
        "Kuramoto on a graph": lambda: af.Kuramoto(
            1.7, OMEGA[spread], GRAPH[np.ix_(spread, spread)]
        ),
        "CircleCoupling": lambda: af.CircleCoupling(SAKAGUCHI, 1.7, OMEGA[spread]),
    }.get(name, lambda: ALL[name])()
    assert np.abs(many.velocity(0.0, x[spread]) - heavy[spread]).max() < 1e-14


@each
def test_single_precision_integers_jit_and_batches(name):
    system = ALL[name]
    x = jnp.asarray(THETA, np.float32)[:, None]
    single = system.velocity(0.0, x, jnp.asarray(MASSES, np.float32))
    assert single.dtype == np.float32
    assert np.abs(np.asarray(single) - literal(name, THETA, MASSES)).max() < 1e-4
    assert system.positions(x).dtype == np.float32
    whole = jnp.arange(N)[:, None]
    assert np.array_equal(system.velocity(0.0, whole), system.velocity(0.0, whole.astype(float)))
    both = jnp.stack([jnp.asarray(THETA), jnp.asarray(THETA) / 2])[..., None]
    fast = jax.jit(jax.vmap(lambda x: system.velocity(0.0, x)))(both)
    assert np.abs(fast[1] - system.velocity(0.0, both[1])).max() < 1e-14


def test_a_new_strength_compiles_nothing():
    traced = []

    def speed(system, x):
        traced.append(1)
        return system.velocity(0.0, x)

    compiled, x = jax.jit(speed), jnp.asarray(THETA)[:, None]
    for K in (1.0, 2.0, 3.0):
        compiled(af.Kuramoto(K, OMEGA * K, GRAPH), x)
    assert len(traced) == 1
    for beta in (1.0, 2.0):
        compiled(af.CircleCoupling(Exponential(beta), 1.0), x)
        compiled(af.AngularSA(beta), x)
    assert len(traced) == 3


def test_a_batch_follows_the_equations_member_by_member():
    x0 = af.initial.angles(n=N, key=0, batch=2)
    ts = [0.0, 1.0, 3.0]
    batch = af.simulate(ALL["Kuramoto on a graph"], x0, ts, method=af.Fixed(0.02))
    for ours, start in zip(batch.xs, x0, strict=True):
        theirs = reference.integrate(
            lambda t, x: literal("Kuramoto on a graph", x[:, 0]), start, ts, rtol=1e-9, atol=1e-9
        )
        assert np.abs(ours - theirs).max() < 1e-7
    assert batch.positions.shape == (2, 3, N, 2)
    assert np.allclose(batch.positions[1, 2, :, 0], np.cos(batch.xs[1, 2, :, 0]), atol=1e-15)


def test_clusters_of_a_run_are_those_on_the_circle():
    turns = jnp.array([[0.0], [2 * np.pi], [3.0], [3.0 - 4 * np.pi]])
    run = af.Trajectory(
        ts=jnp.array([0.0, 1.0]),
        xs=jnp.stack([turns, turns]),
        final=turns,
        masses=None,
        steps=jnp.array(1),
        rejected=jnp.array(0),
        system=af.AngularSA(1.0),
        method=af.Fixed(1.0),
    )
    assert af.observe.cluster_history(run).counts.tolist() == [2, 2]
    report = summarise(run)
    assert (report.clusters, report.d, report.order) == ([2, 2], 2, None)
    assert report.energy[0] == pytest.approx(float(af.observe.energy(run.positions[0], 1.0)))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: af.Kuramoto(np.ones(2)), "K must be a single real number"),
        (lambda: af.Kuramoto(np.nan), "K must be finite"),
        (lambda: af.AngularSA(np.inf), "beta must be finite"),
        (lambda: af.Kuramoto(1.0, np.eye(2)), r"omega must be a number or a vector \(n,\)"),
        (lambda: af.Kuramoto(1.0, [0.0, np.inf]), r"omega must be finite.*\(1,\)"),
        (lambda: af.Kuramoto(1.0, [1j]), "omega must hold real numbers"),
        (lambda: af.Kuramoto(1.0, "fast"), "omega must hold numbers"),
        (lambda: af.Kuramoto(1.0, graph=np.ones((2, 3))), r"graph must be a matrix \(n, n\)"),
        (lambda: af.CircleCoupling(2.0, 1.0), "h must be a function of an angle"),
        (lambda: af.CircleCoupling(jnp.sum, 1.0), "h must give one number for each angle"),
        (lambda: af.CircleCoupling(lambda a: a @ a, 1.0), "h must be a JAX function"),
        (lambda: Harmonics(), "sin and cos are both empty"),
        (lambda: Harmonics(sin=[[1.0]]), "sin must be a list of coefficients"),
    ],
)
def test_what_a_system_is_not_made_of(make, said, untyped):
    with pytest.raises(af.InputError, match=said):
        make()


@pytest.mark.parametrize(
    ("system", "x0", "said"),
    [
        (af.AngularSA(1.0), np.eye(2), r"x0 must have shape \(n, 1\).*arctan2"),
        (af.Kuramoto(1.0, np.ones(3)), np.ones((4, 1)), "4 tokens, but omega is for 3"),
        (af.Kuramoto(1.0, graph=np.eye(3)), np.ones((4, 1)), "4 tokens, but graph is for 3"),
    ],
)
def test_starts_that_do_not_fit(system, x0, said):
    with pytest.raises(af.InputError, match=said):
        af.simulate(system, x0, [0.0, 1.0])


def test_tokens_instead_of_angles_are_refused_by_the_velocity_too():
    with pytest.raises(af.InputError, match=r"x must have shape \(n, 1\)"):
        af.AngularSA(1.0).velocity(0.0, jnp.eye(2))


def test_merging_is_refused():
    with pytest.raises(af.InputError, match="Coarsening does not work"):
        af.simulate(af.AngularSA(1.0), np.ones((2, 1)), [0.0, 1.0], method=af.Coarsening())


def test_repr_names_what_is_not_default():
    assert repr(af.Kuramoto(2.0)) == "Kuramoto(K=2)"
    assert repr(ALL["Kuramoto on a graph"]) == "Kuramoto(K=1.7, omega=array(7,), graph=array(7, 7))"
    assert repr(ALL["CircleCoupling"]) == "CircleCoupling(h=Harmonics, K=1.7, omega=array(7,))"
    assert repr(af.AngularUSA(1)) == "AngularUSA(beta=1)"
