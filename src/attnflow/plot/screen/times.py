"""What happens over time or layers: numbers, cluster counts, and which tokens join."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Int, Real

from attnflow.plot.merging import branches
from attnflow.plot.screen.theme import Theme, themed


def lines(
    ts: Real[np.ndarray, " T"],
    numbers: Mapping[str, Real[np.ndarray, " T"]],
    *,
    across: str = "time",
    theme: Theme = "light",
) -> go.Figure:
    """Numbers over time. Whole numbers such as counts are drawn as a staircase.

    Args:
        ts: times, shape (T,).
        numbers: the numbers at these times, shape (T,), by name.
        across: the label of the horizontal axis.
        theme: `"light"` or `"dark"`.

    >>> figure = lines(np.array([0.0, 1.0]), {"clusters": np.array([3, 1])})
    >>> figure.data[0].line.shape
    'hv'
    """
    figure = go.Figure()
    for name, values in numbers.items():
        whole = np.issubdtype(np.asarray(values).dtype, np.integer)
        figure.add_scatter(
            x=ts, y=values, mode="lines", name=name, line_shape="hv" if whole else "linear"
        )
    figure.update_xaxes(title=across)
    if len(numbers) == 1:
        figure.update_yaxes(title=next(iter(numbers)))
    return themed(figure, theme)


def merge_tree(
    labels: Int[np.ndarray, "T n"], names: Sequence[str], *, theme: Theme = "light"
) -> go.Figure:
    """The clusters of n tokens at T states as a tree, like `plot.merging.merge_tree`.

    Args:
        labels: the cluster of token i at state k is `labels[k, i]`, shape (T, n).
        names: the names of the tokens.
        theme: `"light"` or `"dark"`.
    """
    figure = go.Figure()
    for branch, name in zip(branches(labels), names, strict=True):
        figure.add_scatter(
            x=branch.across,
            y=branch.up,
            mode="lines",
            line={"color": branch.colour, "width": 1.4},
            name=name,
            hoverinfo="name",
        )
    begin = [branch.up[0] for branch in branches(labels)]
    figure.update_yaxes(tickvals=begin, ticktext=list(names), autorange="reversed")
    figure.update_yaxes(showgrid=False, automargin=True)
    figure.update_xaxes(title="layers passed", dtick=max(1, len(labels) // 12), showgrid=False)
    figure.update_layout(showlegend=False)
    return themed(figure, theme)
