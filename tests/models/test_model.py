"""A model as a system: its text, its depth, its variants, each against an altered checkpoint."""

import dataclasses
import itertools
import re
import shutil

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import attnflow as af
from attnflow.models import Encoded
from checkpoints import HERE, TEXTS, minilm


@pytest.fixture(scope="module")
def bert():
    return af.models.load(HERE / "bert", dtype="float64")


@pytest.fixture(scope="module")
def llama():
    return af.models.load(HERE / "llama", dtype="float64")


def altered(name, folder, change):
    """The model whose checkpoint has each tensor replaced by `change(name, tensor)`."""
    shutil.copytree(HERE / name, folder, dirs_exist_ok=True)
    file = folder / "model.safetensors"
    tensors = {key: np.array(change(key, W)) for key, W in load_file(file).items()}
    save_file(tensors, file)
    return af.models.load(folder, dtype="float64")


def in_layers(key):
    return ".layer." in key or ".layers." in key or "albert_layers" in key or ".h." in key


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bert", "llama"])
def test_no_tensor_is_ignored(name, tmp_path, rng):
    """A checkpoint with one tensor changed has other states, whichever it is."""
    model = af.models.load(HERE / name, dtype="float64")
    before = model.output(model.states(TEXTS)[:, -1])
    for key in load_file(HERE / name / "model.safetensors"):
        if key.startswith(("cls.", "lm_head")) or (in_layers(key) and ".1." not in key):
            continue
        changed = altered(
            name,
            tmp_path,
            lambda other, W, key=key: (
                W + 0.1 * rng.normal(size=W.shape).astype(W.dtype) if other == key else W
            ),
        )
        after = changed.output(changed.states(TEXTS)[:, -1])
        # a bias of keys shifts all scores of a query alike, unless places turn it
        same = name == "bert" and key.endswith("key.bias")
        assert (np.abs(after - before).max() < 1e-12) == same, key


def test_it_is_a_system_that_simulate_runs(bert):
    x0, states = bert.embed(TEXTS[0]), bert.states(TEXTS[0])
    run = af.simulate(bert.system, x0, np.arange(4.0), method=af.Layers(1.0))
    assert np.abs(run.xs - states).max() < 1e-13
    direction = jnp.asarray(np.random.default_rng(0).normal(size=x0.shape))
    layer = eqx.filter_jit(lambda x: bert.system.layer(0.0, x, 1.0))
    _, derivative = jax.jit(lambda x: jax.jvp(layer, (x,), (direction,)))(x0)
    moved = layer(x0 + 1e-6 * direction) - layer(x0 - 1e-6 * direction)
    assert np.abs(derivative - moved / 2e-6).max() < 1e-8


@pytest.mark.slow
def test_a_pre_norm_model_is_a_flow(llama):
    """Its layers of length dt tend to the flow of its velocity as dt does to 0."""
    x0 = llama.embed(TEXTS[1])
    run = af.simulate(llama.system, x0, [0.0, 1.0])
    errors = [
        float(np.abs(llama.states(TEXTS[1], depth=1, dt=dt)[-1] - run.final).max())
        for dt in (1 / 128, 1 / 256)
    ]
    assert errors[1] < 0.1
    assert errors[0] / errors[1] == pytest.approx(2, abs=0.2)


@pytest.mark.slow
def test_post_norm_layers_have_a_flow_only_without_gains_and_shifts(bert):
    bare = bert.variant(gains=False, biases=False)

    def gaps(model):
        ends = [model.states(TEXTS[1], depth=1, dt=1 / k)[-1] for k in (64, 128, 256)]
        return [float(np.abs(a - b).max()) for a, b in itertools.pairwise(ends)]

    coarse, fine = gaps(bare)
    assert coarse / fine == pytest.approx(2, abs=0.1)
    assert fine < 0.02 < 0.2 < gaps(bert)[1]


@pytest.mark.slow
def test_the_python_of_the_page_runs(capsys):
    minilm()
    page = (HERE.parents[2] / "docs" / "models.md").read_text()
    names = {}
    for block in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL):
        exec(compile(block, "models.md", "exec"), names)
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("['[CLS]', 'token', '##s', 'are', 'particles'")
    assert float(said[1]) < 1e-12


