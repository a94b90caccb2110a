import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from attnflow.attention import (
    BACKENDS,
    Blocked,
    Dense,
    Softmax,
    Spectral,
    Unnormalised,
    as_mask,
    attend,
    attention_weights,
)
from attnflow.attention.backends import MAX_DENSE_SCORES, as_backend, choose
from attnflow.errors import InputError

KINDS = [Softmax(), Unnormalised()]
BACKEND_CHOICES = [Dense(), Blocked(), Blocked(4)]
SIZES = [(1, 2, 3), (13, 3, 2), (5, 17, 3)]
examples = settings(deadline=None, max_examples=6, derandomize=True)
keys = st.integers(0, 2**32 - 1)
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: type(kind).__name__)
every_backend = pytest.mark.parametrize("backend", BACKEND_CHOICES, ids=str)


def inputs(key, n=7, d=3, k=2):
    rng = np.random.default_rng(key)
    q, key, v = rng.normal(size=(n, k)), rng.normal(size=(n, k)), rng.normal(size=(n, d))
    masses = rng.uniform(0.1, 5, size=n)
    return tuple(jnp.asarray(a) for a in (q, key, v, masses))


def random_mask(key, n):
    return (np.random.default_rng(key).random((n, n)) < 0.4) | np.eye(n, dtype=bool)


def matrix(q, k, beta, kind, masses=None, mask=None):
    """A from the reference, whose scores <Q x_i, K x_j> are these for x_i = (q_i, k_i)."""
    width = q.shape[1]
    x = np.hstack([q, k])
    Q, K = np.eye(2 * width)[:width], np.eye(2 * width)[width:]
    normalised = isinstance(kind, Softmax)
    return reference.attention_matrix(x, Q, K, beta, masses, mask, normalised)


def close(got, A, v, rtol=1e-12):
    """Sums with cancellation are as exact as the sum of the sizes of their terms."""
    assert np.all(np.abs(got - A @ v) <= rtol * (A @ np.abs(v)))


@every_kind
@every_backend
@given(
    key=keys,
    size=st.sampled_from(SIZES),
    beta=st.floats(-4, 4),
    weighted=st.booleans(),
    masking=st.sampled_from([None, "causal", "random"]),
)
@examples
def test_means_are_those_of_the_reference(kind, backend, key, size, beta, weighted, masking):
    n = size[0]
    q, k, v, masses = inputs(key, *size)
    masses = masses if weighted else None
    allowed = {None: None, "causal": np.tri(n, dtype=bool), "random": random_mask(key, n)}[masking]
    mask = as_mask("causal" if masking == "causal" else allowed)
    options = {"beta": beta, "kind": kind, "mask": mask, "masses": masses}
    A = matrix(q, k, beta, kind, masses, allowed)
    close(attend(q, k, v, backend=backend, **options), A, v)
    np.testing.assert_allclose(attention_weights(q, k, **options), A, rtol=1e-12, atol=0)


def test_defaults_are_softmax_at_one():
    q, k, v, _ = inputs(0)
    close(attend(q, k, v), matrix(q, k, 1.0, Softmax()), v)
    np.testing.assert_array_equal(attention_weights(q, k), attention_weights(q, k, beta=1))


@pytest.mark.parametrize("backend", [Dense(), Blocked(4)], ids=str)
@pytest.mark.parametrize("beta", [1e2, 1e4, -1e4])
def test_softmax_stays_finite_at_any_temperature(backend, beta):
    q, k, v, masses = inputs(0)
    got = attend(q, k, v, beta=beta, masses=masses, backend=backend)
    assert np.all(np.isfinite(got))
    close(got, matrix(q, k, beta, Softmax(), masses), v, rtol=1e-10)


@every_backend
def test_gradients_stay_finite_under_a_mask_at_low_temperature(backend):
    q, k, v, masses = inputs(0)

    def total(q, k, v, masses):
        means = attend(q, k, v, beta=1e4, masses=masses, mask=as_mask("causal"), backend=backend)
        return jnp.sum(means**2)

    for gradient in jax.jit(jax.grad(total, argnums=(0, 1, 2, 3)))(q, k, v, masses):
        assert np.all(np.isfinite(gradient))


@given(key=keys)
@examples
def test_rows_of_softmax_sum_to_one(key):
    q, k, _, masses = inputs(key)
    mask = as_mask(random_mask(key, 7))
    A = attention_weights(q, k, beta=3.0, masses=masses, mask=mask)
    np.testing.assert_allclose(A.sum(axis=1), 1, rtol=1e-14)
    assert np.all(np.asarray(A)[~np.asarray(mask.allowed)] == 0)


