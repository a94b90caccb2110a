import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.attention import (
    Blocked,
    Softmax,
    Spectral,
    Task,
    Unnormalised,
    as_mask,
    attend,
    harmonics,
)
from attnflow.errors import InputError

N = 600
KINDS = [Softmax(), Unnormalised()]
EVERY = 1e9
every_sphere = pytest.mark.parametrize("d", [2, 3])
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: type(kind).__name__)


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def configuration(name, d, n=N, key=0):
    rng = np.random.default_rng(key)
    if name == "random":
        return unit(rng.normal(size=(n, d)))
    centres = unit(rng.normal(size=(4, d)))
    if name == "clustered":
        return unit(centres[rng.integers(0, 4, n)] + 1e-3 * rng.normal(size=(n, d)))
    x = np.tile(np.eye(d)[-1], (n, 1))
    x[0] = -x[0]
    return x


def dense(x, v, beta, kind, masses=None):
    """The plain sum in extended precision."""
    x, v = x.astype(np.longdouble), v.astype(np.longdouble)
    m = np.ones(len(x)) if masses is None else np.asarray(masses)
    weights = np.exp(beta * (x @ x.T) - beta) * m
    if isinstance(kind, Softmax):
        return (weights @ v) / weights.sum(axis=1)[:, None]
    return np.exp(np.longdouble(beta)) * (weights @ v) / m.sum()


def task(x, v, beta, kind, masses=None):
    x, v = jnp.asarray(x), jnp.asarray(v)
    return Task(x, x, v, jnp.asarray(beta, x.dtype), masses, None, kind, unit=True)


def largest_error(got, want):
    return float(np.max(np.linalg.norm(np.asarray(got) - want, axis=1).astype(float)))


@jax.jit
def means_and_bound(task):
    backend = Spectral(degree=128, tol=EVERY)
    return backend.means(task), backend.error_bound(task)


@pytest.mark.slow
@every_sphere
@every_kind
@pytest.mark.parametrize("name", ["random", "clustered", "opposite"])
def test_means_are_the_dense_sum_within_the_bound(d, kind, name):
    x = configuration(name, d)
    rng = np.random.default_rng(1)
    v, masses = rng.normal(size=(N, d)), jnp.asarray(rng.uniform(0.5, 2, N))
    for beta in (0.1, 1.0, 9.0, 30.0, 100.0):
        got, bound = means_and_bound(task(x, v, beta, kind, masses))
        error = largest_error(got, dense(x, v, beta, kind, masses))
        assert error <= bound
        if name != "opposite":
            assert error <= 1e-12 * float(kind.scale(jnp.array(beta)))


@pytest.mark.slow
@every_sphere
def test_the_bound_sees_a_lonely_token(d):
    """One token against n others: the sum is as exact as ever, the token's mean is not."""
    lonely, crowd = (configuration(name, d) for name in ("opposite", "clustered"))
    bounds = [means_and_bound(task(x, x, 30.0, Softmax()))[1] for x in (lonely, crowd)]
    assert bounds[0] > 50 * bounds[1]


def test_a_light_token_that_drowns_in_rounding_is_left_to_blocks():
    x, masses = configuration("opposite", 2), jnp.ones(N).at[0].set(1e-16)
    asked = task(x, np.flip(x, 1), 100.0, Softmax(), masses)
    assert np.isinf(Spectral(degree=128).error_bound(asked))
    got = Spectral(degree=128).means(asked)
    np.testing.assert_allclose(got, dense(x, np.flip(x, 1), 100.0, Softmax(), masses), rtol=1e-12)


@every_sphere
def test_the_bound_sees_that_degrees_are_missing(d):
    x = configuration("random", d)
    few = Spectral(degree=16, tol=EVERY)
    hot, cold = (few.error_bound(task(x, x, beta, Softmax())) for beta in (0.1, 30.0))
    assert hot < 1e-12 < 1e-3 < cold
    got = few.means(task(x, x, 30.0, Softmax()))
    assert 1e-6 < largest_error(got, dense(x, x, 30.0, Softmax())) <= cold


@every_sphere
def test_where_the_bound_is_too_large_blocks_take_over(d):
    x = configuration("random", d)
    asked = task(x, x, 30.0, Softmax())
    got = Spectral(degree=16).means(asked)
    np.testing.assert_allclose(got, Blocked().means(asked), rtol=1e-13)
    assert np.isinf(Spectral(degree=16).error_bound(asked))


@pytest.mark.parametrize("beta", [1.0, 20.0, 200.0, 1e5])
def test_the_number_of_degrees_follows_beta(beta):
    """Sizes 32, 128 and 512 on the circle, and blocks beyond them, in one compiled function."""
    x = configuration("random", 2, n=2100)
    got = choosing(jnp.asarray(x), beta)
    atol = 1e-12 if beta < 1e4 else 1e-9
    np.testing.assert_allclose(got, dense(x, x, beta, Softmax()), atol=atol)


