"""What decoders of today have: rotary places, gates, grouped heads, windows, norms with eps."""

import tomllib

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.attention import Window, attention_weights
from attnflow.spec import write_spec
from attnflow.spec.read import parse_spec
from attnflow.weights import (
    AffineHeads,
    FeedForward,
    Grouped,
    PerLayer,
    RMSNorm,
    Rotary,
    rotary_frequencies,
)

N, K = 7, 6


def test_rotary_places_are_phases_of_complex_numbers(rng):
    u, omega = rng.normal(size=(N, K)), np.array([1.0, 0.3, 0.05])
    z = (u[:, :3] + 1j * u[:, 3:]) * np.exp(1j * np.outer(np.arange(N), omega))
    turned = Rotary(omega)(jnp.asarray(u))
    assert np.abs(turned - np.concatenate([z.real, z.imag], axis=1)).max() < 1e-14
    assert Rotary(omega)(jnp.asarray(u, jnp.float32)).dtype == np.float32


def test_scores_depend_on_differences_of_places(rng):
    """The same vector at all places gives scores that are constant along diagonals."""
    rotary = Rotary(rotary_frequencies(K, theta=50.0))
    q, k = (rotary(jnp.tile(jnp.asarray(rng.normal(size=K)), (N, 1))) for _ in range(2))
    scores = np.asarray(q @ k.T)
    for offset in range(1 - N, N):
        assert np.ptp(np.diagonal(scores, offset)) < 1e-13
    assert np.ptp(scores) > 0.1


def test_frequencies_are_powers_of_theta():
    expected = [1.0, 1e4 ** (-2 / 6), 1e4 ** (-4 / 6)]
    assert np.allclose(rotary_frequencies(6), expected, rtol=1e-14)


def test_rotary_places_move_tokens_of_a_system(rng):
    """Attention with places, written out for each pair."""
    Q, Kk = rng.normal(size=(2, K, 4)) / 2
    x, omega = rng.normal(size=(N, 4)), np.array([1.0, 0.3, 0.05])
    heads = AffineHeads(Q, Kk, rotary=omega)
    assert not heads.plain_scores
    angle = np.exp(1j * np.outer(np.arange(N), omega))

    def phases(u):
        return (u[:, :3] + 1j * u[:, 3:]) * angle

    system = af.PreNormTransformer(1.0, Q=Q, K=Kk, rotary=omega, norm="layer", eps=0.0)
    y = (x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True)
    s = (phases(y @ Q.T) @ phases(y @ Kk.T).conj().T).real
    A = np.exp(s) / np.exp(s).sum(axis=1, keepdims=True)
    assert np.abs(system.attention(0.0, jnp.asarray(x)) - A).max() < 1e-13
    assert np.abs(system.velocity(0.0, jnp.asarray(x)) - A @ y).max() < 1e-13


def test_a_gated_layer(rng):
    w, a, g = rng.normal(size=(4, 9)), rng.normal(size=(9, 4)), rng.normal(size=(9, 4))
    b, c, x = rng.normal(size=9), rng.normal(size=4), rng.normal(size=(N, 4))
    u = x @ g.T
    expected = (u / (1 + np.exp(-u)) * (x @ a.T + b)) @ w.T + c
    layer = FeedForward(w, a, b, c, "silu", g=g)
    assert np.abs(layer(0.0, jnp.asarray(x)) - expected).max() < 1e-13
    assert (layer.dim, layer.width) == (4, 9)


def test_grouped_heads_are_copies_in_a_row(rng):
    K = rng.normal(size=(2, 3, 4, 5))
    grouped = Grouped(K, copies=2)
    whole = PerLayer(np.repeat(K, 2, axis=1))
    for t in (0.0, 1.5):
        assert np.array_equal(grouped(t), whole(t))
    assert AffineHeads(Q=PerLayer(rng.normal(size=(2, 6, 4, 5))), K=grouped).count == 6


def test_a_window_sees_the_last_tokens(rng):
    x = jnp.asarray(rng.normal(size=(N, 3)))
    s = np.asarray(x @ x.T)
    for size in (1, 3, 20):
        seen = np.array([[0 <= i - j < size for j in range(N)] for i in range(N)])
        A = np.where(seen, np.exp(s), 0)
        A /= A.sum(axis=1, keepdims=True)
        assert np.abs(attention_weights(x, x, mask=Window(size)) - A).max() < 1e-14


def test_an_rms_norm_with_eps(rng):
    y, gain = rng.normal(size=(N, 4)), rng.normal(size=4)
    expected = gain * y / np.sqrt((y**2).mean(axis=1, keepdims=True) + 1e-2)
    assert np.abs(RMSNorm(2 * gain, eps=4e-2)(0.0, jnp.asarray(y)) - expected).max() < 1e-14
    origin = jnp.zeros((2, 4))
    af.PreNormTransformer(norm="rms", eps=0.5).check_start(origin)
    with pytest.raises(af.InputError, match="origin"):
        af.PreNormTransformer(norm="rms").check_start(origin)


SPEC = """
[system]
name = "PreNormTransformer"
Q = { family = "ginibre", rows = 4, d = 3 }
K = { family = "ginibre", rows = 4, d = 3 }
rotary = [1.0, 0.1]
g = { family = "ginibre", rows = 5 }
a = { family = "ginibre", rows = 5 }
w = { family = "ginibre", rows = 3, d = 5 }
sigma = "silu"
[start]
n = 5
d = 3
[times]
stop = 1.0
count = 2
"""


def test_a_spec_holds_gates_and_places():
    run = parse_spec(tomllib.loads(SPEC)).build()
    system = run.system
    assert system.feed_forward.g.shape == (5, 3)
    assert not np.isin(np.asarray(system.feed_forward.g), np.asarray(system.feed_forward.a)).any()
    again = parse_spec(tomllib.loads(write_spec(system, run.x0, run.ts))).build().system
    assert eqx.tree_equal(again, system)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Rotary(np.ones((2, 2))), "frequencies must be a list"),
        (lambda: Rotary(np.array([np.nan])), "frequencies must be finite"),
        (lambda: rotary_frequencies(3), "k must be even"),
        (lambda: rotary_frequencies(4, theta=0.0), "theta must be"),
        (
            lambda: AffineHeads(Q=np.ones((4, 3)), K=np.ones((4, 3)), rotary=[1.0]),
            "heads of 2 rows",
        ),
        (lambda: FeedForward(g=np.ones((3, 2)), a=np.ones((4, 2))), "agree on m"),
        (lambda: FeedForward(g=np.ones(3)), "g must be a number or a matrix"),
        (lambda: Grouped(np.ones((1, 2, 3, 3)), copies=0), "copies must be"),
        (lambda: Window(0), "size must be"),
        (lambda: RMSNorm(eps=-1.0), "eps must be at least 0"),
    ],
)
def test_what_does_not_fit_is_refused(make, said, untyped):
    with pytest.raises(af.InputError, match=said):
        make()
