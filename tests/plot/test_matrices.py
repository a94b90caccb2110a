"""Matrices as images: shades, and large matrices in blocks."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from attnflow.plot.matrices import draw_matrix, largest_in_blocks


def test_small_weights_are_darker_for_a_power_below_one():
    image = draw_matrix(Figure().subplots(), np.array([[0.0, 0.25]]), power=0.5)
    assert np.allclose(image.norm([0.0, 0.25, 1.0]), [0.0, 0.5, 1.0])


@pytest.mark.parametrize(("n", "side"), [(5, 1), (6, 2), (11, 3), (12, 3)])
def test_blocks_keep_their_largest_entry(n, side, rng):
    P = rng.normal(size=(n, n))
    blocks = range(0, n, side)
    expected = [[P[i : i + side, j : j + side].max() for j in blocks] for i in blocks]
    assert np.array_equal(largest_in_blocks(P, most=5), expected)
