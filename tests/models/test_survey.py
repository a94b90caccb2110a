"""Every number of a survey, and of the page made of it, computed again in plain NumPy."""

import dataclasses
import html
import itertools
import json
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
from scipy.sparse.csgraph import connected_components

import attnflow as af
import plain_attention
from attnflow import models
from attnflow.model_report import html_report, to_json
from attnflow.models.predictions import expected_overlap, predictions
from attnflow.models.survey_types import LEVELS
from checkpoints import HERE, minilm

PARAGRAPHS = [
    (Path(__file__).parents[2] / "examples" / "texts" / f"{name}.txt").read_text()
    for name in ("clocks", "garden")
]
TEXTS = ["the cat sat on the mat and the cat saw a mat", "it saw a cat at home"]
BETA, DELTA = 2.0, 0.3


@pytest.fixture(
    scope="module",
    params=["bert", *(pytest.param(name, marks=pytest.mark.slow) for name in ("llama", "minilm"))],
)
def case(request):
    """A model, texts of different lengths, and their survey."""
    name = request.param
    texts = PARAGRAPHS if name == "minilm" else TEXTS
    model = models.load(minilm() if name == "minilm" else HERE / name, dtype="float64")
    return model, texts, models.survey(model, texts, beta=BETA, delta=DELTA)


def each(case):
    """Of each text alone its number, its states, the directions of its tokens, and its survey."""
    model, texts, found = case
    for i, (text, of_text) in enumerate(zip(texts, found.texts, strict=True)):
        x = np.asarray(model.states(text))
        yield i, x, x / np.linalg.norm(x, axis=-1, keepdims=True), of_text


def linked(u, delta):
    """The cluster of each token, from the matrix of all overlaps."""
    return connected_components(u @ u.T >= 1 - delta, directed=False)


@pytest.mark.slow
def test_what_was_surveyed(case):
    model, texts, found = case
    assert (found.layers, found.beta, found.delta) == (model.layers, BETA, DELTA)
    for text, of_text in zip(texts, found.texts, strict=True):
        assert list(of_text.tokens) == model.tokens(text)
    assert np.abs(found.states - np.asarray(model.states(texts[0]))).max() < 1e-10


def test_the_paragraph_is_long():
    assert len(PARAGRAPHS[0].split()) >= 300


def test_overlaps_energy_and_rank(case):
    for _, _, u, of_text in each(case):
        n = u.shape[1]
        for k, v in enumerate(u):
            c = v @ v.T
            pairs = c[~np.eye(n, dtype=bool)]
            counts, _ = np.histogram(np.clip(pairs, -1, 1), 40, (-1, 1))
            assert np.abs(of_text.histogram[k] - counts * 20 / len(pairs)).max() < 1e-9
            assert of_text.mean_overlap[k] == pytest.approx(pairs.mean(), abs=1e-11)
            assert of_text.energy[k] == pytest.approx(np.exp(BETA * c).mean() / (2 * BETA))
            s = np.linalg.svd(v, compute_uv=False)
            p = s[s > 0] / s.sum()
            assert of_text.effective_rank[k] == pytest.approx(np.exp(-np.sum(p * np.log(p))))
        rises = sum(b > a for a, b in itertools.pairwise(of_text.energy))
        assert of_text.rises == rises


def test_clusters_and_who_joins_whom(case):
    for _, _, u, of_text in each(case):
        parts = []
        for k, v in enumerate(u):
            assert of_text.clusters[k].tolist() == [linked(v, level)[0] for level in LEVELS]
            count, labels = linked(v, DELTA)
            assert of_text.cluster_counts[k] == count
            parts.append({frozenset(np.flatnonzero(labels == c).tolist()) for c in range(count)})
            ours = of_text.labels[k]
            assert {frozenset(np.flatnonzero(ours == c).tolist()) for c in set(ours)} == parts[-1]
        expected = set()
        for k, (before, after) in enumerate(itertools.pairwise(parts), start=1):
            for cluster in after:
                groups = frozenset(cluster & old for old in before if cluster & old)
                if len(groups) > 1:
                    expected.add((k, groups))
        found = {(j.layer, frozenset(frozenset(g) for g in j.groups)) for j in of_text.joins}
        assert found == expected
        assert len(of_text.joins) == len(expected)


