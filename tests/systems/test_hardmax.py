"""The hardmax field, the smooth field (9.4), and how the one becomes the other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
import reference

RNG = np.random.default_rng(2)
Q, K, V = (RNG.normal(size=(2, 3)), RNG.normal(size=(2, 3)), RNG.normal(size=(3, 3)))
X = RNG.normal(size=(6, 3))
M = RNG.uniform(0.3, 3, 6)


def literal(x, A, V):
    """`Σ_j A_ij V (z_j − z_i)`, term by term."""
    return np.array(
        [sum(A[i, j] * V @ (x[j] - x[i]) for j in range(len(x))) for i in range(len(x))]
    )


@pytest.mark.parametrize("masses", [None, M])
def test_consensus_attention_is_the_equation(masses):
    m = None if masses is None else jnp.asarray(masses)
    ours = af.ConsensusAttention(Q=Q, K=K, V=V, beta=1.3).velocity(0.0, jnp.asarray(X), m)
    A = reference.attention_matrix(X, Q, K, 1.3, masses)
    assert np.abs(ours - literal(X, A, V)).max() < 1e-12


def test_heads_of_consensus_attention_add_up():
    Vs = RNG.normal(size=(2, 3, 3))
    together = af.ConsensusAttention(Q=Q, K=K, V=Vs).velocity(0.0, jnp.asarray(X))
    each = [af.ConsensusAttention(Q=Q, K=K, V=W).velocity(0.0, jnp.asarray(X)) for W in Vs]
    assert np.abs(together - sum(each)).max() < 1e-12
    layer = af.ConsensusAttention(Q=Q, K=K, V=V).layer(0, jnp.asarray(X), 0.1)
    step = X + 0.1 * af.ConsensusAttention(Q=Q, K=K, V=V).velocity(0.0, jnp.asarray(X))
    assert np.abs(layer - step).max() < 1e-13


@pytest.mark.parametrize("t", [0.0, 0.7, 1.5])
def test_rescaled_attention_is_consensus_attention_that_sharpens(t):
    """For V = λI, E4 at time t is (9.4) at the inverse temperature e^{2λt}."""
    rate = 0.8
    rescaled = af.RescaledAttention(Q=Q, K=K, V=rate).velocity(t, jnp.asarray(X), jnp.asarray(M))
    beta = np.exp(2 * rate * t)
    consensus = af.ConsensusAttention(Q=Q, K=K, V=rate, beta=beta)
    ours = consensus.velocity(0.0, jnp.asarray(X), jnp.asarray(M))
    assert np.abs(rescaled - ours).max() < 1e-12 * beta


def test_hardmax_is_the_mean_over_the_argmax():
    scores = (X @ Q.T) @ (X @ K.T).T
    A = np.eye(6)[scores.argmax(axis=1)]
    system = af.Hardmax(Q=Q, K=K, V=V)
    assert (
        np.abs(jax.jit(lambda x: system.velocity(0.0, x))(jnp.asarray(X)) - literal(X, A, V)).max()
        < 1e-12
    )


def test_ties_share_by_mass():
    x = jnp.array([[1.0, 1.0], [-1.0, 1.0], [0.0, 0.0]])
    thirds = af.Hardmax().attention(0.0, x)
    assert np.abs(thirds - np.array([[1, 0, 0], [0, 1, 0], [1 / 3, 1 / 3, 1 / 3]])).max() < 1e-15
    heavy = af.Hardmax().attention(0.0, x, jnp.array([2.0, 1.0, 0.0]))
    assert np.abs(heavy[2] - np.array([2 / 3, 1 / 3, 0])).max() < 1e-15


def test_hardmax_keeps_its_precision_and_takes_integers_and_batches():
    x = jnp.asarray(X[:, :2], jnp.float32)
    assert af.Hardmax(V=0.5).velocity(0.0, x).dtype == np.float32
    whole = jnp.array([[1, 0], [0, 2]])
    np.testing.assert_array_equal(af.Hardmax().velocity(0.0, whole), np.zeros((2, 2)))
    both = jax.vmap(lambda x: af.Hardmax().velocity(0.0, x))(jnp.stack([x, 2 * x]))
    assert np.abs(both[1] - 2 * both[0]).max() < 1e-6


def test_the_method_that_compares_all_pairs_says_what_it_would_hold():
    """The field is summed in blocks; Filippov's weights and rates are n² numbers each."""
    many = np.ones((200_000, 2)) * np.arange(1, 200_001)[:, None]
    with pytest.raises(af.InputError, match=r"n = 200000.* GiB of memory"):
        af.simulate(af.Hardmax(), many, [0.0, 1.0])
    assert af.Fixed(0.1).memory(af.Hardmax(), 200_000) == 200_000 * 256
    assert af.Filippov().memory(af.Hardmax(), 10) == 400


def errors(x0, V, end, betas):
    """How far (9.4) ends from the hardmax flow, at each β."""
    hard = np.asarray(af.simulate(af.Hardmax(V=V), x0, [0.0, end]).final)
    runs = [af.simulate(af.ConsensusAttention(V=V, beta=b), x0, [0.0, end]) for b in betas]
    return [float(np.abs(run.final - hard).max()) for run in runs]


def test_off_ties_the_smooth_flow_hardens_exponentially():
    """Scores differ by 0.01 at least, so the error is e^{−0.01β} at most: faster than any power."""
    apart = np.array([[1.0, 0.2], [-0.9, 0.3], [0.5, -0.4]])
    coarse, fine = errors(apart, 1.0, 0.5, (1e2, 1e3))
    assert 1e-4 < coarse < 1e-2
    assert fine < 1e-6


def test_from_a_tied_start_it_goes_where_all_goes_at_rate_one():
    """[P] Example 9.3: the third token leaves after a time of order 1/β, between the other two."""
    example = np.array([[1.0, 1.0], [-1.0, 1.0], [0.0, 0.0]])
    coarse, fine = errors(example, 1.0, 0.5, (1e3, 1e4))
    assert 9.9 < coarse / fine < 10.1


def test_along_a_tie_it_slides_with_the_filippov_weights():
    coarse, fine = errors(np.array([[2.0, 2.0], [-2.0, 2.0], [0.1, 0.5]]), -1.0, 0.8, (1e3, 1e4))
    assert fine < 1e-3
    assert coarse / fine > 5
