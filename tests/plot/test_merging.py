"""Merge trees: who is at one height, and whose lines cross."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from attnflow.plot.times import heights, merge_tree


@st.composite
def joining(draw):
    """Clusters that only join: each state merges some of those before it."""
    n = draw(st.integers(2, 9))
    rows = [np.arange(n)]
    for _ in range(draw(st.integers(1, 4))):
        into = draw(st.lists(st.integers(0, n - 1), min_size=n, max_size=n))
        rows.append(np.asarray(into)[rows[-1]])
    return np.array(rows)


@given(joining())
def test_tokens_at_one_height_are_those_of_one_cluster(labels):
    _, at = heights(labels)
    same_cluster = labels[:, :, None] == labels[:, None, :]
    assert np.array_equal(np.isclose(at[:, :, None], at[:, None, :]), same_cluster)


@given(joining())
def test_lines_that_only_join_do_not_cross(labels):
    begin, at = heights(labels)
    above = begin[:, None] < begin[None, :]
    assert np.all(at[:, :, None] <= at[:, None, :] + 1e-12, where=above)


def test_each_token_has_its_name_and_a_line_that_ends_with_its_cluster():
    labels = np.array([[0, 1, 2, 3], [0, 1, 0, 3], [0, 1, 0, 1]])
    ax = Figure().subplots()
    merge_tree(ax, labels, ["a", "b", "c", "d"])
    begin, _ = heights(labels)
    assert {text.get_text(): text.get_position()[1] for text in ax.texts} == dict(
        zip("abcd", begin, strict=True)
    )
    ends = [line.get_ydata()[-1] for line in ax.lines]
    colours = [line.get_color() for line in ax.lines]
    assert ends[0] == ends[2] == pytest.approx((begin[0] + begin[2]) / 2)
    assert ends[1] == ends[3] != ends[0]
    assert colours[0] == colours[2] != colours[1] == colours[3]