def test_joins_are_seen_in_some_text(case):
    assert any(text.joins for text in case[2].texts)


def test_attention_of_every_head(case):
    model = case[0]
    causal = model.system.mask is not None
    beta = float(model.system.beta)
    for _, x, _, of_text in each(case):
        n = x.shape[1]
        may_see = np.tri(n, dtype=bool) if causal else np.ones((n, n), bool)
        for k in range(model.layers):
            y = np.asarray(models.seen_tokens(model, k, jnp.asarray(x[k])))
            v = y / np.linalg.norm(y, axis=1, keepdims=True)
            heads = models.extract_heads(model, k)
            received = np.zeros(n)
            for h in range(heads.count):
                s = plain_attention.scores(heads, h, beta, y)
                A = plain_attention.softmax(s, causal)
                values = np.linalg.svd(A, compute_uv=False)
                assert of_text.attention_rank[k, h] == np.sum(values > 1e-3 * values[0])
                assert np.array_equal(of_text.leaders[k, h], (A >= 0.5).any(axis=0))
                received += A.mean(axis=0) / heads.count
                rows = [(s[i, m], (v[i] @ v.T)[m]) for i, m in enumerate(may_see)]
                own = sum(a.var() for a, _ in rows)
                plain = sum(b.var() for _, b in rows)
                both = sum(np.mean((a - a.mean()) * (b - b.mean())) for a, b in rows)
                found = of_text.effective_beta[k, h], of_text.alignment[k, h]
                expected = np.sqrt(own / plain), both / np.sqrt(own * plain)
                assert found == pytest.approx(expected, rel=1e-8)
            assert np.abs(of_text.received[k] - received).max() < 1e-10
        assert of_text.median_beta == pytest.approx(np.median(of_text.effective_beta))


def test_collapse_of_words_that_come_again(case):
    model, texts, _ = case
    for i, _, u, of_text in each(case):
        ids = np.asarray(model.encode(texts[i]).ids)
        classes = [w for w in set(ids.tolist()) if np.sum(ids == w) > 1]
        if len(classes) < 2:
            assert of_text.collapse is None
            continue
        assert of_text.collapse.classes == len(classes)
        for k, v in enumerate(u):
            means = np.array([v[ids == w].mean(axis=0) for w in classes])
            within = np.mean([v[ids == w].var(axis=0).sum() for w in classes])
            between = means.var(axis=0).sum()
            assert of_text.collapse.ratio[k] == pytest.approx(within / between)
            m = means - means.mean(axis=0)
            m /= np.linalg.norm(m, axis=1, keepdims=True)
            off = (m @ m.T)[~np.eye(len(m), dtype=bool)]
            worst = np.abs(off + 1 / (len(m) - 1)).max()
            assert of_text.collapse.angle_error[k] == pytest.approx(worst)


def test_what_attention_on_the_sphere_would_do(case):
    causal = case[0].system.mask is not None
    for i, _, u, of_text in each(case):
        v, n = u[0], u.shape[1]
        for k in range(len(u)):
            off = (v @ v.T)[~np.eye(n, dtype=bool)]
            assert of_text.predicted[k] == pytest.approx(off.mean(), abs=1e-9)
            v = v + plain_attention.softmax(of_text.median_beta * v @ v.T, causal) @ v
            v /= np.linalg.norm(v, axis=1, keepdims=True)
        rows = np.concatenate([u[0].T, np.ones((1, n))])
        away = scipy.optimize.nnls(rows, np.eye(len(rows))[-1])[1]
        assert of_text.hemisphere == (away > 1e-9), "0 is a mean of tokens, or it is not"

        def slope(t, g, b=of_text.median_beta, n=n):
            weight = np.exp(b * (g - 1))
            return 2 * weight * (1 - g) * ((n - 1) * g + 1) / (1 + (n - 1) * weight)

        solved = scipy.integrate.solve_ivp(slope, (0, len(u) - 1), [0.0], rtol=1e-9, atol=1e-12)
        assert expected_overlap(case[2], i) == pytest.approx(solved.y[0, -1], abs=1e-7)


