"""Phase diagrams and eigenvalues in the complex plane."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import xarray
from jaxtyping import Inexact

from attnflow.plot.phase import Curve, curve_times, limits, phase_values
from attnflow.plot.screen.theme import Theme, themed
from attnflow.plot.style import FAINT, PALETTE

NAMES = {"beta": "β", "sigma": "σ"}


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
    return themed(figure, theme)


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
    return themed(figure, theme)
