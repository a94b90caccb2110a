"""Complete Transformers against plain NumPy blocks, their parts, and their own flow."""

import tomllib

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import erf

import attnflow as af
import reference
from attnflow.spec import write_spec
from attnflow.spec.read import parse_spec
from attnflow.weights import AffineHeads, FeedForward, LayerNorm, PerLayer

N, D, H, M = 5, 6, 2, 9
RNG = np.random.default_rng(11)
X = RNG.normal(size=(N, D))
SPHERE = af.initial.normalise(X)


def trained(rng, L=None):
    """Weights as a checkpoint holds them: heads side by side in d × d matrices, and biases."""
    lead = () if L is None else (L,)
    square = {name: rng.normal(size=(*lead, D, D)) / 2 for name in ("Q", "K", "V", "O")}
    vectors = {name: rng.normal(size=(*lead, D)) for name in ("bQ", "bK", "bV", "bO", "c")}
    more = {
        "w": rng.normal(size=(*lead, D, M)) / 2,
        "a": rng.normal(size=(*lead, M, D)) / 2,
        "b": rng.normal(size=(*lead, M)),
        "gain": rng.uniform(0.5, 1.5, size=(*lead, 2, D)),
        "shift": rng.normal(size=(*lead, 2, D)) / 3,
    }
    return square | vectors | more


def ours(p, wrap=lambda W: W):
    """The same weights in the shapes of AffineHeads and FeedForward."""
    lead = p["Q"].shape[:-2]
    k = D // H
    heads = {name: p[name].reshape(*lead, H, k, D) for name in ("Q", "K", "V")}
    heads |= {f"b_{name}": p[f"b{name}"].reshape(*lead, H, k) for name in ("Q", "K", "V")}
    heads |= {"O": np.swapaxes(p["O"].reshape(*lead, D, H, k), -3, -2), "b_O": p["bO"]}
    rest = {name: p[name] for name in ("w", "a", "b", "c", "gain", "shift")}
    return {name: wrap(W) for name, W in (heads | rest).items()}


SIGMA = {
    "relu": lambda u: np.maximum(u, 0),
    "gelu": lambda u: u * (1 + erf(u / np.sqrt(2))) / 2,
    "gelu_tanh": lambda u: u / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (u + 0.044715 * u**3))),
    "silu": lambda u: u / (1 + np.exp(-u)),
    "tanh": np.tanh,
}


def plain_attention(x, p, causal):
    """Multi-head attention as in a textbook: heads are slices of d/H columns."""
    q, k, v = (x @ p[name].T + p[f"b{name}"] for name in ("Q", "K", "V"))
    size, out = D // H, np.zeros((N, D))
    for h in range(H):
        part = slice(h * size, (h + 1) * size)
        for i in range(N):
            last = i + 1 if causal else N
            scores = np.array([q[i, part] @ k[j, part] for j in range(last)]) / np.sqrt(size)
            weights = np.exp(scores - scores.max())
            out[i, part] = weights @ v[:last, part] / weights.sum()
    return out @ p["O"].T + p["bO"]


def plain_norm(y, p, which, eps):
    centred = y - y.mean(axis=1, keepdims=True)
    deviation = np.sqrt((centred**2).mean(axis=1, keepdims=True) + eps)
    return p["gain"][which] * centred / deviation + p["shift"][which]


def plain_perceptron(x, p, sigma):
    return SIGMA[sigma](x @ p["a"].T + p["b"]) @ p["w"].T + p["c"]


def bert_block(x, p, sigma, eps):
    y = plain_norm(x + plain_attention(x, p, False), p, 0, eps)
    return plain_norm(y + plain_perceptron(y, p, sigma), p, 1, eps)


def gpt_block(x, p, sigma, eps):
    y = x + plain_attention(plain_norm(x, p, 0, eps), p, True)
    return y + plain_perceptron(plain_norm(y, p, 1, eps), p, sigma)