def test_spectra_are_those_of_each_layer(case):
    model, _, found = case
    assert [s.layer for s in found.spectra] == list(range(model.layers))
    good = 0
    for spectrum in found.spectra:
        heads = models.extract_heads(model, spectrum.layer)
        V = np.asarray(heads.V)
        radius = np.abs(np.linalg.eigvals(V.sum(axis=0))).max()
        assert spectrum.total_radius == pytest.approx(radius)
        for h, head in enumerate(spectrum.heads):
            vectors = np.linalg.eig(V[h])
            values = vectors.eigenvalues
            assert head.radius == pytest.approx(np.abs(values).max())
            assert np.sum(head.eigenvalues).real == pytest.approx(np.trace(V[h]), abs=1e-9)
            M = np.asarray(heads.Q[h].T @ heads.K[h])
            signs = np.linalg.eigvalsh((M + M.T) / 2)
            share = np.sum((M + M.T) ** 2) / 4 / np.sum(M**2)
            assert (head.symmetric, head.balance) == pytest.approx(
                (share, signs.sum() / np.abs(signs).sum()), abs=1e-9
            )
            first = np.argmax(np.abs(vectors.eigenvalues))
            value, phi = vectors.eigenvalues[first], vectors.eigenvectors[:, first]
            leads = np.sum(np.abs(values) > np.abs(value) * (1 - 1e-9)) == 1
            is_good = leads and value.real > 0 and (phi.real @ M @ phi.real) > 0
            assert head.good == is_good
            good += is_good
    assert found.good_heads == (good, model.layers * (model.system.heads.count))


def test_flows_solve_the_equation(case):
    """Against SciPy from the same start, with the matrices of the layer."""
    model, _, found = case
    alone, together = found.flows
    assert (alone.head is None, together.head is None) == (False, True)
    heads = models.extract_heads(model, alone.layer)
    causal = model.system.mask is not None
    for flow in found.flows:
        x = found.states[flow.layer][: flow.xs.shape[1]]
        y = np.asarray(models.seen_tokens(model, flow.layer, jnp.asarray(x)))
        beta = float(model.system.beta) * np.mean(np.sum(y**2, axis=1))
        assert flow.beta == pytest.approx(beta)
        acting = range(heads.count) if flow.head is None else [flow.head]

        def field(t, flat, acting=acting, beta=beta, shape=y.shape):
            u = flat.reshape(shape)
            pushed = sum(
                plain_attention.softmax(
                    beta * (u @ heads.Q[h].T) @ np.asarray(u @ heads.K[h].T).T, causal
                )
                @ (u @ np.asarray(heads.V[h]).T)
                for h in acting
            )
            return np.asarray(pushed - np.sum(pushed * u, axis=1, keepdims=True) * u).ravel()

        start = y / np.linalg.norm(y, axis=1, keepdims=True)
        until = flow.ts[10]
        solved = scipy.integrate.solve_ivp(field, (0, until), start.ravel(), rtol=1e-6, atol=1e-8)
        assert np.abs(solved.y[:, -1].reshape(start.shape) - flow.xs[10]).max() < 1e-3
        counts = [linked(v, DELTA)[0] for v in flow.xs]
        assert flow.clusters.tolist() == counts


class Page(HTMLParser):
    """The tables of a page, its elements, and the text outside of its style."""

    def __init__(self, page):
        super().__init__()
        self.tables, self.elements, self.cell = [], [], None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self.cell = True

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.cell = None

    def handle_data(self, data):
        if self.cell:
            self.tables[-1][-1][-1] += data


def numbers(text):
    return [float(x.replace("−", "-")) for x in re.findall(r"[-−+]?\d+\.?\d*(?:e[-+]\d+)?", text)]


