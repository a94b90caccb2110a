"""What the page is sent, against plain NumPy."""

import base64
import json

import numpy as np
import pytest

from attnflow.explore.form import Form
from attnflow.explore.frames import BINS, run_flow, to_page

BETA = 3.0


@pytest.fixture(scope="module")
def frames():
    return run_flow(Form(n=10, d=3, number=BETA, until=4.0, seed=2).build(), lambda part: None)


@pytest.fixture(scope="module")
def sent(frames):
    """As it comes out of the browser's JSON."""
    return json.loads(json.dumps(to_page(frames)))


@pytest.fixture(scope="module")
def xs(frames):
    return np.asarray(frames.trajectory.xs)


def softmax_rows(x):
    scores = np.exp(BETA * x @ x.T)
    return scores / scores.sum(axis=1, keepdims=True)


def test_tokens_and_times(frames, sent, xs):
    assert xs.shape == (81, 10, 3)
    np.testing.assert_allclose(sent["ts"], np.linspace(0, 4, 81), atol=1e-5)
    np.testing.assert_allclose(np.moveaxis(np.array(sent["seen"]), 1, 2), xs, atol=5.001e-5)
    np.testing.assert_array_equal(frames.seen, xs)


def test_attention(frames, sent, xs):
    rows = np.array(sent["rows"])
    assert sorted(rows) == list(range(10))
    raw = np.frombuffer(base64.b64decode(sent["attention"]), np.uint8).reshape(81, 10, 10)
    found = raw * sent["attention_top"] / 255
    plain = np.array([softmax_rows(x)[np.ix_(rows, rows)] for x in xs])
    assert sent["attention_top"] == pytest.approx(plain.max())
    np.testing.assert_allclose(found, plain, atol=0.501 * plain.max() / 255)
    np.testing.assert_array_equal(raw, frames.attention)


def test_overlaps(sent, xs):
    """A density on [-1, 1] of the overlaps of all pairs, each counted once."""
    i, j = np.triu_indices(10, 1)
    for x, found in zip(xs, sent["overlaps"], strict=True):
        plain, _ = np.histogram(np.clip((x @ x.T)[i, j], -1, 1), BINS, (-1, 1), density=True)
        np.testing.assert_allclose(found, plain, atol=1e-3)


def linked(x, near):
    """Clusters by following links of at most `near`, one token after the other."""
    labels = -np.ones(len(x), int)
    for first in range(len(x)):
        if labels[first] < 0:
            labels[first], open_ = labels.max() + 1, [first]
            while open_:
                i = open_.pop()
                for j in np.flatnonzero((np.linalg.norm(x - x[i], axis=1) <= near) & (labels < 0)):
                    labels[j] = labels[first]
                    open_.append(j)
    return labels


def test_labels_and_their_counts(frames, sent, xs):
    plain = linked(xs[-1], 1e-2)
    same = plain[:, None] == plain
    np.testing.assert_array_equal(frames.labels[:, None] == frames.labels, same)
    assert sent["clusters"] == [linked(x, 1e-2).max() + 1 for x in xs]
    in_order = frames.labels[np.array(sent["rows"])]
    assert (np.diff(in_order) >= 0).all(), "tokens of a cluster stand side by side"


def test_energy(frames, xs):
    plain = [np.exp(BETA * x @ x.T).sum() / (2 * BETA * 100) for x in xs]
    np.testing.assert_allclose(frames.report.energy, plain, rtol=1e-10)


def test_many_tokens_are_taken_evenly_for_attention():
    from attnflow.explore.frames import SHOWN, _chosen

    labels = np.repeat([2, 0, 1], [100, 50, 50])
    rows = _chosen(labels)
    assert len(rows) == len(set(rows)) == SHOWN
    assert np.bincount(labels[rows]).tolist() == [16, 16, 32]


def test_the_end_of_a_run_that_is_no_longer_wanted():
    def tell(part):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_flow(Form(n=10, d=3, number=BETA, until=4.0).build(), tell)
