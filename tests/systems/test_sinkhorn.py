"""Doubly stochastic attention against its definition, a plain Sinkhorn iteration and identities."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy

import attnflow as af
from attnflow.attention import Kind, Sinkhorn, Softmax, Unnormalised, attend, attention_weights
from attnflow.errors import InputError, NotConverged
from attnflow.spaces import Sphere
from attnflow.systems.attention import AttentionSystem

RNG = np.random.default_rng(5)
Q, K, V = (RNG.normal(size=(3, 3)) for _ in range(3))
X = RNG.normal(size=(7, 3))
M = RNG.uniform(0.3, 3, 7)
weights = jax.jit(
    lambda q, k, beta, masses: attention_weights(q, k, beta=beta, kind=Sinkhorn(), masses=masses)
)


def plain(scores, m, sweeps=20000):
    """Sinkhorn's own iteration on the matrix e^s, in the linear domain: small scores only."""
    E = np.exp(scores)
    b = np.ones(len(m))
    for _ in range(sweeps):
        a = 1 / (E @ (m * b))
        b = 1 / (E.T @ (m * a))
    return a[:, None] * E * (m * b)


@pytest.mark.parametrize("beta", [0.0, 0.5, 3.0, 30.0, 150.0])
def test_rows_and_columns_are_the_masses(beta):
    A = np.asarray(weights(jnp.asarray(X @ Q.T), jnp.asarray(X @ K.T), beta, jnp.asarray(M)))
    assert np.abs(A.sum(axis=1) - 1).max() < 1e-13
    assert np.abs(M @ A / M - 1).max() < 1e-10
    assert A.min() >= 0


@pytest.mark.parametrize("beta", [0.5, 3.0])
def test_it_is_the_limit_of_plain_sweeps(beta):
    q, k = X @ Q.T / 3, X @ K.T / 3
    ours = weights(jnp.asarray(q), jnp.asarray(k), beta, jnp.asarray(M))
    assert np.abs(ours - plain(beta * q @ k.T, M)).max() < 1e-9


def test_beta_zero_is_softmax():
    x = jnp.asarray(X)
    sinkhorn = af.SinkhornPure(Q=Q, K=K, V=V, beta=0.0).velocity(0.0, x, jnp.asarray(M))
    softmax = af.PureAttention(Q=Q, K=K, V=V, beta=0.0).velocity(0.0, x, jnp.asarray(M))
    assert np.abs(sinkhorn - softmax).max() < 1e-14


def test_symmetric_scores_give_a_symmetric_matrix():
    A = np.asarray(af.SinkhornPure(beta=1.5).attention(0.0, jnp.asarray(X)))
    softmax = np.asarray(af.PureAttention(beta=1.5).attention(0.0, jnp.asarray(X)))
    assert np.abs(A - A.T).max() < 1e-10
    assert np.abs(softmax - softmax.T).max() > 0.1


def test_many_distant_clusters_are_seen_apart():
    """β = 400 on the sphere: plain sweeps would need e^{O(β)} of them."""
    x = af.initial.sphere(n=16, d=3, key=0)
    A = np.asarray(af.SinkhornSA(400.0).attention(0.0, x))
    assert np.abs(A.sum(axis=0) - 1).max() < 1e-10


def test_float32_goes_as_far_as_rounding():
    x = af.initial.sphere(n=16, d=3, key=0, dtype=np.float32)
    system = af.SinkhornSA(5.0)
    A = np.asarray(system.attention(0.0, x))
    assert A.dtype == np.float32
    assert system.velocity(0.0, x).dtype == np.float32
    assert np.abs(A.sum(axis=0) - 1).max() < 2e-5


def hard(key, n=16, d=3):
    """Queries, keys and masses for which sweeps and undamped Newton steps did not converge."""
    rng = np.random.default_rng(key)
    x = rng.normal(size=(n, d))
    q, k = (x @ rng.normal(size=(d, d)).T for _ in range(2))
    return jnp.asarray(q), jnp.asarray(k), jnp.asarray(np.exp(1.5 * rng.normal(size=n)))


def test_large_beta_with_masses_converges():
    """At β = 1000 a quarter of such draws ended up to 0.3 away from doubly stochastic."""
    for key in range(60):
        q, k, m = hard(key)
        A = np.asarray(weights(q, k, 1000.0, m))
        assert np.abs(m @ A / np.asarray(m) - 1).max() < 1e-9


def test_large_beta_is_the_optimal_transport():
    """β → ∞ is a linear programme: the plan m_i A_ij of the largest Σ_ij m_i A_ij <q_i, k_j>."""
    q, k, m = hard(1, n=6)
    A, mass = np.asarray(weights(q, k, 1e5, m)), np.asarray(m)
    gain = np.asarray(q @ k.T)
    rows, columns = (np.kron(*pair) for pair in [(np.eye(6), np.ones(6)), (np.ones(6), np.eye(6))])
    best = scipy.optimize.linprog(
        -gain.ravel(), A_eq=np.vstack([rows, columns]), b_eq=np.concatenate([mass, mass])
    )
    assert np.sum(mass[:, None] * A * gain) == pytest.approx(-best.fun, rel=1e-5)
    assert np.abs(mass[:, None] * A - best.x.reshape(6, 6)).max() < 1e-4


def test_what_has_not_converged_is_refused():
    q, k, m = hard(0)
    few = Sinkhorn(max_sweeps=5)
    with pytest.raises(NotConverged, match=r"beta: .* scores up to .* 5 sweeps: take a smaller"):
        attention_weights(q, k, beta=1000.0, kind=few, masses=m)
    traced = jax.jit(lambda q: attend(q, k, q, beta=1000.0, kind=few, masses=m))(q)
    assert np.isnan(traced).all()