@every_kind
@given(key=keys)
@examples
def test_permuting_tokens_permutes_means(kind, key):
    q, k, v, masses = inputs(key)
    p = np.random.default_rng(key).permutation(7)
    straight = attend(q, k, v, kind=kind, masses=masses)
    permuted = attend(q[p], k[p], v[p], kind=kind, masses=masses[p])
    np.testing.assert_allclose(permuted, straight[p], rtol=1e-11, atol=1e-13)


@every_kind
@every_backend
def test_a_token_of_mass_m_is_m_tokens(kind, backend):
    q, k, v, _ = inputs(0, n=4)
    times = np.array([1, 3, 2, 1])
    split = attend(*(jnp.repeat(a, times, axis=0) for a in (q, k, v)), kind=kind, backend=backend)
    whole = attend(q, k, v, kind=kind, masses=jnp.asarray(times, float), backend=backend)
    np.testing.assert_allclose(split, np.repeat(whole, times, axis=0), rtol=1e-12)


@every_kind
@every_backend
def test_a_token_of_mass_zero_is_not_there(kind, backend):
    q, k, v, masses = inputs(0)
    masses = masses.at[2].set(0.0)
    rest = np.delete(np.arange(7), 2)
    got = attend(q, k, v, kind=kind, masses=masses, backend=backend)
    want = attend(q[rest], k[rest], v[rest], kind=kind, masses=masses[rest])
    np.testing.assert_allclose(got[rest], want, rtol=1e-12)


@every_backend
def test_a_huge_score_of_mass_zero_is_not_felt(backend):
    q, k, v, masses = inputs(0)
    masses, far = masses.at[2].set(0.0), k.at[2].set(1e6)
    got = attend(q, far, v, masses=masses, backend=backend)
    np.testing.assert_allclose(got, attend(q, k, v, masses=masses), rtol=1e-12)


@every_kind
def test_whoever_has_nobody_to_attend_to_gets_nothing(kind):
    q, k, v, _ = inputs(0)
    masses = jnp.ones(7).at[0].set(0.0)
    options = {"kind": kind, "masses": masses, "mask": as_mask("causal")}
    np.testing.assert_array_equal(attend(q, k, v, **options)[0], 0)
    np.testing.assert_array_equal(attention_weights(q, k, **options)[0], 0)


def test_unnormalised_divides_by_the_total_mass_under_a_mask_too():
    q, k, _, masses = inputs(0)
    A = attention_weights(
        q, k, beta=0.0, kind=Unnormalised(), masses=masses, mask=as_mask("causal")
    )
    np.testing.assert_allclose(A, np.tri(7) * masses / masses.sum(), rtol=1e-14)


@every_kind
@pytest.mark.parametrize("masking", [None, "causal", "random"])
@pytest.mark.parametrize("block", [3, 256])
def test_blocked_gradients_are_the_dense_ones(kind, masking, block):
    mask = as_mask(random_mask(1, 7) if masking == "random" else masking)

    def total(backend, q, k, v, masses, beta):
        means = attend(q, k, v, beta=beta, kind=kind, mask=mask, masses=masses, backend=backend)
        return jnp.sum(jnp.sin(means))

    point = (*inputs(0), jnp.array(1.5))
    gradient = jax.jit(jax.grad(total, argnums=(1, 2, 3, 4, 5)))
    for blocked, dense in zip(
        gradient(Blocked(block), *point), gradient(Dense(), *point), strict=True
    ):
        np.testing.assert_allclose(blocked, dense, rtol=1e-12, atol=1e-14)


@every_kind
def test_gradients_are_differences(kind):
    q, k, v, masses = inputs(0)
    mask = as_mask("causal")

    def total(s):
        means = attend(
            q + s * k, k, v * (1 + s), beta=1 + s, kind=kind, mask=mask, masses=masses + s * s
        )
        return jnp.sum(means**2)

    h = 1e-5
    difference = (total(0.3 + h) - total(0.3 - h)) / (2 * h)
    assert jax.jit(jax.grad(total))(0.3) == pytest.approx(float(difference), rel=1e-7)


@every_kind
@every_backend
def test_float32_stays_float32(kind, backend):
    q, k, v, masses = (a.astype(jnp.float32) for a in inputs(0))
    means = attend(q, k, v, beta=2.0, kind=kind, masses=masses, backend=backend)
    assert means.dtype == jnp.float32
    assert attention_weights(q, k, beta=2.0, kind=kind).dtype == jnp.float32
    A = matrix(q.astype(float), k.astype(float), 2.0, kind, masses.astype(float))
    close(means.astype(float), A, v.astype(float), rtol=1e-5)