@jax.jit
def choosing(x, beta):
    return attend(x, x, x, beta=beta, unit=True)


def test_a_new_beta_compiles_nothing(caplog):
    x = jnp.asarray(configuration("random", 2, n=2100))
    choosing(x, 1.0)
    with jax.log_compiles():
        for beta in (2.0, 30.0, 300.0):
            choosing(x, beta)
        assert "Compiling" not in caplog.text
        choosing(x[:2090], 1.0)
        assert "Compiling" in caplog.text


@pytest.mark.slow
@every_sphere
@every_kind
def test_gradients_are_the_dense_ones(d, kind):
    x, masses = jnp.asarray(configuration("random", d, n=40)), jnp.linspace(1, 2, 40)

    def total(backend, x, v, masses, beta):
        x = x / jnp.linalg.norm(x, axis=1, keepdims=True)
        means = attend(x, x, v, beta=beta, kind=kind, masses=masses, unit=True, backend=backend)
        return jnp.sum(jnp.sin(means))

    gradient = jax.jit(jax.grad(total, argnums=(1, 2, 3, 4)), static_argnums=0)
    point = (x, jnp.flip(x, 0), masses, jnp.array(2.0))
    ours, theirs = gradient(Spectral(degree=24), *point), gradient(Blocked(), *point)
    for mine, yours in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, yours, atol=1e-11)


@every_sphere
def test_single_precision(d):
    x = configuration("random", d).astype(np.float32)
    got = Spectral(degree=24).means(task(x, x, 4.0, Softmax()))
    assert got.dtype == jnp.float32
    np.testing.assert_allclose(got, dense(x, x, 4.0, Softmax()), atol=5e-7)
    assert Spectral(degree=24).error_bound(task(x, x, 4.0, Softmax())) < 1e-6


def temporaries(n, d):
    def means(x):
        return attend(x, x, x, beta=4.0, unit=True, backend=Spectral(degree=24, tol=EVERY))

    compiled = jax.jit(means).lower(jax.ShapeDtypeStruct((n, d), float)).compile()
    return compiled.memory_analysis().temp_size_in_bytes


def test_memory_beyond_a_million_tokens_grows_like_n():
    one, two = (temporaries(n * 10**6, 2) for n in (1, 2))
    assert two < 2**30
    assert two - one < 200 * 10**6


@every_sphere
def test_the_flow_is_that_of_the_dense_sum(d):
    x0 = configuration("random", d, n=300)
    finals = [
        af.simulate(af.SA(4.0, backend=b), x0, [0.0, 1.0]).final
        for b in (Spectral(degree=24), "dense")
    ]
    np.testing.assert_allclose(*finals, atol=1e-7)


def test_large_systems_on_small_spheres_are_spectral_by_themselves():
    for d, spectral in ((2, True), (3, True), (4, False)):
        for system, wanted in ((af.SA(4.0), spectral), (af.SA(4.0, mask="causal"), False)):
            traced = jax.make_jaxpr(lambda x, s=system: s.velocity(0.0, x))(np.ones((2100, d)))
            assert ("branches" in str(traced)) == wanted


@pytest.mark.parametrize(
    "system",
    [
        af.SA(1.0, backend="spectral", mask="causal"),
        af.SA(1.0, backend="spectral", Q=np.diag([1.0, 2.0])),
        af.PureAttention(backend="spectral"),
    ],
    ids=["mask", "Q", "space"],
)
def test_what_is_no_kernel_on_a_sphere_is_refused(system):
    with pytest.raises(InputError, match="spectral sums are for scores"):
        af.simulate(system, np.eye(2), [0.0, 1.0])


def test_four_dimensions_are_refused():
    x = jnp.eye(4)
    with pytest.raises(InputError, match=r"here in R\^4"):
        attend(x, x, x, unit=True, backend=Spectral())


def test_a_mask_is_refused():
    x = jnp.eye(2)
    with pytest.raises(InputError, match="without a mask"):
        attend(x, x, x, unit=True, mask=as_mask("causal"), backend=Spectral())


@pytest.mark.parametrize("options", [{"degree": 3}, {"tol": 0.0}])
def test_options_are_checked(options):
    with pytest.raises(InputError, match=next(iter(options))):
        Spectral(**options)


def test_the_old_name_of_tol_is_refused():
    with pytest.raises(TypeError, match=r"Spectral.* is called 'tol' now"):
        Spectral(tolerance=1e-9)
    with pytest.raises(AttributeError, match="tolerance is called tol now"):
        Spectral().tolerance


def test_reaches_grow():
    assert harmonics.reach(24, 3, 1e-16) > 4
    assert harmonics.reach(32, 2, 1e-16) > 9
