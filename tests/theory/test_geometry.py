"""Every draw is built from a spectrum and a basis, so that its row of Table 1 is known."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import block_diag

import attnflow as af
from attnflow.errors import InputError
from attnflow.theory import limit_geometry
from attnflow.theory.hypotheses import stability_radius

DRAWS = 500
SIZES = (1, 2, 3, 5, 8, 16)
"""Dimensions of the draws: few, as every new shape of weights is compiled once."""


def basis(rng, d, condition=10.0):
    """A random basis whose condition number is at most `condition`."""
    left, right = (np.linalg.qr(rng.normal(size=(d, d)))[0] for _ in range(2))
    return (left * np.exp(rng.uniform(0, np.log(condition), size=d))) @ right


def scale(rng):
    return 10.0 ** rng.uniform(-3, 3)


def definite(rng, d, least=1e-3):
    O = np.linalg.qr(rng.normal(size=(d, d)))[0]
    P = (O * np.exp(rng.uniform(np.log(least), 0, size=d))) @ O.T
    return (P + P.T) / 2


def factors(rng, M):
    """Q and K with QᵀK = M times a positive number: square, tall, or M itself."""
    d = len(M)
    kind = rng.integers(3)
    if kind == 0:
        return None, scale(rng) * M
    k = d if kind == 1 else d + rng.integers(1, 4)
    Q = np.linalg.qr(rng.normal(size=(k, k)))[0][:, :d] @ basis(rng, d)
    K = np.linalg.pinv(Q).T @ M
    return scale(rng) * Q, scale(rng) * K


def blocks(rng, d, radius):
    """A d × d matrix of spectral radius below `radius`: numbers, complex pairs, Jordan blocks."""
    parts = [np.zeros((0, 0))]
    while d:
        kind, r = rng.integers(3), radius * rng.uniform(0, 1)
        if d == 1 or kind == 0:
            parts.append(np.array([[r * rng.choice([-1, 1])]]))
        elif kind == 1:
            angle = rng.uniform(0, np.pi)
            turn = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
            parts.append(r * np.array(turn))
        else:
            parts.append(np.array([[r / 2, radius / 2], [0, r / 2]]))
        d -= len(parts[-1])
    return block_diag(*parts)


def in_basis(S, Lambda):
    return S @ Lambda @ np.linalg.inv(S)


def of_identity(rng, d, c):
    """cI as a number, a matrix, or a product that is cI up to rounding."""
    kind = rng.integers(3)
    if kind == 0:
        return c
    return c * np.eye(d) if kind == 1 else in_basis(basis(rng, d), c * np.eye(d))


def aligned(rng, phi, d, sign=1.0):
    """Q and K, fewer or more rows than d, with sign · <Qφ, Kφ> at least 1% of |QᵀK|."""
    while True:
        k = rng.integers(1, d + 3)
        Q, K = rng.normal(size=(k, d)), rng.normal(size=(k, d))
        value, M = (Q @ phi) @ (K @ phi), Q.T @ K
        if abs(value) > 0.01 * np.linalg.norm(M, 2) * (phi @ phi):
            return scale(rng) * Q * np.sign(sign * value), scale(rng) * K


def origin(rng, d):
    Q, K = factors(rng, np.eye(d))
    return Q, K, of_identity(rng, d, -scale(rng))


def polytope(rng, d):
    Q, K = factors(rng, definite(rng, d))
    return Q, K, of_identity(rng, d, scale(rng))


def subspace(rng, d):
    d = max(d, 3)
    m = rng.integers(2, d)
    Lambda = block_diag(np.eye(m), blocks(rng, d - m, rng.uniform(0.1, 0.99)))
    Q, K = factors(rng, definite(rng, d))
    return Q, K, scale(rng) * in_basis(basis(rng, d), Lambda)


def hyperplanes(rng, d):
    d = max(d, 2)
    S = basis(rng, d)
    V = in_basis(S, block_diag(np.eye(1), blocks(rng, d - 1, rng.uniform(0.1, 0.99))))
    Q, K = aligned(rng, S[:, 0], d)
    return Q, K, scale(rng) * V


ROWS = {
    "origin": (origin, "TC.5"),
    "polytope": (polytope, "T3.1"),
    "polytope x subspace": (subspace, "T5.1"),
    "hyperplanes": (hyperplanes, "T4.1"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ROWS)
def test_every_row_is_recognised(kind):
    draw, theorem = ROWS[kind]
    rng = np.random.default_rng(0)
    for i in range(DRAWS):
        found = limit_geometry(*draw(rng, int(rng.choice(SIZES))))
        assert (found.kind, found.theorem) == (kind, theorem), (i, found)


def perturbed(rng, d, size):
    E = rng.normal(size=(d, d))
    return size * E / np.linalg.norm(E, 2)


def leading_block(rng, block, d):
    """A V whose leading eigenvalues are those of the block, and the Q, K of M ≻ 0."""
    d = max(d, len(block))
    Lambda = block_diag(block, blocks(rng, d - len(block), 0.5))
    Q, K = factors(rng, definite(rng, d))
    return Q, K, scale(rng) * in_basis(basis(rng, d), Lambda)


def asymmetric(rng, d, size=1e-6):
    d = max(d, 2)
    skew = rng.normal(size=(d, d))
    skew = skew - skew.T
    M = definite(rng, d) + size * skew / np.linalg.norm(skew, 2)
    return factors(rng, M)


def almost_polytope(rng, d):
    return *asymmetric(rng, d), scale(rng)


def almost_subspace(rng, d):
    _, _, V = subspace(rng, d)
    return *asymmetric(rng, len(V)), V


def defective(rng, d):
    return leading_block(rng, np.array([[1.0, 10 ** rng.uniform(-4, 0)], [0, 1]]), d)


def doubly_defective(rng, d):
    return leading_block(rng, np.eye(3) + np.diag([rng.uniform(0.1, 1), 0.5], 1), d)


def half_defective(rng, d):
    return leading_block(rng, block_diag(np.eye(2), [[1.0, 0.5], [0, 1]]), d)


def complex_pair(rng, d):
    b = 10 ** rng.uniform(-6, 0)
    return leading_block(rng, np.array([[1.0, -b], [b, 1]]), d)


def opposite(rng, d):
    return leading_block(rng, np.diag([1.0, -1.0]), d)


def two_and_opposite(rng, d):
    return leading_block(rng, np.diag([1.0, 1.0, -1.0]), d)


def beaten_by_a_pair(rng, d):
    turn = (1 + 1e-6) * np.array([[0.6, -0.8], [0.8, 0.6]])
    return leading_block(rng, block_diag(np.eye(1), turn), d)


def negative(rng, d):
    return leading_block(rng, np.array([[-1.0]]), max(d, 2))


def nilpotent(rng, d):
    d = max(d, 2)
    Q, K = factors(rng, definite(rng, d))
    O = np.linalg.qr(rng.normal(size=(d, d)))[0]
    return Q, K, O @ np.diag(np.ones(d - 1), 1) @ O.T


def unseen(rng, d, value):
    """A good V with <Qφ₁, Kφ₁> = value · |QᵀK|."""
    d = max(d, 2)
    O, S = np.linalg.qr(rng.normal(size=(d, d)))[0], basis(rng, d)
    phi = S[:, 0] / np.linalg.norm(S[:, 0])
    O[:, 0] = phi
    O = np.linalg.qr(O)[0]
    M = O @ block_diag([[value]], np.eye(d - 1)) @ O.T
    V = in_basis(S, block_diag(np.eye(1), blocks(rng, d - 1, 0.7)))
    return *factors(rng, M), scale(rng) * V


def repelled(rng, d):
    return unseen(rng, d, -(10 ** rng.uniform(-6, 0)))


def blind(rng, d):
    return unseen(rng, d, 0.0)


def semidefinite(rng, d):
    """V = cI and QᵀK ≽ 0 of rank d − 1."""
    d = max(d, 2)
    P = definite(rng, d)
    O = np.linalg.eigh(P)[1][:, 1:]
    return None, O @ O.T @ P @ O @ O.T, scale(rng)


def indefinite(rng, d):
    O = np.linalg.qr(rng.normal(size=(d, d)))[0]
    eigenvalues = np.concatenate([[-(10 ** rng.uniform(-6, 0))], rng.uniform(0.1, 1, size=d - 1)])
    M = (O * eigenvalues) @ O.T
    return None, (M + M.T) / 2, scale(rng)


def almost_origin(rng, d):
    d = max(d, 2)
    M = np.eye(d) + 1e-6 * np.diag(rng.permutation([1.0] + [0.0] * (d - 1)))
    return *factors(rng, M), -scale(rng)


def almost_repulsive(rng, d):
    d = max(d, 2)
    Q, K = factors(rng, np.eye(d))
    return Q, K, scale(rng) * (perturbed(rng, d, 1e-6) - np.eye(d))


def nothing(rng, d):
    Q, K = factors(rng, definite(rng, d))
    return Q, K, rng.choice([0.0, -0.0]) if rng.integers(2) else np.zeros((d, d))


def almost_identity_turning(rng, d):
    """V = I + εR whose leading eigenvalues 1 + ε(1 ± ib) are a pair."""
    d = max(d, 2)
    b, eps = rng.uniform(0.1, 1), 10 ** rng.uniform(-13, -3)
    Lambda = block_diag([[1.0, -b], [b, 1.0]], blocks(rng, d - 2, 0.5))
    Q, K = factors(rng, definite(rng, d))
    return Q, K, np.eye(d) + eps * in_basis(basis(rng, d), Lambda)


NEAR_MISSES = [
    almost_polytope,
    almost_subspace,
    defective,
    doubly_defective,
    half_defective,
    complex_pair,
    opposite,
    two_and_opposite,
    beaten_by_a_pair,
    negative,
    nilpotent,
    repelled,
    blind,
    semidefinite,
    indefinite,
    almost_origin,
    almost_repulsive,
    nothing,
    almost_identity_turning,
]


@pytest.mark.parametrize("draw", NEAR_MISSES, ids=lambda draw: draw.__name__)
def test_no_row_is_claimed_that_does_not_apply(draw):
    rng = np.random.default_rng(1)
    for i in range(50):
        found = limit_geometry(*draw(rng, int(rng.choice(SIZES))))
        assert (found.kind, found.theorem) == ("none proven", None), (i, found)
        assert found.why.startswith("No row of Table 1 is proven to apply")


@pytest.mark.parametrize("eps", [1e-13, 1e-11, 1e-9, 1e-7, 1e-5, 1e-3])
def test_almost_the_identity_is_never_the_identity(eps):
    """V = I + εR with a good R: hyperplanes where the gap shows, nothing where it does not."""
    rng = np.random.default_rng(2)
    kinds = []
    for _ in range(100):
        d = int(rng.integers(2, 9))
        S = basis(rng, d, 3.0)
        R = in_basis(S, block_diag(np.eye(1), blocks(rng, d - 1, 0.7)))
        kinds.append(limit_geometry(V=np.eye(d) + eps * R).kind)
    assert set(kinds) <= {"hyperplanes", "none proven"}
    share = kinds.count("hyperplanes") / len(kinds)
    assert share == 0 if eps < 1e-9 else share == 1 or eps < 1e-6


def test_barely_seen_is_seen_if_the_direction_is_known():
    """<Qφ₁, Kφ₁> = 10⁻⁶ |QᵀK| is enough, unless rounding of V could turn φ₁ by as much."""
    rng = np.random.default_rng(7)
    for _ in range(50):
        assert limit_geometry(*unseen(rng, int(rng.integers(2, 17)), 1e-6)).kind == "hyperplanes"
    M = np.array([[1e-4, 1.0], [1.0, 0.0]])
    assert limit_geometry(K=M, V=np.diag([1.0, 0.5])).kind == "hyperplanes"
    close = limit_geometry(K=M, V=np.diag([1.0, 1 - 1e-8]))
    assert close.kind == "none proven"
    assert "<Qφ₁, Kφ₁> > 0 (it is 0.0001 |QᵀK|), which cannot be decided" in close.why
    assert limit_geometry(V=np.diag([1.0, 1 - 1e-8])).kind == "hyperplanes"


def test_undecided_says_so():
    found = limit_geometry(V=np.diag([1.0, 1 - 1e-10]))
    assert found.kind == "none proven"
    assert "cannot be decided at this tolerance (1e-09)" in found.why
    assert limit_geometry(V=np.diag([1.0, 1 - 1e-10]), tol=1e-12).kind == "hyperplanes"
    assert limit_geometry(V=np.diag([1.0, 1 - 1e-7])).kind == "hyperplanes"
    assert limit_geometry(V=np.diag([1.0, 1.0, 1 - 1e-7])).kind == "polytope x subspace"


def test_the_reason_names_the_hypothesis_that_failed():
    turn = np.array([[1.0, -0.5], [0.5, 1.0]])
    assert "is real and positive (it is 0.894427 ± 0.45i |V|)" in limit_geometry(V=turn).why
    jordan = limit_geometry(V=np.array([[1.0, 1.0], [0.0, 1.0]])).why
    assert "T5.1) needs that the leading eigenvalue is multiple, and V = λ₁I" in jordan
    tilted = limit_geometry(Q=np.array([[1.0, 1.0], [0.0, 1.0]])).why
    assert "T3.1) needs that QᵀK is symmetric" in tilted
    mirror = limit_geometry(V=np.diag([1.0, -1.0, 0.2])).why
    assert (
        "T4.1) needs that all other eigenvalues are below λ₁ in modulus (the largest is 1" in mirror
    )
    flipped = limit_geometry(Q=-1.0, V=np.diag([1.0, 0.5])).why
    assert "<Qφ₁, Kφ₁> > 0 (it is -1 |QᵀK|)" in flipped


def test_numbers_and_nothing_are_multiples_of_the_identity():
    assert limit_geometry().kind == "polytope"
    assert limit_geometry(Q=2, K=0.5, V=3).kind == "polytope"
    assert limit_geometry(Q=-2.0, K=-0.5, V=-3.0).kind == "origin"
    assert limit_geometry(Q=-1.0).kind == "none proven"
    assert limit_geometry(Q=-1.0, V=-1.0).kind == "none proven"
    assert limit_geometry(V=0.0).kind == "none proven"
    assert limit_geometry(Q=np.eye(4), V=2.0).kind == "polytope"
    assert limit_geometry(Q=np.array([[2.0]]), V=np.array([[0.1]])).kind == "polytope"
    assert limit_geometry(Q=np.array([[-2.0]]), V=np.array([[0.1]])).kind == "none proven"
    assert limit_geometry(V=jnp.diag(jnp.array([1.0, 0.3], jnp.float32))).kind == "hyperplanes"


def test_low_rank_attention_is_enough_for_hyperplanes_only():
    Q = np.array([[1.0, 0.2, 0.0]])
    assert limit_geometry(Q, Q, np.diag([1.0, 0.5, 0.2])).kind == "hyperplanes"
    assert limit_geometry(Q, Q, np.diag([0.2, 0.5, 1.0])).kind == "none proven"
    assert limit_geometry(Q, Q, np.diag([1.0, 1.0, 0.2])).kind == "none proven"


@pytest.mark.parametrize("kind", ROWS)
def test_scale_and_rotation_do_not_matter(kind):
    rng = np.random.default_rng(3)
    for _ in range(30):
        Q, K, V = ROWS[kind][0](rng, int(rng.integers(3, 9)))
        K = np.eye(len(V)) if K is None else K
        O = np.linalg.qr(rng.normal(size=(K.shape[1],) * 2))[0]
        turned = [None if Q is None else 7e-5 * Q @ O, 3e4 * K @ O, V]
        if Q is None:
            turned[1] = O.T @ turned[1]
        turned[2] = 1e7 * (O.T @ V @ O if np.ndim(V) else V)
        assert limit_geometry(*turned).kind == kind


def test_the_functional_and_the_projection_measure_the_limit():
    rng = np.random.default_rng(4)
    S, d = basis(rng, 5), 5
    V = in_basis(S, np.diag([3.0, 2.0, -1.0, 0.5, 0.1]))
    found = limit_geometry(V=V)
    phi = S[:, 0] / np.linalg.norm(S[:, 0])
    assert found.leading == pytest.approx(3.0, rel=1e-12)
    np.testing.assert_allclose(np.outer(found.direction, found.direction), np.outer(phi, phi))
    np.testing.assert_allclose(found.functional @ V, 3 * found.functional, rtol=1e-10)
    assert found.functional @ found.direction == pytest.approx(1, rel=1e-12)
    V = in_basis(S, np.diag([3.0, 3.0, -1.0, 0.5, 0.1]))
    found = limit_geometry(V=V)
    want = in_basis(S, np.diag([1.0, 1, 0, 0, 0]))
    np.testing.assert_allclose(found.projection, want, atol=1e-11)
    assert found.quantities["multiplicity"] == 2
    assert found.tol == 1e-9
    with pytest.raises(AttributeError, match=r"LimitGeometry\.tolerance is called tol now"):
        found.tolerance
    assert limit_geometry(V=np.diag([2.0, 2.0])).leading == pytest.approx(2.0)
    assert len(want) == d


@pytest.mark.slow
def test_tokens_reach_the_limit_that_is_proven():
    """T4.1 at work: the functional takes at most three values, though V is far from normal."""
    V = np.array([[1.0, 2.0], [0.0, 0.2]])
    found = limit_geometry(V=V)
    z0 = af.initial.gaussian(n=12, d=2, key=0)
    traj = af.simulate(af.RescaledAttention(V=V), z0, [0.0, 12.0])
    values = np.asarray(traj.final) @ found.functional
    assert af.observe.clusters(values[:, None], tol=1e-3).count <= 3
    across = np.asarray(traj.final) @ found.direction
    assert af.observe.clusters(across[:, None], tol=1e-3).count > 3


@pytest.mark.parametrize("size", [1e-3, 1e-2])
def test_the_stability_radius_is_a_lower_bound(size, rng):
    """No perturbation below it reaches the unit circle, and for normal matrices one just above."""
    for _ in range(20):
        A = blocks(rng, 5, 1 - size)
        A = in_basis(basis(rng, 5, 3.0), A)
        radius = stability_radius(A, 1e-12)
        assert 0 < radius <= 1 - np.abs(np.linalg.eigvals(A)).max() + 1e-12
        z = np.exp(1j * np.linspace(0, 2 * np.pi, 400))[:, None, None]
        assert radius <= np.linalg.svd(A - z * np.eye(5), compute_uv=False).min() + 1e-12
    assert stability_radius(np.diag([1 - size, -0.3]), 1e-12) == pytest.approx(size, rel=1e-9)
    assert stability_radius(np.diag([1.0, 0.5]), 1e-12) == 0
    assert stability_radius(np.diag([1.5, 0.5]), 1e-12) == 0


@pytest.mark.slow
def test_one_in_seven_of_ginibre_is_good():
    """[E] §4: about 14% with d = 128, those whose leading eigenvalue is real and positive.

    V and −V are equally likely, so that half of the real ones are positive: counting all of them
    needs fewer draws.
    """
    rng = np.random.default_rng(6)
    draws, real = 600, 0
    for _ in range(draws):
        V = rng.normal(size=(128, 128))
        values = np.linalg.eigvals(V)
        leading = values[np.argmax(np.abs(values))]
        good = leading.imag == 0 and leading.real > 0
        assert (limit_geometry(V=V).kind == "hyperplanes") == good
        real += leading.imag == 0
    fraction, sigma = real / draws / 2, np.sqrt(0.28 * 0.72 / draws) / 2
    print(f"\n{fraction:.4f} ± {sigma:.4f} of Ginibre matrices are good")
    assert abs(fraction - 0.14) < 3 * sigma


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ({"V": np.ones((2, 3, 3))}, "one head, but there is an axis of 2 heads"),
        ({"V": lambda t: jnp.eye(2)}, "do not depend on time"),
        ({"V": np.ones((2, 3))}, "V must be square"),
        ({"Q": np.ones((2, 3)), "K": np.ones((1, 3))}, "same height"),
        ({"V": np.array([[np.nan]])}, "V must be finite"),
        ({"tol": 0.0}, "tol must be a finite number above 0"),
    ],
)
def test_bad_input_is_refused(weights, said):
    with pytest.raises(InputError, match=said):
        limit_geometry(**weights)
