"""Hidden states of trained and random models against those of Hugging Face `transformers`."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from checkpoints import (
    CONFIGS,
    DEEP,
    HERE,
    SENTENCES,
    TEXTS,
    float64_throughout,
    hidden_states,
    looked_at,
    minilm,
    write,
)

AGREE = {"float32": 1e-4, "float64": 1e-10}
RECORDED = {("bert", "float32"), ("llama", "float32")}
RECORDED |= {(name, "float64") for name in CONFIGS if name != "albert-groups"}
LIVE = {("bert", "float32"), ("llama", "float64")}


def in_both_precisions(quick):
    """Every architecture in float32 and float64; all but the quick ones are slow."""
    return [
        pytest.param(name, dtype, marks=[] if (name, dtype) in quick else [pytest.mark.slow])
        for name in CONFIGS
        for dtype in AGREE
    ]


def gap(model, texts, theirs, **how):
    """The largest difference over all layers and tokens; theirs ends after any final norm."""
    encoded = model.encode(texts)
    ours = model.states(encoded, **how)
    assert ours.shape == theirs.shape
    assert ours.dtype == np.dtype(model.embedding.words.dtype)
    ours = np.concatenate([ours[:, :-1], model.output(ours[:, -1])[:, None]], axis=1)
    return max(np.abs((ours - theirs)[i][:, mask]).max() for i, mask in enumerate(encoded.mask))


@pytest.mark.parametrize(("name", "dtype"), in_both_precisions(RECORDED))
def test_states_are_those_that_were_recorded(name, dtype):
    model = af.models.load(HERE / name, dtype=dtype)
    theirs = np.load(HERE / name / "states.npz")
    assert gap(model, TEXTS, theirs["states"]) < AGREE[dtype]
    assert model.layers == theirs["states"].shape[1] - 1


def test_shared_layers_go_deeper_than_they_were_trained():
    name, depth = DEEP
    model = af.models.load(HERE / name, dtype="float64")
    assert model.shared
    assert model.system.heads.Q.shape == (4, 4, 16)
    deep = model.states(TEXTS, depth=depth)
    mask = model.encode(TEXTS).mask
    theirs = np.load(HERE / name / "states.npz")["deep"]
    assert deep.shape[1] == depth + 1
    assert np.abs((deep[:, ::8] - theirs).swapaxes(1, 2)[mask]).max() < 1e-10


@pytest.fixture(scope="module")
def transformers():
    pytest.importorskip("torch")
    return pytest.importorskip("transformers")


@pytest.mark.parametrize(("name", "dtype"), in_both_precisions(LIVE))
def test_states_are_those_of_transformers(name, dtype, transformers, tmp_path):
    """New random weights, sharded where the recorded ones are whole."""
    folder = write(name, tmp_path, key=1, max_shard_size="10KB")
    model = af.models.load(folder, dtype=dtype)
    theirs = hidden_states(folder, model.encode(TEXTS), dtype)
    assert gap(model, TEXTS, theirs) < AGREE[dtype]


@pytest.mark.parametrize("dtype", [pytest.param("float32", marks=pytest.mark.slow), "float64"])
def test_minilm_on_ten_sentences_is_that_of_transformers(dtype, transformers):
    model = af.models.load(minilm(), dtype=dtype)
    encoded = model.encode(SENTENCES)
    assert not encoded.mask.all()
    theirs = hidden_states(minilm(), encoded, dtype)
    assert gap(model, SENTENCES, theirs) < AGREE[dtype]


def test_minilm_on_ten_sentences_is_what_was_recorded():
    model = af.models.load(minilm(), dtype="float64")
    states, mask = np.asarray(model.states(SENTENCES)), model.encode(SENTENCES).mask
    seen = np.concatenate([looked_at(x[:, m]) for x, m in zip(states, mask, strict=True)], axis=1)
    recorded = np.load(HERE.parent / "minilm.npz")["seen"]
    assert np.abs(seen - recorded).max() < 1e-9


def test_text_is_cut_into_the_same_tokens(transformers):
    model = af.models.load(minilm())
    theirs = transformers.AutoTokenizer.from_pretrained(minilm())(SENTENCES, padding=True)
    ours = model.encode(SENTENCES)
    assert np.array_equal(ours.ids, theirs["input_ids"])
    assert np.array_equal(ours.mask, theirs["attention_mask"])
    long = "word " * 300
    assert len(model.tokens(long)) == 302, "nothing is cut off, whatever the file says of 128"


@pytest.mark.parametrize("name", [pytest.param("bert", marks=pytest.mark.slow), "llama"])
def test_attention_is_that_of_transformers(name, transformers):
    import torch

    model = af.models.load(HERE / name, dtype="float64")
    encoded = model.encode(TEXTS[0])
    theirs = transformers.AutoModel.from_pretrained(HERE / name, attn_implementation="eager")
    ids = torch.as_tensor(np.asarray(encoded.ids[None], np.int64))
    with torch.no_grad():
        theirs = theirs.eval()(ids, output_attentions=True).attentions
    states, look = model.states(encoded), eqx.filter_jit(af.observe.attention)
    for k in range(model.layers):
        ours = np.asarray(look(model.system, states[k], t=jnp.asarray(float(k))))
        assert np.abs(ours - theirs[k][0].numpy()).max() < 1e-5


@pytest.mark.slow
def test_gradients_are_those_of_torch(transformers, rng):
    import torch

    model = af.models.load(HERE / "gpt2", dtype="float64")
    encoded = model.encode(TEXTS[0])
    x, places = model.embed(encoded), model.embedding.places[: len(encoded.ids)]
    weight = rng.normal(size=x.shape)

    def score(x):
        for k in range(model.layers):
            x = model.system.layer(float(k), x, 1.0)
        return (model.output(x) * weight).sum()

    theirs = transformers.AutoModel.from_pretrained(HERE / "gpt2", attn_implementation="eager")
    start = torch.tensor(np.array(x - places)[None], requires_grad=True)
    with float64_throughout():
        out = theirs.double().eval()(inputs_embeds=start).last_hidden_state
    (out[0] * torch.as_tensor(weight)).sum().backward()
    assert np.abs(jax.jit(jax.grad(score))(x) - start.grad[0].numpy()).max() < 1e-10