@pytest.mark.parametrize("backend", [Dense(), Blocked(4)], ids=str)
def test_vmap_over_replicates_and_temperatures(backend):
    stacks = [jnp.stack(parts) for parts in zip(*(inputs(s)[:3] for s in range(3)), strict=True)]
    betas = jnp.array([0.5, 1.0, 2.0])
    got = jax.vmap(lambda q, k, v, b: attend(q, k, v, beta=b, backend=backend))(*stacks, betas)
    for i in range(3):
        q, k, v = (stack[i] for stack in stacks)
        np.testing.assert_allclose(got[i], attend(q, k, v, beta=betas[i]), rtol=1e-12, atol=1e-14)


def test_a_second_call_compiles_nothing(caplog):
    q, k, v, _ = inputs(0)
    attend(q, k, v, beta=1.0, backend=Blocked(4))
    with jax.log_compiles():
        attend(k, q, v, beta=2.0, backend=Blocked(4))
        assert "Compiling" not in caplog.text
        attend(k, q, v, beta=2.0, backend=Blocked(5))
        assert "Compiling" in caplog.text


def temporaries(backend, n, differentiate=False):
    def means(x):
        return attend(x, x, x, beta=4.0, backend=backend)

    run = jax.grad(lambda x: means(x).sum()) if differentiate else means
    compiled = jax.jit(run).lower(jax.ShapeDtypeStruct((n, 3), float)).compile()
    return compiled.memory_analysis().temp_size_in_bytes


@pytest.mark.parametrize("differentiate", [False, True], ids=["means", "gradient"])
def test_blocked_memory_grows_like_n(differentiate):
    half, whole = (temporaries(Blocked(), n, differentiate) for n in (10_000, 20_000))
    assert whole < 2**30
    assert 1.5 < whole / half < 2.5


def test_a_block_of_a_huge_system_has_fewer_rows():
    held = [Blocked().scores_held(n) for n in (10**5, 10**6, 10**7)]
    assert held[0] == 256 * 10**5
    assert max(held[1:]) <= 2**25


def test_dense_memory_grows_like_n_squared():
    half, whole = (temporaries(Dense(), n) for n in (2_000, 4_000))
    assert whole >= 8 * 4_000**2
    assert 3 < whole / half < 5


def test_blocked_memory_grows_like_the_block():
    few, many = (temporaries(Blocked(block), 10_000) for block in (64, 512))
    assert 4 < many / few < 12


@pytest.mark.parametrize(
    ("backend", "held"), [(Dense(), 10_000), (Blocked(30), 3_000), (Blocked(256), 10_000)]
)
def test_scores_held(backend, held):
    assert backend.scores_held(100) == held


@pytest.mark.parametrize(("heads", "most"), [(None, 1024), (4, 512)])
def test_the_choice_is_by_the_number_of_scores(heads, most):
    assert (heads or 1) * most**2 == MAX_DENSE_SCORES
    assert isinstance(choose(most, heads), Dense)
    assert isinstance(choose(most + 1, heads), Blocked)


def test_attend_chooses_for_itself():
    n = 2049
    x = jnp.asarray(np.random.default_rng(0).normal(size=(n, 2)))
    traced = str(jax.make_jaxpr(lambda x: attend(x, x, x))(x))
    assert f"f64[{n},{n}]" not in traced
    assert f"f64[256,{n}]" in traced


def test_backends_by_name():
    assert {"dense": Dense, "blocked": Blocked, "spectral": Spectral} == BACKENDS
    assert isinstance(as_backend("dense"), Dense)
    assert as_backend("blocked").block == 256
    mine = Blocked(8)
    assert as_backend(mine) is mine
    assert as_backend(None) is None


def test_an_unknown_backend_gets_the_nearest():
    with pytest.raises(InputError, match="unknown backend 'blokced': did you mean 'blocked'"):
        as_backend("blokced")


@pytest.mark.parametrize("bad", [3, Blocked, True])
def test_a_backend_is_a_name_or_itself(bad):
    with pytest.raises(InputError, match="backend must be a name or a Backend"):
        as_backend(bad)


@pytest.mark.parametrize("block", [0, -1])
def test_a_block_is_a_count(block):
    with pytest.raises(InputError, match="block must be a whole number"):
        Blocked(block)
