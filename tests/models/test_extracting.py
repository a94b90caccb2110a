"""Heads taken out of a model, against its own attention and that of `transformers`."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import attnflow as af
import plain_attention
from attnflow import models
from attnflow.weights import Rotary
from checkpoints import CONFIGS, HERE, MINILM, SENTENCES, TEXTS, looked_at, minilm, run_reference

QUICK = {"bert", "gpt2", "llama"}
NAMES = [pytest.param(n, marks=[] if n in QUICK else [pytest.mark.slow]) for n in CONFIGS]

drift = eqx.filter_jit(lambda system, x, masses: system.drift(0.0, x, masses))


def added(model, texts, layers):
    """What the extracted attention adds to the tokens of each layer, (b, layers, n, d)."""
    states, mask = model.states(texts), model.encode(texts).mask
    subs = [models.attention_layer(model, k) for k in range(layers)]
    return np.array(
        [
            [drift(sub, x[k], jnp.asarray(m, x.dtype)) for k, sub in enumerate(subs)]
            for x, m in zip(states, mask, strict=True)
        ]
    ), mask


def largest(gap, mask):
    return np.abs(gap.swapaxes(1, 2)[mask]).max()


@pytest.mark.parametrize("name", NAMES)
def test_heads_add_what_was_recorded(name):
    model = models.load(HERE / name, dtype="float64")
    theirs = np.load(HERE / name / "attention.npz")["added"]
    ours, mask = added(model, TEXTS, theirs.shape[1])
    assert np.abs(theirs).max() > 0.1
    assert largest(ours - theirs, mask) < 1e-10


def test_heads_of_minilm_add_what_was_recorded():
    model = models.load(minilm(), dtype="float64")
    ours, mask = added(model, SENTENCES[:2], model.layers)
    seen = np.concatenate([looked_at(x[:, m]) for x, m in zip(ours, mask, strict=True)], axis=1)
    recorded = np.load(HERE.parent / MINILM[1])["seen"]
    assert np.abs(seen - recorded[:, : seen.shape[1]]).max() < 1e-10


@pytest.mark.parametrize("name", ["minilm", pytest.param("llama", marks=pytest.mark.slow)])
def test_heads_add_what_transformers_adds(name):
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    folder = minilm() if name == "minilm" else HERE / name
    texts = SENTENCES[:2] if name == "minilm" else TEXTS
    model = models.load(folder, dtype="float64")
    ours, mask = added(model, texts, model.layers)
    theirs = run_reference(folder, model.encode(texts))[1]
    assert largest(ours - theirs, mask) < 1e-10


@pytest.mark.parametrize("name", ["bert", "llama"])
def test_the_matrices_are_all_there_is(name):
    model = models.load(HERE / name, dtype="float64")
    x = model.states(TEXTS[0])[2]
    heads = models.extract_heads(model, 2)
    assert heads.V.shape == (4, 16, 16)
    assert heads.O is None
    assert isinstance(heads.rotary, Rotary) == (name == "llama")
    y = np.asarray(models.seen_tokens(model, 2, x))
    assert np.array_equal(y, x) == (name == "bert")
    ours = plain_attention.added(heads, float(model.system.beta), y, causal=name == "llama")
    theirs = model.system.drift(2.0, x)
    assert np.abs(ours - theirs).max() < 1e-12


def test_the_idealised_system_has_the_scores_of_tokens_of_one_length():
    model = models.load(HERE / "bert", dtype="float64")
    x = model.states(TEXTS[0])[1]
    system = models.idealised(model, 1, x, heads=[0, 2])
    r = np.sqrt(np.mean(np.sum(np.asarray(x) ** 2, axis=1)))
    u = np.asarray(af.initial.normalise(x))
    heads = models.extract_heads(model, 1)
    kept = models.extract_heads(model.variant(biases=False, heads=[0, 2]), 1)
    assert np.abs(kept.V - heads.V[jnp.array([0, 2])]).max() == 0
    pushed = plain_attention.added(kept, float(model.system.beta), r * u, causal=False) / r
    tangential = pushed - np.sum(pushed * u, axis=1, keepdims=True) * u
    assert np.abs(system.velocity(0.0, jnp.asarray(u)) - tangential).max() < 1e-12


def test_spectra_are_those_of_the_whole_matrices():
    model = models.load(HERE / "bert", dtype="float64")
    found = models.spectra(model, 1)
    heads = models.extract_heads(model, 1)
    V, M = np.asarray(heads.V), np.asarray(heads.Q.mT @ heads.K)
    total = scipy.linalg.eigvals(V.sum(axis=0))
    assert np.abs(np.sort_complex(found.total) - np.sort_complex(total)).max() < 1e-12
    assert found.total_radius == pytest.approx(np.abs(total).max(), rel=1e-12)
    for h, head in enumerate(found.heads):
        values = scipy.linalg.eigvals(V[h])
        nonzero = values[np.argsort(-np.abs(values))][:4]
        gap = np.abs(np.sort_complex(head.eigenvalues.round(9)) - np.sort_complex(nonzero.round(9)))
        assert gap.max() < 1e-8
        assert head.radius == pytest.approx(np.abs(values).max(), rel=1e-10)
        S = (M[h] + M[h].T) / 2
        signs = np.linalg.eigvalsh(S)
        assert head.symmetric == pytest.approx(np.sum(S**2) / np.sum(M[h] ** 2), rel=1e-12)
        assert head.balance == pytest.approx(signs.sum() / np.abs(signs).sum(), abs=1e-12)
        assert (head.positive, head.negative) == (np.sum(signs > 1e-9), np.sum(signs < -1e-9))
        whole = af.theory.limit_geometry(heads.Q[h], heads.K[h], V[h])
        assert head.good == (whole.kind == "hyperplanes")


def test_a_good_head_is_found(rng):
    """A head that is good by construction, and the same head with V, or with K, turned round."""
    frame = np.linalg.qr(rng.normal(size=(40, 40)))[0]
    V, O = frame[:3], frame[:3].T * np.array([2.0, -1.0, 0.5])
    Q, K = (np.concatenate([frame[:1], 0.1 * rng.normal(size=(2, 40))]) for _ in range(2))
    good = models.head_spectrum(Q, K, V, O)
    assert good.good
    assert np.abs(good.eigenvalues - [2.0, -1.0, 0.5]).max() < 1e-12
    for other in (models.head_spectrum(Q, K, V, -O), models.head_spectrum(Q, -K, V, O)):
        assert other.good is False
    assert "<Qφ₁, Kφ₁> > 0" in other.why
    assert "fails" in other.why


def test_the_signature_of_a_head_of_few_rows_is_balanced(rng):
    """By Sylvester's law of inertia, whatever its weights: k positive and k negative."""
    Q, K, V = rng.normal(size=(3, 3, 20))
    found = models.head_spectrum(Q, K, V, V.T)
    assert (found.positive, found.negative) == (3, 3)
    same = models.head_spectrum(Q, Q, V, V.T)
    assert (same.positive, same.negative, round(same.balance, 9)) == (3, 0, 1.0)
    assert same.symmetric == pytest.approx(1.0)


@pytest.mark.parametrize("layer", [-1, 3, 1.5])
def test_layers_that_are_not_there(layer, untyped):
    model = models.load(HERE / "bert")
    with pytest.raises(af.InputError, match="layer must be"):
        models.extract_heads(model, layer)


def test_shared_layers_are_the_same_at_any_depth():
    model = models.load(HERE / "albert")
    first, far = (models.extract_heads(model, k).V for k in (0, 40))
    assert np.array_equal(first, far)
