"""What the page is sent, against plain NumPy."""

import base64
import json

import numpy as np
import pytest

from attnflow.errors import IncompleteRun
from attnflow.explore import flow
from attnflow.explore import frames as module
from attnflow.explore.form import Form
from attnflow.explore.frames import OVERLAP_BINS, frames_of, run_flow, to_page
from attnflow.explore.pictures import CAPTIONS, captions, tokens_figure

BETA = 3.0


@pytest.fixture(scope="module")
def frames():
    return run_flow(Form(n=10, d=3, number=BETA, until=4.0, key=2).build(), lambda part: None)


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
    np.testing.assert_allclose(np.moveaxis(np.array(sent["positions"]), 1, 2), xs, atol=5.001e-5)
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
        plain, _ = np.histogram(
            np.clip((x @ x.T)[i, j], -1, 1), OVERLAP_BINS, (-1, 1), density=True
        )
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
    from attnflow.explore.frames import MAX_ATTENTION_ROWS, _chosen

    labels = np.repeat([2, 0, 1], [100, 50, 50])
    rows = _chosen(labels)
    assert len(rows) == len(set(rows)) == MAX_ATTENTION_ROWS
    assert np.bincount(labels[rows]).tolist() == [16, 16, 32]


def test_the_end_of_a_run_that_is_no_longer_wanted():
    def on_progress(part):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_flow(Form(n=10, d=3, number=BETA, until=4.0).build(), on_progress)


def test_a_run_that_could_not_go_on_is_shown_as_far_as_it_came(monkeypatch):
    def simulate(system, x0, ts, **_):
        reached = real(system, x0, ts[:10])
        raise IncompleteRun(
            "Adaptive reached t = 0.45 of 4: the steps collapsed",
            time=0.45,
            trajectory=reached,
            remedy="use Fixed(dt)",
        )

    real = module.simulate
    monkeypatch.setattr(module, "simulate", simulate)
    frames = run_flow(Form(n=10, d=3, until=4.0).build(), lambda part: None)
    assert len(frames.seen) == 10
    assert flow._summary(frames).endswith(
        "Adaptive reached t = 0.45 of 4: the steps collapsed. Choose the method fixed or "
        "coarsening, or an earlier t."
    )


def test_looking_at_a_run_ends_when_it_is_no_longer_wanted(frames, monkeypatch):
    """Between any two steps, each of which may compile for a while."""
    done = []
    for name in ("summarise", "_attention", "_overlaps", "_limit"):
        step = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *given, name=name, step=step: (done.append(name), step(*given))[1]
        )

    def on_progress(part):
        if len(done) == wanted:
            raise KeyboardInterrupt

    for wanted in (1, 2, 3):
        done.clear()
        with pytest.raises(KeyboardInterrupt):
            frames_of(frames.trajectory, on_progress)
        assert len(done) == wanted


def captioned(**fields):
    run = run_flow(Form.read({"until": 1.0, **fields}).build(), lambda part: None)
    return dict(zip(CAPTIONS, captions(run), strict=True)), run


def test_captions_say_what_is_shown():
    said, run = captioned(n=70, d=2, values="goe", heads=2)
    assert said["attention"] == (
        "Attention, 64 of 70 tokens in the order of their clusters, mean of all heads"
    )
    assert said["energy"] == "Energy along time"
    assert "70 tokens, 3 steps with Adaptive;" in flow._summary(run)
    said, run = captioned(system="CircleCoupling", start="angles", n=5, number=1.0, noise=0.1)
    assert said["energy"] == "Order parameter r along time"
    assert "steps with Fixed, dt = 0.00156;" in flow._summary(run)
    assert "Attention" not in flow._summary(run)


def test_it_is_said_that_attention_of_many_tokens_is_not_shown(monkeypatch, frames):
    assert "Attention" not in flow._summary(frames)
    monkeypatch.setattr(flow, "MAX_TOKENS_ATTENTION", 9)
    assert flow._summary(frames).endswith("Attention is shown for 9 tokens at most.")


@pytest.mark.parametrize(("d", "room"), [(2, 42), (3, 8)])
def test_axes_have_room_for_their_numbers(d, room):
    form = Form.preset("PureAttention").model_copy(update={"n": 5, "d": d, "until": 1.0})
    figure = tokens_figure(run_flow(form.build(), lambda part: None), "light")
    assert figure.layout.margin.b == room