BETA = 1 / np.sqrt(D // H)


@pytest.mark.parametrize("sigma", SIGMA)
def test_a_post_norm_block_is_berts(sigma):
    p = trained(RNG)
    block = af.PostNormTransformer(BETA, **ours(p), sigma=sigma, eps=1e-5)
    theirs = bert_block(X, p, sigma, 1e-5)
    assert np.abs(block.layer(0, jnp.asarray(X), 1.0) - theirs).max() < 1e-13


@pytest.mark.parametrize("sigma", SIGMA)
def test_a_pre_norm_block_is_gpts(sigma):
    p = trained(RNG)
    block = af.PreNormTransformer(BETA, **ours(p), sigma=sigma, eps=1e-5, mask="causal")
    theirs = gpt_block(X, p, sigma, 1e-5)
    assert np.abs(block.layer(0, jnp.asarray(X), 1.0) - theirs).max() < 1e-13


@pytest.mark.parametrize("kind", [af.PostNormTransformer, af.PreNormTransformer])
def test_weights_of_each_layer_are_used_in_their_layer(kind):
    p = trained(RNG, L=3)
    mask, block = (None, bert_block) if kind is af.PostNormTransformer else ("causal", gpt_block)
    system = kind(BETA, **ours(p, PerLayer), eps=1e-5, mask=mask, sigma="gelu")
    run = af.simulate(system, X, [0.0, 1.0, 2.0, 3.0], method=af.Layers())
    x = X
    for k in range(3):
        x = block(x, {name: W[k] for name, W in p.items()}, "gelu", 1e-5)
        assert np.abs(run.xs[k + 1] - x).max() < 1e-12


def random_weights(key=0):
    p = ours(trained(np.random.default_rng(key)))
    return {name: W for name, W in p.items() if name not in ("gain", "shift")}


def test_the_velocity_is_the_sum_of_its_parts_under_the_projection():
    p = trained(np.random.default_rng(0))
    system = af.Transformer(BETA, **random_weights(), sigma="gelu")
    x = np.asarray(SPHERE)
    full = plain_attention(x, p, False) + plain_perceptron(x, p, "gelu")
    expected = full - (full * x).sum(axis=1, keepdims=True) * x
    assert np.abs(system.velocity(0.0, SPHERE) - expected).max() < 1e-13


def test_without_feed_forward_it_is_attention_on_the_sphere():
    Q, K, V = (af.weights.ginibre(D, heads=2, key=s) for s in range(3))
    masses = jnp.asarray(RNG.uniform(0.5, 2, N))
    for weights in ({}, {"V": -1.0}, {"Q": Q, "K": K, "V": V}, {"Q": Q, "K": K, "mask": "causal"}):
        block, sa = af.Transformer(2.0, **weights), af.SA(2.0, **weights)
        same = [block.velocity(0.0, SPHERE, masses) - sa.velocity(0.0, SPHERE, masses)]
        same += [block.layer(0, SPHERE, 0.5) - sa.layer(0, SPHERE, 0.5)]
        same += [block.attention(0.0, SPHERE) - sa.attention(0.0, SPHERE)]
        assert max(np.abs(gap).max() for gap in same) < 1e-15


def test_an_output_matrix_is_part_of_the_value_matrix():
    V, O = (
        af.weights.ginibre(D, rows=3, heads=2, key=0),
        af.weights.ginibre(3, rows=D, heads=2, key=1),
    )
    factored = af.Transformer(1.0, V=V, O=O).velocity(0.0, SPHERE)
    assert np.abs(factored - af.SA(1.0, V=O @ V).velocity(0.0, SPHERE)).max() < 1e-13


def test_without_attention_it_is_a_residual_network():
    p = {name: W for name, W in random_weights().items() if name in "wabc"}
    res = af.ResNet(**p, sigma="tanh")
    pushed = np.asarray(res.velocity(0.0, SPHERE))
    expected = tangential(pushed)
    block = af.Transformer(1.0, V=0.0, **p, sigma="tanh")
    assert np.abs(block.velocity(0.0, SPHERE) - expected).max() < 1e-14
    theirs = plain_perceptron(X, trained(np.random.default_rng(0)), "tanh")
    assert np.abs(res.velocity(0.0, jnp.asarray(X)) - theirs).max() < 1e-14
    assert np.abs(res.layer(0, jnp.asarray(X), 0.5) - (X + theirs / 2)).max() < 1e-14


def tangential(v):
    x = np.asarray(SPHERE)
    return v - (v * x).sum(axis=1, keepdims=True) * x


def test_without_feed_forward_norms_are_those_of_the_smaller_systems():
    gain = np.linspace(0.5, 1.5, D)
    V = af.weights.ginibre(D, key=3)
    post = af.PostNormTransformer(2.0, norm="rms", gain=gain, V=V)
    pre = af.PreNormTransformer(2.0, norm="rms", gain=gain, V=V)
    x = jnp.asarray(X)
    small = af.PostNorm(2.0, D=gain, V=V).layer(0, x, 0.7)
    assert np.abs(post.layer(0, x, 0.7) - small).max() < 1e-15
    assert (
        np.abs(pre.velocity(0.0, x) - af.PreNorm(2.0, D=gain, V=V).velocity(0.0, x)).max() < 1e-15
    )
    layers = af.PostNorm(2.0, D=np.ones(D), V=V).layer(0, SPHERE, 0.7)
    assert np.abs(af.Transformer(2.0, V=V).layer(0, SPHERE, 0.7) - layers).max() < 1e-15


@pytest.mark.parametrize("on_sphere", [True, False], ids=["sphere", "pre-norm"])
def test_splittings_have_their_orders(on_sphere):
    """The error of a layer of length Δt is O(Δt²) for Lie–Trotter and O(Δt³) for Strang."""
    p = {name: W / 4 for name, W in random_weights().items()}
    kind, x = (af.Transformer, SPHERE) if on_sphere else (af.PreNormTransformer, jnp.asarray(X))
    make = {s: kind(BETA, **p, sigma="tanh", splitting=s) for s in ("lie", "strang")}
    steps = np.array([0.1, 0.05, 0.025])
    velocity = eqx.filter_jit(make["lie"].velocity)
    exact = reference.integrate(
        lambda t, y: np.asarray(velocity(0.0, jnp.asarray(y))), x, [0.0, *steps[::-1]]
    )[:0:-1]
    for splitting, order in (("lie", 2), ("strang", 3)):
        errors = [
            float(np.abs(make[splitting].layer(0, x, dt) - y).max())
            for dt, y in zip(steps, exact, strict=True)
        ]
        slope = np.polyfit(np.log(steps), np.log(errors), 1)[0]
        assert slope == pytest.approx(order, abs=0.25), (splitting, errors)


def test_tokens_are_permuted_with_their_start_and_masses_are_copies():
    system = af.Transformer(BETA, **random_weights(), sigma="gelu")
    order = np.random.default_rng(0).permutation(N)
    v = system.velocity(0.0, SPHERE)
    assert np.abs(system.velocity(0.0, SPHERE[order]) - v[order]).max() < 1e-14
    counts = np.array([1, 3, 2, 1, 1])
    heavy = system.velocity(0.0, SPHERE, jnp.asarray(counts, float))
    many = system.velocity(0.0, jnp.repeat(SPHERE, counts, axis=0))
    assert np.abs(many - np.repeat(heavy, counts, axis=0)).max() < 1e-13


@pytest.mark.slow
def test_a_run_on_the_sphere_is_that_of_scipy_and_jumps_with_its_weights():
    layers = [random_weights(key) for key in range(2)]
    stacked = {name: PerLayer(np.stack([W[name] for W in layers])) for name in layers[0]}
    run = af.simulate(af.Transformer(BETA, **stacked, sigma="tanh"), SPHERE, [0.0, 1.0, 2.0])
    x = np.asarray(SPHERE)
    for k, weights in enumerate(layers):
        velocity = eqx.filter_jit(af.Transformer(BETA, **weights, sigma="tanh").velocity)
        x = reference.integrate(
            lambda t, y, v=velocity: np.asarray(v(0.0, jnp.asarray(y))), x, [0.0, 1.0]
        )[-1]
        assert np.abs(run.xs[k + 1] - x).max() < 1e-6
    assert np.abs(np.linalg.norm(run.xs, axis=-1) - 1).max() < 1e-12


def test_a_new_value_compiles_nothing_and_float32_stays():
    count = 0

    @jax.jit
    def layer(system, x):
        nonlocal count
        count += 1
        return system.layer(0, x, jnp.asarray(0.5, x.dtype))

    for key in (0, 1):
        layer(af.PreNormTransformer(BETA + key, **random_weights(key), eps=10.0**-key), X)
    assert count == 1
    single = SPHERE.astype(np.float32)
    weights = random_weights()
    res = {name: W for name, W in weights.items() if name in "wabc"}
    for system in (
        af.Transformer(BETA, **weights),
        af.PostNormTransformer(BETA, **weights),
        af.PreNormTransformer(BETA, **weights),
        af.ResNet(**res),
    ):
        assert layer(system, single).dtype == np.float32
    batch = jnp.stack([SPHERE, SPHERE[::-1]])
    both = jax.vmap(lambda x: layer(af.Transformer(BETA, **weights), x))(batch)
    assert np.abs(both[0] - both[1][::-1]).max() < 1e-14


SPEC = """
[system]
name = "{name}"
beta = 0.5
Q = {{ family = "ginibre", rows = 2, heads = 3 }}
K = {{ family = "ginibre", rows = 2, heads = 3 }}
V = {{ family = "ginibre", rows = 2, heads = 3 }}
O = {{ family = "ginibre", rows = 4, d = 2, heads = 3 }}
b_Q = {{ family = "bias", d = 2, heads = 3, scale = 0.5 }}
w = {{ family = "ginibre", rows = 4, d = 8, scale = 0.1 }}
a = {{ family = "ginibre", rows = 8 }}
b = {{ family = "bias", d = 8 }}
sigma = "gelu_tanh"
[start]
n = 5
d = 4
[times]
stop = 2.0
count = 3
"""


@pytest.mark.parametrize("name", ["Transformer", "PostNormTransformer", "PreNormTransformer"])
def test_a_spec_draws_its_weights_and_holds_them(name):
    run = parse_spec(tomllib.loads(SPEC.format(name=name))).build()
    system = run.system
    assert system.heads.O.shape == (3, 4, 2)
    assert system.heads.b_Q.shape == (3, 2)
    assert system.feed_forward.w.shape == (4, 8)
    entries = np.asarray(system.feed_forward.a).ravel()
    assert not np.isin(entries, np.asarray(system.heads.Q)).any()
    assert np.isfinite(system.layer(0, run.x0, 1.0)).all()
    text = write_spec(system, run.x0, run.ts)
    again = parse_spec(tomllib.loads(text)).build().system
    assert eqx.tree_equal(again, system)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: af.Transformer(1.0, w=1.0, sigma="gleu"), "did you mean 'gelu'"),
        (lambda: af.Transformer(1.0, splitting="strange"), "did you mean 'strang'"),
        (lambda: af.PreNormTransformer(norm="batch"), "unknown norm"),
        (lambda: af.PreNormTransformer(gain=np.ones((3, D))), "row for each sub-layer"),
        (lambda: AffineHeads(V=np.ones((2, D))), "V must be square"),
        (lambda: AffineHeads(V=np.ones((2, D)), O=np.ones((D, 3))), "O must be d × v"),
        (lambda: AffineHeads(O=np.ones(D)), "O must be a number, a matrix"),
        (lambda: AffineHeads(Q=np.eye(D), b_Q=np.ones(2)), "b_Q must have one entry"),
        (lambda: AffineHeads(b_O=np.ones((2, D))), "b_O must have one entry"),
        (lambda: FeedForward(w=np.ones((D, M)), a=np.ones((M + 1, D))), "agree on m"),
        (lambda: FeedForward(w=np.ones((D, M)), a=np.ones((M, D + 1))), "agree on d"),
        (lambda: FeedForward(b=np.ones((2, 2))), "b must be a number or a vector"),
        (lambda: FeedForward(a=np.full((2, 2), np.nan)), "a must be finite"),
        (lambda: PerLayer(np.ones((0, 2, 2))), "at least one layer"),
        (lambda: LayerNorm(eps=np.inf), "eps must be finite"),
    ],
)
def test_weights_that_do_not_fit_are_refused(make, said, untyped):
    with pytest.raises(af.InputError, match=said):
        make()