def test_padding_is_seen_by_nobody(bert, llama):
    for model in (bert, llama):
        batch, mask = model.states(TEXTS), model.encode(TEXTS).mask
        assert mask.sum(axis=1).tolist() == [len(model.tokens(text)) for text in TEXTS]
        alone = model.states(TEXTS[1])
        n = mask[1].sum()
        assert np.abs(batch[1][:, :n] - alone).max() < 1e-13
        encoded = model.encode(TEXTS)
        others = Encoded(np.where(mask, encoded.ids, 7), mask, encoded.types)
        seen = np.asarray(model.states(others) - batch).swapaxes(1, 2)
        assert np.abs(seen[mask]).max() < 1e-13 < np.abs(seen[~mask]).max()


def test_a_mask_of_zeros_and_ones_is_one_of_false_and_true(bert):
    encoded = bert.encode(TEXTS)
    whole = encoded._replace(mask=encoded.mask.astype(np.int64))
    assert bert.encode(whole).mask.dtype == bool
    assert (bert.states(whole) == bert.states(encoded)).all()


def test_the_padding_token_is_one_of_the_vocabulary(bert):
    for given, used in ((3, 3), (None, 0), (-1, 0), (40, 0), ("x", 0)):
        other = dataclasses.replace(bert, config={"pad_token_id": given})
        assert other.encode(TEXTS).ids[1, -1] == used
    roberta = af.models.load(HERE / "roberta")
    assert dataclasses.replace(roberta, config={}).encode(TEXTS).ids[1, -1] == 1


def test_segments_are_seen(bert):
    encoded = bert.encode(TEXTS)
    second = Encoded(encoded.ids, encoded.mask, np.ones_like(encoded.types))
    gap = bert.embedding.types[1] - bert.embedding.types[0]
    assert np.abs(np.asarray(bert.embed(second) - bert.embed(encoded))).max() > 0.1
    assert np.abs(gap).max() > 0.1


def test_depth_and_step():
    model = af.models.load(HERE / "albert", dtype="float64")
    states = model.states(TEXTS)
    assert np.abs(model.states(TEXTS, depth=48)[:, :25] - states).max() < 1e-13
    assert model.states(TEXTS[0], depth=1, dt=0.25).shape == (5, 12, 16)


def test_a_scaled_update_is_that_of_scaled_outputs(tmp_path):
    """Halving what each sub-layer adds is halving its last matrix and bias."""

    def halved(key, W):
        return W / 2 if ".attention.dense." in key or ".ffn_output." in key else W

    model = af.models.load(HERE / "albert", dtype="float64")
    ours = model.states(TEXTS, dt=0.5)
    theirs = altered("albert", tmp_path, halved).states(TEXTS, depth=48)
    assert np.abs(ours - theirs).max() < 1e-12


VARIANTS = {
    "biases": ({"biases": False}, lambda key, W: 0 * W if key.endswith("bias") else W),
    "gains": (
        {"gains": False},
        lambda key, W: W**0 if "norm" in key.lower() and key.endswith("weight") else W,
    ),
}


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("bert", "biases"),
        ("llama", "gains"),
        pytest.param("bert", "gains", marks=pytest.mark.slow),
        pytest.param("llama", "biases", marks=pytest.mark.slow),
    ],
)
def test_variants_are_checkpoints_with_less(name, what, tmp_path):
    given, change = VARIANTS[what]
    theirs = altered(name, tmp_path, lambda key, W: change(key, W) if in_layers(key) else W)
    ours = af.models.load(HERE / name, dtype="float64").variant(**given)
    assert np.abs(ours.states(TEXTS) - theirs.states(TEXTS)).max() < 1e-12


@pytest.mark.parametrize(
    ("name", "out", "k"),
    [
        pytest.param("bert", "output.dense", 4, marks=pytest.mark.slow),
        ("llama", "o_proj", 6),
    ],
)
def test_some_heads_are_the_others_silenced(name, out, k, tmp_path):
    """Silenced by zeros in the columns of the output matrix that belong to them."""

    def silenced(key, W):
        if in_layers(key) and key.endswith(f"{out}.weight") and W.shape == (16, 4 * k):
            W[:, :k] = W[:, 2 * k : 3 * k] = 0
        return W

    ours = af.models.load(HERE / name, dtype="float64").variant(heads=[1, 3])
    assert ours.system.heads.count == 2
    theirs = altered(name, tmp_path, silenced)
    assert np.abs(ours.states(TEXTS) - theirs.states(TEXTS)).max() < 1e-12


