import numpy as np
import pytest
from matplotlib.figure import Figure

from attnflow.plot import Stage
from attnflow.plot.hulls import draw_neighbours
from attnflow.theory import sharp


@pytest.mark.parametrize(
    ("name", "d", "edges"), [("cross-polytope", 3, 12), ("icosahedron", 3, 30), ("simplex", 4, 10)]
)
def test_neighbours_are_the_edges_of_the_polytope(name, d, edges):
    x = sharp(name, d=d)
    ax = Figure().subplots()
    stage = Stage(x[None], round_=True)
    draw_neighbours(ax, stage, x)
    lines = ax.collections[0].get_segments()
    assert len(lines) == edges
    flat = stage.view(x)[0]
    ends = np.array(lines).reshape(-1, 2)
    assert np.abs(ends[:, None] - flat[None]).max(axis=-1).min(axis=1).max() < 1e-12