def test_starts_that_do_not_fit_are_refused():
    wide = {"w": np.ones((D + 1, M)), "a": np.ones((M, D + 1))}
    for system in (af.Transformer(**wide), af.ResNet(**wide)):
        with pytest.raises(af.InputError, match=f"d = {D + 1}"):
            af.simulate(system, SPHERE, [0.0, 1.0])
    with pytest.raises(af.InputError, match="gain and shift"):
        af.simulate(af.PreNormTransformer(gain=np.ones(2)), X, [0.0, 1.0])
    with pytest.raises(af.InputError, match="origin"):
        af.simulate(af.PreNormTransformer(norm="rms"), 0 * X, [0.0, 1.0])
    with pytest.raises(af.InputError, match="splitting"):
        af.simulate(af.PostNormTransformer(splitting="strang"), X, [0.0, 1.0])
    with pytest.raises(af.InputError, match="must be SA"):
        af.observe.energy_rate(af.Transformer(w=1.0), SPHERE)


def test_a_name_in_short():
    assert repr(af.Transformer(4.0)) == "Transformer(beta=4)"
    block = af.PreNormTransformer(0.5, **random_weights(), mask="causal")
    short = "PreNormTransformer(beta=0.5, heads=2, width=9, sigma='relu', norm='layer', "
    assert repr(block) == short + "mask=Causal())"


@pytest.mark.parametrize(
    "given", [{"O": (3, 3)}, {"b_V": (3,)}, {"b_O": (3,)}, {"O": (3, 3), "V": ()}]
)
def test_values_that_are_no_multiples_of_tokens_count_in_full(given):
    """On the sphere a token's own term may be left out of the sum only where V = cI alone acts."""
    rng = np.random.default_rng(1)
    weights = {name: rng.normal(size=shape) for name, shape in given.items()}
    x = rng.normal(size=(5, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    A = np.exp(2 * x @ x.T)
    values = weights.get("V", 1.0) * x + weights.get("b_V", 0)
    pushed = (A / A.sum(axis=1, keepdims=True)) @ values @ weights.get("O", np.eye(3)).T
    pushed = pushed + weights.get("b_O", 0)
    expected = pushed - np.sum(pushed * x, axis=1, keepdims=True) * x
    found = af.Transformer(2.0, **weights).velocity(0.0, jnp.asarray(x))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)