class Hurried(AttentionSystem):
    """`SinkhornSA` with too few sweeps."""

    attention_only = True
    space = Sphere()
    kind = Sinkhorn(max_sweeps=3)


@pytest.mark.parametrize("method", [None, af.Fixed(0.1)], ids=["adaptive", "fixed"])
def test_a_run_that_does_not_converge_says_so(method):
    x = af.initial.sphere(n=7, d=3, key=0)
    few = Hurried(300.0, Q=Q)
    with pytest.raises(InputError, match=r"at x0 cannot be followed: beta: doubly stochastic"):
        af.simulate(few, x, [0.0, 1.0], method=method)
    with pytest.raises(NotConverged):
        af.observe.attention(few, x)


def test_kinds_are_abstract_or_final():
    """A question about softmax must not find Sinkhorn's weights to be softmax."""
    kinds = (Softmax, Unnormalised, Sinkhorn)
    assert not any(a is not b and issubclass(a, b) for a in kinds for b in kinds)
    assert [kind.rowwise for kind in kinds] == [True, True, False]
    assert "rowwise" in Kind.__abstractmethods__


@pytest.mark.parametrize(
    "system", [af.SinkhornSA(3.0, V=V), af.SinkhornPure(Q=Q, beta=0.7)], ids=str
)
def test_a_token_of_mass_two_is_two_tokens(system):
    few = system.retract(jnp.asarray(X[:4]))
    counts = np.array([1, 3, 2, 1])  # 7 in all, as in the other tests
    heavy = system.velocity(0.0, few, jnp.asarray(counts, float))
    light = system.velocity(0.0, jnp.repeat(few, counts, axis=0))
    assert np.abs(light - np.repeat(heavy, counts, axis=0)).max() < 1e-9
    slot = jnp.concatenate([few, few[:1] + 0.1])
    dead = system.velocity(0.0, slot, jnp.asarray([*counts, 0.0], dtype=float))
    assert np.abs(dead[:4] - heavy).max() < 1e-12


def test_heads_add_up_and_rotations_commute():
    x = af.initial.sphere(n=7, d=3, key=0)
    Qs, Ks, Vs = (af.weights.ginibre(3, heads=2, key=s) for s in range(3))
    together = af.SinkhornSA(1.5, Q=Qs, K=Ks, V=Vs).velocity(0.0, x)
    each = [af.SinkhornSA(1.5, Q=Qs[h], K=Ks[h], V=Vs[h]).velocity(0.0, x) for h in range(2)]
    assert np.abs(together - sum(each)).max() < 1e-9
    O = jnp.asarray(np.linalg.qr(Q)[0])
    plain_ = af.SinkhornSA(1.5).velocity(0.0, x)
    assert np.abs(af.SinkhornSA(1.5).velocity(0.0, x @ O.T) - plain_ @ O.T).max() < 1e-9
    order = RNG.permutation(7)
    assert np.abs(af.SinkhornSA(1.5).velocity(0.0, x[order]) - plain_[order]).max() < 1e-9


@pytest.mark.parametrize("masses", [None, M])
def test_gradients_are_those_of_the_limit(masses):
    """Reverse and forward mode against central differences of a smooth function of A."""
    q, k, v = (jnp.asarray(a) for a in (X @ Q.T, X @ K.T, np.sin(X)))

    @jax.jit
    def value(q, m):
        means = attend(q, k, v, beta=0.4, kind=Sinkhorn(tol=1e-13), masses=m)
        return jnp.sum(jnp.cos(means + v))

    m = None if masses is None else jnp.asarray(masses)
    along = (jnp.asarray(RNG.normal(size=q.shape)), None if m is None else jnp.asarray(X[:, 0]))
    grads = jax.grad(value, argnums=(0,) if m is None else (0, 1))(q, m)
    slope = sum(float(jnp.vdot(g, a)) for g, a in zip(grads, along, strict=False))
    step = 1e-5
    ends = [value(q + s * along[0], None if m is None else m + s * along[1]) for s in (step, -step)]
    assert abs(slope - float(ends[0] - ends[1]) / (2 * step)) < 1e-8 * max(1, abs(slope))
    _, forward = jax.jvp(lambda q: value(q, m), (q,), (along[0],))
    assert abs(float(forward) - float(jnp.vdot(grads[0], along[0]))) < 1e-9


def test_the_centre_of_mass_follows_v_alone():
    """Columns sum to 1, so x̄' = V x̄ along the whole run, with masses and in a batch too."""
    ts = [0.0, 0.3, 1.0]
    system = af.SinkhornPure(Q=Q / 3, K=K / 3, V=-1.0)
    run = af.simulate(system, np.stack([X, -2 * X]), ts, masses=M)
    centre = np.einsum("n,btnd->btd", M, np.asarray(run.xs)) / M.sum()
    expected = centre[:, :1] * np.exp(-np.array(ts))[:, None]
    assert np.abs(centre - expected).max() < 1e-7


def test_a_mask_is_refused_with_the_reason(untyped):
    for make in (lambda: af.SinkhornSA(1.0, mask="causal"), lambda: af.SinkhornPure(mask="causal")):
        with pytest.raises(InputError, match=r"mask must be None.*identity.*SA or PureAttention"):
            make()
    with pytest.raises(InputError, match="tol"):
        Sinkhorn(tol=0.0)