def test_the_page_shows_the_numbers(case):
    _, _, found = case
    page = Page(html_report(found))
    tables = {table[0][0] + table[0][1]: table[1:] for table in page.tables}
    names = "mean_overlap", "predicted", "energy"
    names = (*names, "effective_rank_per_token", "cluster_counts_per_token")
    for k, row in enumerate(tables["layers passedmean overlap"]):
        assert row[0] == str(k)
        for name, cell in zip(names, row[1:], strict=True):
            values = np.array([getattr(text, name)[k] for text in found.texts])
            mean, deviation = numbers(cell)
            spread = values.std(ddof=1)  # written to two digits, and the mean to as many places
            assert mean == pytest.approx(values.mean(), rel=1e-3, abs=0.06 * spread)
            assert deviation == pytest.approx(spread, rel=6e-2, abs=1e-9)
    first = found.texts[0]
    for k, row in enumerate(tables["layermedian rank"]):
        for cell, name in zip(
            row[1:4], ("attention_rank", "leader_counts", "effective_beta"), strict=True
        ):
            mean = np.mean([getattr(text, name)[k] for text in found.texts], axis=0)
            assert float(cell) == pytest.approx(np.median(mean), rel=6e-3)
        top = int(np.argmax(first.received[k]))
        assert row[4].startswith(f"{first.tokens[top]} {first.received[k, top]:.1%}")
    heads = [(s.layer, h, head) for s in found.spectra for h, head in enumerate(s.heads)]
    for (layer, h, head), row in zip(heads, tables["layer.headλ₁(V)"], strict=True):
        assert row[0] == f"{layer + 1}.{h}"
        assert numbers(row[1])[0] == pytest.approx(head.eigenvalues[0].real, abs=6e-4)
        assert float(row[2]) == pytest.approx(head.radius, abs=6e-4)
        assert row[3] == {True: "yes", False: "no", None: "undecided"}[head.good]
        assert float(row[4]) == pytest.approx(head.symmetric, abs=6e-4)
        assert numbers(row[5]) == [head.positive, head.negative]
        assert float(row[6]) == pytest.approx(head.balance, abs=6e-4)
    for spectrum, row in zip(found.spectra, tables["layerλ₁(ΣV)"], strict=True):
        assert float(row[2]) == pytest.approx(spectrum.total_radius, abs=6e-4)
    said = tables["what is proven or computedwhat it predicts here"]
    assert [tuple(row) for row in said] == [tuple(p) for p in predictions(found)]


def span(values):
    return sorted({min(values), max(values)})


def test_the_page_names_the_tokens_of_clusters(case):
    _, _, u, text = next(each(case))
    _, last = linked(u[-1], DELTA)
    groups = [[text.tokens[i] for i in np.flatnonzero(last == c)] for c in np.unique(last)]
    largest = sorted((len(group) for group in groups if len(group) > 1), reverse=True)[:12]
    shown = re.search(r"The largest ones:</p><ul>(.*?)</ul>", html_report(case[2]), re.S)
    items = re.findall(r"<li>(.*?)</li>", shown[1], re.S) if shown else []
    assert [int(re.search(r"\((\d+)\)$", item)[1]) for item in items] == largest
    for item in items:
        if "more words" not in item:
            said = re.findall(r"<code>(.*?)</code>(?:×(\d+))?", item)
            counted = Counter({html.unescape(word): int(times or 1) for word, times in said})
            assert counted in [Counter(group) for group in groups]


def test_the_words_of_the_comparison_have_the_numbers(case):
    _, _, found = case
    energy, clusters, pace, closed, good = (
        [numbers(part) for part in row[1:]] for row in predictions(found)
    )
    count = len(found.texts)
    rises = [int(np.sum(np.diff(text.energy) > 0)) for text in found.texts]
    monotone = sum(r == found.layers for r in rises)
    assert energy[1] == [*span(rises), found.layers, monotone, count]
    assert clusters[0][:2] == [sum(text.hemisphere for text in found.texts), count]
    ends = [linked(u[-1], DELTA)[0] for _, _, u, _ in each(case)]
    sizes = [len(text.tokens) for text in found.texts]
    assert clusters[1] == [found.layers, *span(ends), *span(sizes), DELTA]
    overlap = np.mean([[t.mean_overlap[0], t.mean_overlap[-1]] for t in found.texts], axis=0)
    assert pace[1] == pytest.approx(overlap, abs=6e-4)
    ideal = np.mean([t.predicted[-1] for t in found.texts])
    assert pace[0][1] == pytest.approx(ideal, abs=6e-4)
    gammas = [expected_overlap(found, i) for i in range(len(found.texts))]
    assert closed[0][0] == pytest.approx(np.mean(gammas), abs=6e-4)
    assert closed[1][0] == pytest.approx(overlap[1] - overlap[0], abs=6e-4)
    assert good[1][:2] == list(found.good_heads)


