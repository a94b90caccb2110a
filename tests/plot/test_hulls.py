import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from attnflow import observe
from attnflow.plot import TokenView
from attnflow.plot.polytopes import draw_hull, draw_neighbours
from attnflow.theory import sharp


@pytest.mark.parametrize(
    ("name", "d", "edges"), [("cross-polytope", 3, 12), ("icosahedron", 3, 30), ("simplex", 4, 10)]
)
def test_neighbours_are_the_edges_of_the_polytope(name, d, edges):
    x = sharp(name, d=d)
    ax = Figure().subplots()
    view = TokenView(x[None], on_sphere=True)
    draw_neighbours(ax, view, x)
    lines = ax.collections[0].get_segments()
    assert len(lines) == edges
    flat = view.project(x)[0]
    ends = np.array(lines).reshape(-1, 2)
    assert np.abs(ends[:, None] - flat[None]).max(axis=-1).min(axis=1).max() < 1e-12


def test_a_cube_shows_three_faces_and_hides_three_edges():
    x = np.stack(np.meshgrid([0.0, 1.0], [0.0, 1.0], [0.0, 1.0]), axis=-1).reshape(-1, 3)
    ax = Figure().subplots()
    view = TokenView(x[None], on_sphere=False)
    draw_hull(ax, view, observe.hull(x))
    facets, front, behind = ax.collections
    assert len(facets.get_paths()) == 6
    assert [len(lines.get_segments()) for lines in (front, behind)] == [9, 3]
    # The edges behind meet in the corner that is farthest from the eye.
    flat, near = view.project(x)
    farthest = flat[np.argmin(near)]
    for segment in behind.get_segments():
        assert np.abs(segment - farthest).sum(axis=1).min() < 1e-12


@pytest.mark.parametrize(("points", "edges"), [(1, 0), (2, 1), (3, 3)])
def test_flat_hulls_have_their_edges(points, edges):
    x = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])[:points]
    ax = Figure().subplots()
    draw_hull(ax, TokenView(x[None], on_sphere=False), observe.hull(x))
    assert sum(len(lines.get_segments()) for lines in ax.collections) == edges


@pytest.mark.parametrize(("points", "edges"), [([[0, 0], [2, 1], [1, 0.5]], 1), ([[1, 1]] * 2, 0)])
def test_tokens_on_a_line_have_one_edge_and_equal_ones_none(points, edges):
    x = np.array(points, float)
    ax = Figure().subplots()
    draw_hull(ax, TokenView(x[None], False), observe.hull(x))
    lines = [c for c in ax.collections if isinstance(c, LineCollection)]
    drawn = [segment for c in lines for segment in c.get_segments()]
    assert len(drawn) == edges
    assert all(np.array_equal(np.sort(segment, axis=0), [[0, 0], [2, 1]]) for segment in drawn)