def test_attention_alone(bert, llama, tmp_path):
    bare = llama.variant(feed_forward=False)
    silent = altered("llama", tmp_path, lambda key, W: 0 * W if "down_proj" in key else W)
    assert np.abs(bare.states(TEXTS) - silent.states(TEXTS)).max() < 1e-12
    bare = bert.variant(feed_forward=False)
    x = bare.embed(TEXTS[0])
    first = eqx.filter_jit(lambda s, x: s.norm(0.0, x + s.drift(0.0, x), 0))(bert.system, x)
    assert np.abs(bare.states(TEXTS[0])[1] - first).max() < 1e-13


def test_the_way_to_the_papers_idealisation(llama):
    """With nothing but attention and the sphere's norm left, it is the paper's equation."""
    plain = llama.variant(feed_forward=False, biases=False, gains=False, heads=[0])
    system = plain.system
    assert system.feed_forward is None
    assert system.heads.b_Q is None
    assert system.norm.shift is None
    unit = system.norm(0.0, jnp.ones((1, 16)) * 3.0)
    assert np.linalg.norm(unit) == pytest.approx(4.0, rel=1e-3)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda m: m.states(TEXTS[0], depth=4), "depth must be at most 3"),
        (lambda m: m.states(TEXTS[0], depth=0), "depth must be a whole number"),
        (lambda m: m.states(TEXTS[0], dt=0.7), "dt must be at most 1"),
        (lambda m: m.states(TEXTS[0], dt=2.0), "dt must be at most 1"),
        (lambda m: m.states(TEXTS[0], dt=float("nan")), "dt must be at most 1"),
        (lambda m: m.states([]), "texts must be a text or a list"),
        (lambda m: m.states(["a", 3]), "texts must be a text or a list"),
        (lambda m: m.states("cat " * 19), "21 tokens, but .* takes at most 20"),
        (lambda m: m.tokens(m.encode(TEXTS)), "tokens takes one text"),
        (lambda m: m.variant(heads=[4]), "numbers from 0 to 3"),
        (lambda m: m.variant(heads=[]), "one or more"),
        (lambda m: m.variant(heads=[1, 1]), "distinct"),
        (lambda m: m.embed(numbers(40)), "ids contains 40"),
        (lambda m: m.embed(numbers(-1)), "ids contains"),
        (lambda m: m.embed(numbers(1, types=2)), "types contains 2"),
        (lambda m: m.embed(numbers(1)._replace(mask=np.ones(3, bool))), "must have the same shape"),
        (lambda m: m.states(numbers(1)._replace(mask=np.array([1.0, 0.5]))), "but it contains 0.5"),
        (lambda m: m.states(numbers(1)._replace(mask=np.array([0, -10000]))), "it contains -10000"),
        (lambda m: m.states(numbers(1)._replace(mask=np.array([1, np.nan]))), "it contains nan"),
        (
            lambda m: m.states(numbers(1)._replace(mask=np.zeros(2, bool))),
            "one text is all padding",
        ),
        (lambda m: m.states(numbers(1)._replace(ids=np.array([2.0, 1.5]))), "whole numbers"),
    ],
)
def test_what_cannot_be_run_is_refused(call, said, bert, untyped):
    with pytest.raises(af.InputError, match=said):
        call(bert)


def numbers(number, types=0):
    ids = np.array([2, number])
    return Encoded(ids, np.ones(2, bool), np.array([0, types]))


def test_texts_without_tokens_and_models_without_tokenizers(llama, tmp_path):
    bare = shutil.copytree(HERE / "gpt2", tmp_path / "bare")
    (bare / "tokenizer.json").unlink()
    model = af.models.load(bare)
    with pytest.raises(af.ModelError, match=r"has no tokenizer\.json"):
        model.states("the cat")
    assert model.embed(numbers(5)).shape == (2, 16)
    llama.tokenizer.post_processor = None
    with pytest.raises(af.InputError, match=r"texts\[1\] has no token"):
        llama.embed(["the", ""])


def test_a_name_in_short():
    model = af.models.load(minilm())
    assert "bert, layers=6, d=384, PostNormTransformer(beta=0.176777, heads=12" in repr(model)
    assert model.embedding.longest == 512
    assert model.config["hidden_act"] == "gelu"
