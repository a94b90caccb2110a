"""The pieces that figures are made of draw what they are given."""

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from attnflow.plot.matrices import MAX_LINE_WIDTH, draw_leaders, draw_spectrum
from attnflow.plot.space import (
    box_of,
    draw_direction,
    draw_level,
    draw_line,
    draw_plane,
    draw_prism,
    eye_along,
    eye_before,
    plane_in_box,
    set_space,
)
from attnflow.plot.style import PALETTE
from attnflow.plot.times import draw_band, draw_coordinate


@pytest.fixture
def ax():
    return Figure().subplots()


def seen_from(eye):
    """The direction of an eye given by elevation and azimuth."""
    e, a = np.deg2rad(eye)
    return np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])


def test_lines_of_leaders_are_as_wide_as_attention(ax, rng):
    queries, keys = rng.normal(size=(2, 3, 2))
    P = np.array([[1.0, 0.0, 0.0], [0.25, 0.75, 0.0], [0.0, 0.0, 1.0]])
    draw_leaders(ax, queries, keys, P)
    lines = ax.collections[0]
    assert np.allclose(lines.get_linewidths(), MAX_LINE_WIDTH * np.array([1.0, 0.25, 0.75, 1.0]))
    assert np.allclose(lines.get_segments()[2], [queries[1], keys[1]])


def test_the_leading_eigenvalue_is_ringed_on_the_circle_of_its_modulus(ax):
    draw_spectrum(ax, np.array([1.0, -2.0, 0.5j, -0.5j]), good=False)
    assert ax.patches[0].radius == 2.0
    ring = ax.collections[-1]
    assert np.allclose(ring.get_offsets(), [[-2.0, 0.0]])
    assert np.allclose(ring.get_edgecolors()[0], to_rgba(PALETTE[1]))


def test_a_band_is_one_standard_deviation_around_the_mean(ax, rng):
    ts, values = np.arange(4.0), rng.normal(size=(4, 7))
    draw_band(ax, ts, values)
    assert np.allclose(ax.lines[0].get_ydata(), values.mean(axis=1))
    edge = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert np.isclose(edge.max(), (values.mean(axis=1) + values.std(axis=1)).max())


def test_every_token_has_its_curve(ax, rng):
    values = rng.normal(size=(4, 7))
    draw_coordinate(ax, np.arange(4.0), values, np.zeros(7, int))
    assert np.array_equal([line.get_ydata() for line in ax.lines], values.T)


def test_a_level_set_is_where_the_functional_has_its_level(ax):
    w = np.array([2.0, -1.0])
    draw_level(ax, w, 3.0)
    line = ax.lines[0]
    assert np.allclose([np.array(line.get_xy1()) @ w, np.array(line.get_xy2()) @ w], 3.0)
    draw_direction(ax, np.array([0.0, 5.0]), 2.0)
    assert np.allclose(ax.texts[0].xy, [0.0, 2.0])


@pytest.mark.parametrize("level", [-2.0, 0.1, 1.7])
def test_a_plane_is_cut_out_by_the_box(level, rng):
    box = np.array([[-1.0, -2.0, -3.0], [1.0, 2.0, 3.0]])
    w = np.array([0.7, -0.4, 0.5])
    corners = plane_in_box(w, level, box)
    assert np.allclose(corners @ w, level)
    assert np.all((corners >= box[0] - 1e-12) & (corners <= box[1] + 1e-12))
    # The farthest point of the cut in any direction, by brute force, is a corner of it.
    points = rng.uniform(box[0], box[1], size=(20_000, 3))
    points[:, 2] = (level - points[:, :2] @ w[:2]) / w[2]
    points = points[np.abs(points[:, 2]) <= 3]
    towards = rng.normal(size=(50, 3))
    reach, most = (points @ towards.T).max(axis=0), (corners @ towards.T).max(axis=0)
    assert np.all(reach <= most + 1e-9)
    assert np.all(reach >= most - 0.3)
    turns = np.cross(np.diff(corners, axis=0)[:-1], np.diff(corners, axis=0)[1:]) @ w
    assert np.all(turns > 0) or np.all(turns < 0)


def test_a_plane_that_misses_the_box_has_no_corners():
    assert len(plane_in_box(np.array([1.0, 0.0, 0.0]), 5.0, np.array([[-1.0] * 3, [1.0] * 3]))) == 0


def test_planes_lines_and_prisms_stay_within_the_box():
    box = box_of(np.array([[-1.0, -1.0, -10.0], [1.0, 1.0, 10.0]]))
    ax = Figure().add_subplot(projection="3d")
    set_space(ax, box)
    draw_plane(ax, np.array([1.0, 0.0, 0.0]), 0.5, box)
    draw_line(ax, np.zeros(3), np.array([0.0, 1.0, 1.0]), box)
    draw_prism(ax, np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.2, 0.2]]), box)
    ends = np.array(ax.collections[2]._segments3d[0])
    assert np.allclose(ends, [[0.0, -1.1, -1.1], [0.0, 1.1, 1.1]])
    sides = ax.collections[-1]._segments3d
    assert len(sides) == 3
    assert np.allclose(np.unique([side[:, 2] for side in sides]), [-11.0, 11.0])


def test_eyes_see_planes_nearly_edge_on_and_directions_in_the_picture():
    box = np.array([[0.0, 0.0, 0.0], [1.0, 2.0, 4.0]])
    normal = np.array([1.0, 0.3, 0.0])
    across = normal * (box[1] - box[0])
    assert abs(seen_from(eye_along(normal, box)) @ across) < 0.35 * np.linalg.norm(across)
    first, second = np.array([1.0, 1.0, 0.0]), np.array([0.0, 1.0, 3.0])
    eye = seen_from(eye_before(first, second, box))
    assert np.allclose([eye @ (v / (box[1] - box[0])) for v in (first, second)], 0)
