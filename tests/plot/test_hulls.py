import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from attnflow import observe
from attnflow.plot import Stage
from attnflow.plot.hulls import draw_hull, draw_neighbours
from attnflow.theory import sharp


@pytest.mark.parametrize(
    ("name", "d", "edges"), [("cross-polytope", 3, 12), ("icosahedron", 3, 30), ("simplex", 4, 10)]
)
def test_neighbours_are_the_edges_of_the_polytope(name, d, edges):
    x = sharp(name, d=d)
    ax = Figure().subplots()
    stage = Stage(x[None], round_=True)
    draw_neighbours(ax, stage, x)
    assert len(ax.lines) == edges
    flat = stage.view(x)[0]
    ends = np.array([line.get_xydata() for line in ax.lines]).reshape(-1, 2)
    assert np.abs(ends[:, None] - flat[None]).max(axis=-1).min(axis=1).max() < 1e-12


@pytest.mark.parametrize(("points", "edges"), [([[0, 0], [2, 1], [1, 0.5]], 1), ([[1, 1]] * 2, 0)])
def test_tokens_on_a_line_have_one_edge_and_equal_ones_none(points, edges):
    x = np.array(points, float)
    ax = Figure().subplots()
    draw_hull(ax, Stage(x[None], False), observe.hull(x))
    lines = [c for c in ax.collections if isinstance(c, LineCollection)]
    drawn = [segment for c in lines for segment in c.get_segments()]
    assert len(drawn) == edges
    assert all(np.array_equal(np.sort(segment, axis=0), [[0, 0], [2, 1]]) for segment in drawn)
