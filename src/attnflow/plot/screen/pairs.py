"""Plots over pairs of tokens: attention matrices, overlaps, leaders."""

from __future__ import annotations

import itertools

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float, Int, Real

from attnflow.plot.leaders import KEYS, LEAST, QUERIES
from attnflow.plot.screen.theme import Theme, themed
from attnflow.plot.style import FAINT, PALETTE


def matrix(
    P: Real[np.ndarray, "n n"],
    *,
    tokens: Int[np.ndarray, " n"] | None = None,
    top: float | int = 1.0,
    theme: Theme = "light",
) -> go.Figure:
    """A matrix of weights: row i is what token i attends to.

    Args:
        P: the matrix, shape (n, n).
        tokens: the numbers of the tokens, in the order of rows and columns. By default 0, 1, ….
        top: the weight that is darkest.
        theme: `"light"` or `"dark"`.

    >>> figure = matrix(np.eye(2), tokens=np.array([7, 3]))
    >>> figure.data[0].z.tolist(), figure.data[0].x
    ([[1.0, 0.0], [0.0, 1.0]], ('7', '3'))
    """
    pointed = "token %{y} → token %{x}: %{z:.3f}<extra></extra>"
    names = [str(token) for token in (range(len(P)) if tokens is None else tokens)]
    image = go.Heatmap(
        z=P, x=names, y=names, zmin=0, zmax=top, colorscale="Blues", hovertemplate=pointed
    )
    figure = go.Figure(image)
    figure.update_xaxes(type="category", nticks=5)
    figure.update_yaxes(type="category", nticks=5)
    figure.update_xaxes(title="to token", constrain="domain")
    figure.update_yaxes(title="from token", autorange="reversed", scaleanchor="x")
    return themed(figure, theme)


def overlaps(
    density: Real[np.ndarray, " bins"], edges: Real[np.ndarray, " edges"], *, theme: Theme = "light"
) -> go.Figure:
    """The density of the inner products of all pairs, [P] Fig. 1.

    Args:
        density: the density on each bin, shape (bins,).
        edges: the edges of the bins, shape (bins + 1,).
        theme: `"light"` or `"dark"`.

    >>> overlaps(np.array([0.5, 0.5]), np.array([-1.0, 0.0, 1.0])).data[0].x.tolist()
    [-0.5, 0.5]
    """
    edges = np.asarray(edges)
    middles, widths = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    figure = go.Figure(go.Bar(x=middles, y=density, width=widths, marker_color=PALETTE[0]))
    figure.update_xaxes(
        title="overlap &lt;x<sub>i</sub>, x<sub>j</sub>&gt;", range=[edges[0], 1.02]
    )
    figure.update_yaxes(title="density")
    return themed(figure, theme)


def leaders(
    queries: Float[np.ndarray, "n 2"],
    keys: Float[np.ndarray, "n 2"],
    P: Float[np.ndarray, "n n"],
    *,
    theme: Theme = "light",
) -> go.Figure:
    """Queries (purple), keys (green), and lines from query i to key j, wider for larger P_ij.

    There are four widths, because each width is one trace.

    Args:
        queries: Q x_i, shape (n, 2).
        keys: K x_j, shape (n, 2).
        P: the attention matrix, shape (n, n).
        theme: `"light"` or `"dark"`.
    """
    figure = go.Figure()
    shares = (LEAST, 0.05, 0.2, 0.5, np.inf)
    for low, high in itertools.pairwise(shares):
        i, j = np.nonzero((low < P) & (high >= P))
        ends = np.stack([queries[i], keys[j], np.full((len(i), 2), np.nan)], axis=1).reshape(-1, 2)
        line = {"color": FAINT, "width": 0.4 + 2.5 * min(low, 1.0)}
        named = f"P > {low:g}"
        figure.add_scatter(x=ends[:, 0], y=ends[:, 1], mode="lines", line=line, name=named)
    for points, colour, name in ((queries, QUERIES, "Qx"), (keys, KEYS, "Kx")):
        figure.add_scatter(
            x=points[:, 0], y=points[:, 1], mode="markers", marker={"color": colour}, name=name
        )
    figure.update_yaxes(scaleanchor="x")
    return themed(figure, theme)
