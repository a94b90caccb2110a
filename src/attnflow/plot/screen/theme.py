"""How plots look on the screen: the colours of the printed ones, on a light or dark page."""

from __future__ import annotations

from functools import cache
from typing import Literal

import plotly.graph_objects as go

from attnflow.plot.style import FAINT, INK, PALETTE

Theme = Literal["light", "dark"]

PAPER = {"light": "#ffffff", "dark": "#16181d"}
TEXT = {"light": INK, "dark": "#e6e6e6"}
GRID = {"light": "#e4e7ea", "dark": "#33373e"}

FONT = "STIX Two Text, STIXGeneral, Georgia, serif"


def apply_theme(figure: go.Figure, theme: Theme = "light") -> go.Figure:
    """Give a figure the project's fonts and colours, in place, and return it.

    >>> apply_theme(go.Figure(), "dark").layout.template.layout.paper_bgcolor
    '#16181d'
    """
    figure.layout.template = template(theme)
    return figure


@cache
def template(theme: Theme) -> go.layout.Template:
    """What all figures of a theme share. Settings of a figure override it."""
    axis = {
        "gridcolor": GRID[theme],
        "linecolor": FAINT,
        "zerolinecolor": GRID[theme],
        "tickcolor": FAINT,
    }
    return go.layout.Template(
        layout={
            "paper_bgcolor": PAPER[theme],
            "plot_bgcolor": PAPER[theme],
            "font": {"family": FONT, "color": TEXT[theme], "size": 14},
            "colorway": list(PALETTE),
            "margin": {"l": 55, "r": 15, "t": 35, "b": 45},
            "hoverlabel": {"font": {"family": FONT}},
            "legend": {"bgcolor": "rgba(0,0,0,0)"},
            "xaxis": axis,
            "yaxis": axis,
        }
    )
