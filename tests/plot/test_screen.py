"""Plots for the screen: what is in them is what was given, and plotly takes it."""

import json

import numpy as np
import pytest
import xarray

import attnflow as af
from attnflow.plot import Curve
from attnflow.theory import transition_time

pytest.importorskip("plotly")
from attnflow.plot import screen
from attnflow.plot.screen.theme import PAPER
from attnflow.plot.style import FAINT, PALETTE
from attnflow.plot.times import heights


def written(figure):
    """What a browser is sent."""
    return json.loads(figure.to_json())


@pytest.mark.parametrize(
    ("d", "on_sphere"), [(1, False), (2, True), (2, False), (3, True), (5, True)]
)
def test_tokens_are_where_they_are_at_each_time(d, on_sphere, rng):
    ts, xs = np.array([0.0, 0.5, 2.0]), rng.normal(size=(3, 7, d))
    if on_sphere:
        xs /= np.linalg.norm(xs, axis=-1, keepdims=True)
    figure = screen.tokens(ts, xs, on_sphere=on_sphere, words=list("abcdefg"))
    assert [step["label"] for step in written(figure)["layout"]["sliders"][0]["steps"]] == [
        "0",
        "0.5",
        "2",
    ]
    view = af.plot.TokenView(xs, on_sphere)
    moving = figure.frames[0].traces[0]
    assert figure.data[moving].name == "tokens"
    for frame, x in zip(figure.frames, xs, strict=True):
        seen = x if d == 3 else view.project(x)[0]
        for name, column in zip("xyz", seen.T, strict=False):
            assert np.array_equal(frame.data[0][name], column)
    if d != 3:
        (low, high), across = (
            figure.layout.xaxis.range,
            np.array([f.data[0].x for f in figure.frames]),
        )
        assert low <= across.min()
        assert across.max() <= high


def test_the_hull_is_behind_tokens_of_the_cube():
    corners = np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)], float)
    figure = screen.tokens(
        np.zeros(1), corners[None], on_sphere=False, hull=af.observe.hull(corners)
    )
    kinds = [trace.type for trace in figure.data]
    assert kinds.index("mesh3d") < figure.frames[0].traces[0]
    sides = figure.data[kinds.index("mesh3d") + 1]
    assert np.sum(np.isnan(np.asarray(sides.x, float))) == 12  # a cube has 12 edges


@pytest.mark.parametrize(("n", "sides"), [(1, 0), (2, 1), (3, 3)])
@pytest.mark.parametrize(("d", "kind"), [(2, "scatter"), (3, "scatter3d")])
def test_a_flat_hull_is_drawn_where_its_tokens_are(n, sides, d, kind):
    x = np.eye(3)[:n, :d] * [3.0, 2.0, 1.0][:d]
    hull = af.observe.hull(x)
    figure = screen.start_of_tokens(x[None], on_sphere=False, hull=hull)
    assert {trace.type for trace in figure.data} == {kind}
    drawn = [trace for trace in figure.data if trace.line.color == PALETTE[1]]
    assert sum(np.isnan(np.asarray(trace.x, float)).sum() for trace in drawn) == sides


def test_no_token_in_space_is_outside_of_the_window():
    x = np.array([[4.7, -1.85, 1.6], [4.91, -2.17, -1.44], [0.25, -1.77, -4.41]])
    scene = screen.start_of_tokens(x[None], on_sphere=False).layout.scene
    for axis, column in zip((scene.xaxis, scene.yaxis, scene.zaxis), x.T, strict=True):
        assert axis.range[0] < column.min()
        assert column.max() < axis.range[1]


def test_labels_give_colours(rng):
    xs = rng.normal(size=(1, 3, 2))
    figure = screen.tokens(np.zeros(1), xs, on_sphere=False, labels=np.array([0, 1, 0]))
    assert list(figure.data[-1].marker.color) == [PALETTE[0], PALETTE[1], PALETTE[0]]


def test_leaders_have_a_line_for_each_share_of_attention(rng):
    P = np.array([[0.9, 0.1, 0.0], [0.3, 0.3, 0.4], [0.0, 0.0, 1.0]])
    queries, keys = rng.normal(size=(2, 3, 2))
    figure = screen.leaders(queries, keys, P)
    lines = [t for t in figure.data if t.mode == "lines"]
    found = {t.name: np.sum(np.isnan(np.asarray(t.x, float))) for t in lines}
    assert found == {"P > 0.001": 0, "P > 0.05": 1, "P > 0.2": 3, "P > 0.5": 2}
    widths = [t.line.width for t in lines]
    assert widths == sorted(widths)
    assert np.array_equal(figure.data[-1].x, keys[:, 0])


def test_a_phase_diagram_has_the_sweep_and_its_curve(rng):
    t, beta = np.linspace(0, 3, 4), np.array([1.0, 2.0, 3.0])
    values = rng.uniform(size=(4, 3))
    data = xarray.Dataset({"p": (("time", "beta"), values)}, {"time": t, "beta": beta})
    figure = screen.phase(data, "p", curve=Curve(32, 1e-3))
    assert np.array_equal(figure.data[0].z, values.T)
    assert np.array_equal(figure.data[1].x, transition_time(beta, 32, 1e-3))
    assert (figure.data[0].zmin, figure.data[0].zmax) == (0.0, 1.0)


def test_a_merge_tree_has_the_lines_of_the_printed_one():
    labels = np.array([[0, 1, 2], [0, 1, 0]])
    figure = screen.merge_tree(labels, ["a", "b", "c"])
    begin, at = heights(labels)
    assert [trace.y[0] for trace in figure.data] == list(begin)
    assert [trace.y[-1] for trace in figure.data] == list(at[-1])
    assert [trace.line.color for trace in figure.data] == [PALETTE[0], FAINT, PALETTE[0]]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_plot_has_both_themes(theme, rng):
    x = rng.normal(size=(2, 5, 2))
    data = xarray.Dataset(
        {"p": (("time", "beta"), np.eye(2))}, {"time": [0.0, 1], "beta": [1.0, 2]}
    )
    for figure in (
        screen.tokens(np.arange(2.0), x, on_sphere=False, theme=theme),
        screen.matrix(np.eye(3), theme=theme),
        screen.overlaps(np.ones(4) / 2, np.linspace(-1, 1, 5), theme=theme),
        screen.leaders(x[0], x[1], np.eye(5), theme=theme),
        screen.lines(np.arange(2.0), {"energy": np.arange(2.0)}, theme=theme),
        screen.merge_tree(np.array([[0, 1], [0, 0]]), ["a", "b"], theme=theme),
        screen.phase(data, "p", theme=theme),
        screen.spectrum(np.array([1.0, 1j, -1j]), theme=theme),
    ):
        assert written(figure)["layout"]["template"]["layout"]["paper_bgcolor"] == PAPER[theme]