def test_the_page_needs_nothing_else(case):
    page = html_report(case[2])
    elements = Page(page).elements
    images = [attrs["src"] for tag, attrs in elements if tag == "img"]
    assert len(images) >= 7
    assert all(src.startswith("data:image/png;base64,") for src in images)
    assert {tag for tag, _ in elements}.isdisjoint({"script", "link", "iframe", "object", "a"})
    assert "http" not in re.sub(r"base64,[^\"]*", "", page)


HOSTILE = "</code><script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "&lt;b&gt;"


def test_hostile_text_stays_text(case):
    _, _, found = case
    text = found.texts[0]
    words = tuple(HOSTILE[i % 3] for i in range(len(text.tokens)))
    texts = (dataclasses.replace(text, tokens=words), *found.texts[1:])
    name = "<script>alert(2)</script>"
    page = html_report(dataclasses.replace(found, texts=texts, model=name, kind=HOSTILE[1]))
    elements = Page(page).elements
    assert "script" not in {tag for tag, _ in elements}
    assert all(a["src"].startswith("data:") for tag, a in elements if tag == "img")
    assert all(not key.startswith("on") for _, attrs in elements for key in attrs)
    leaders = next(t for t in Page(page).tables if t[0][1] == "median rank")
    assert HOSTILE[int(np.argmax(text.received[0])) % 3] in leaders[1][4]


def test_json_has_every_number(case):
    _, _, found = case
    told = json.loads(json.dumps(to_json(found), allow_nan=False))
    for text, given in zip(found.texts, told["texts"], strict=True):
        for field in dataclasses.fields(text):
            value = getattr(text, field.name)
            if isinstance(value, np.ndarray):
                assert np.array_equal(np.array(given[field.name]), value), field.name
        assert [join["layer"] for join in given["joins"]] == [join.layer for join in text.joins]
    head = told["spectra"][0]["heads"][0]
    pairs = np.array(head["eigenvalues"])
    assert np.array_equal(pairs[:, 0] + 1j * pairs[:, 1], found.spectra[0].heads[0].eigenvalues)
    assert told["flows"][0]["clusters"] == found.flows[0].clusters.tolist()
    assert "states" not in told


def test_errors_over_texts(case):
    found = case[2]
    mean, deviation = found.across("energy")
    values = np.array([text.energy for text in found.texts])
    assert np.allclose(mean, values.mean(axis=0))
    assert np.allclose(deviation, values.std(axis=0, ddof=1))
    single = dataclasses.replace(found, texts=found.texts[:1])
    assert np.array_equal(single.across("energy")[1], np.zeros(found.layers + 1))
    assert " ± " not in html_report(single).replace("means over the texts, ±", "")


@pytest.mark.slow
def test_a_shared_model_is_surveyed_deeper_than_it_was_trained():
    model = models.load(HERE / "albert")
    found = models.survey(model, TEXTS[0], depth=30)
    assert found.layers == 30
    assert len(found.spectra) == 1
    assert found.texts[0].attention_rank.shape == (30, 4)
    assert "which share their weights" in html_report(found)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"beta": 0.0}, "beta must be"),
        ({"delta": -1.0}, "delta must be"),
        ({"depth": 4}, "depth must be at most 3"),
    ],
)
def test_what_cannot_be_surveyed(given, said):
    model = models.load(HERE / "bert")
    with pytest.raises(af.InputError, match=said):
        models.survey(model, TEXTS, **given)


def test_a_text_of_one_token_has_no_pairs():
    model = models.load(HERE / "gpt2")
    with pytest.raises(af.InputError, match=r"texts\[1\] has a single token"):
        models.survey(model, [TEXTS[0], ""])
