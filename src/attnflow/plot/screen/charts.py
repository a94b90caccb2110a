"""Charts for the screen: lines, merge trees, matrices, histograms, phase diagrams, spectra."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
import xarray
from jaxtyping import Float, Inexact, Int, Real

from attnflow.plot.matrices import KEYS, MIN_ATTENTION, QUERIES
from attnflow.plot.phase import Curve, curve_times, limits, phase_values
from attnflow.plot.screen.theme import Theme, apply_theme
from attnflow.plot.style import FAINT, PALETTE
from attnflow.plot.times import branches

NAMES = {"beta": "β", "sigma": "σ"}


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
    return apply_theme(figure, theme)


def merge_tree(
    labels: Int[np.ndarray, "T n"], names: Sequence[str], *, theme: Theme = "light"
) -> go.Figure:
    """The clusters of n tokens at T states as a tree, like `plot.times.merge_tree`.

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
    return apply_theme(figure, theme)


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
    return apply_theme(figure, theme)


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
    return apply_theme(figure, theme)


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
    shares = (MIN_ATTENTION, 0.05, 0.2, 0.5, np.inf)
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
    return apply_theme(figure, theme)


def phase(
    data: xarray.Dataset,
    variable: str,
    *,
    across: str = "beta",
    curve: Curve | None = None,
    theme: Theme = "light",
) -> go.Figure:
    """A variable of a sweep over time and one axis.

    Args:
        data: the sweep, with its other axes selected: `data.sel(d=32)`.
        variable: the name of a number that was saved.
        across: the axis to draw along.
        curve: also draw the curve [P](6.12).
        theme: `"light"` or `"dark"`.
    """
    t, y, values = phase_values(data, variable, across)
    low, high = limits(values)
    name = data[variable].attrs.get("long_name", variable)
    axis = NAMES.get(across, across)
    image = go.Heatmap(
        x=t,
        y=y,
        z=values,
        zmin=low,
        zmax=high,
        colorscale="Blues",
        colorbar={"title": {"text": name.replace(", ", ",<br>"), "side": "right"}},
        hovertemplate=f"t = %{{x:.3g}}, {axis} = %{{y:.3g}}: %{{z:.3g}}<extra></extra>",
    )
    figure = go.Figure(image)
    if curve is not None:
        times = curve_times(y, curve)
        figure.add_scatter(x=times, y=y, mode="lines", line_color=PALETTE[1], name="(6.12)")
        figure.update_layout(showlegend=False)
    figure.update_xaxes(title="t", range=[t[0], t[-1]])
    figure.update_yaxes(title=axis)
    return apply_theme(figure, theme)


def spectrum(eigenvalues: Inexact[np.ndarray, " d"], *, theme: Theme = "light") -> go.Figure:
    """Eigenvalues in the complex plane, within the circle of the largest modulus.

    >>> spectrum(np.array([2.0, -1.0])).layout.shapes[0].x1
    2.0
    """
    values = np.asarray(eigenvalues)
    radius = float(np.abs(values).max())
    pointed = "%{x:.3f} + %{y:.3f}i<extra></extra>"
    dots = go.Scatter(x=values.real, y=values.imag, mode="markers", hovertemplate=pointed)
    figure = go.Figure(dots)
    rim = {"x0": -radius, "x1": radius, "y0": -radius, "y1": radius}
    figure.add_shape(type="circle", line={"color": FAINT, "width": 1}, **rim)
    figure.update_xaxes(title="Re λ")
    figure.update_yaxes(title="Im λ", scaleanchor="x")
    return apply_theme(figure, theme)
