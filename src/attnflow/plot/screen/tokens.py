"""Moving tokens: on the circle, on the sphere, in R² and R³, or through PCA."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float, Int

from attnflow.observe.hull import Hull
from attnflow.plot.polytopes import edges
from attnflow.plot.screen.theme import Theme, apply_theme
from attnflow.plot.space import plane_in_box
from attnflow.plot.style import FAINT, PALETTE, colours
from attnflow.plot.tokens import TokenView, graticule
from attnflow.retired import renamed_arguments

MARKER_EDGE = {"width": 0.5, "color": "white"}
HIDDEN_AXIS = {"visible": False}


@renamed_arguments(round_="on_sphere")
def tokens(
    ts: Float[np.ndarray, " T"], xs: Float[np.ndarray, "T n d"], *, on_sphere: bool, **shown: Any
) -> go.Figure:
    """Tokens over time with their paths, a slider, and buttons to play and pause.

    Args:
        ts: times, shape (T,).
        xs: tokens, shape (T, n, d).
        on_sphere: whether tokens live on a unit sphere.
        shown: more arguments of `start_of_tokens`.

    >>> ts, xs = np.array([0.0, 1.0]), np.array([[[1.0, 0.0]], [[0.0, 1.0]]])
    >>> figure = tokens(ts, xs, on_sphere=True)
    >>> [frame.name for frame in figure.frames], figure.frames[1].data[0].y
    (['0', '1'], array([1.]))
    """
    figure = start_of_tokens(xs, on_sphere=on_sphere, **shown)
    Points = type(figure.data[-1])
    figure.frames = [
        go.Frame(data=[Points(**_places(x))], traces=[len(figure.data) - 1], name=f"{t:.4g}")
        for t, x in zip(ts, projected_states(TokenView(xs, on_sphere)), strict=True)
    ]
    return figure.update_layout(sliders=[_slider(figure)], updatemenus=[_buttons()])


@renamed_arguments(round_="on_sphere")
def start_of_tokens(
    xs: Float[np.ndarray, "T n d"],
    *,
    on_sphere: bool,
    labels: Int[np.ndarray, " n"] | None = None,
    words: Sequence[str] | None = None,
    hull: Hull | None = None,
    theme: Theme = "light",
) -> go.Figure:
    """Tokens at the first state, with their paths. The tokens are the last trace.

    Up to d = 3 tokens are shown as they are. Above that, the picture shows the two leading
    principal components of all states.

    Args:
        xs: tokens, shape (T, n, d).
        on_sphere: whether tokens live on a unit sphere.
        labels: the label of each token, which sets its colour, shape (n,).
        words: a text for each token, shown when the pointer is on it.
        hull: a hull to draw behind tokens in R² and R³.
        theme: `"light"` or `"dark"`.
    """
    view = TokenView(xs, on_sphere)
    seen, solid = projected_states(view), view.d == 3
    Points: Any = go.Scatter3d if solid else go.Scatter
    shade = colours(np.zeros(view.xs.shape[1], int) if labels is None else labels)
    dots = Points(
        **_places(seen[0]),
        mode="markers",
        marker={"size": 4.5 if solid else 9, "color": shade, "line": MARKER_EDGE},
        text=None if words is None else list(words),
        hoverinfo="text" if words is not None else "skip",
        name="tokens",
    )
    behind = [*_outline(view), *([] if hull is None else _hull(hull)), _paths(Points, seen)]
    figure = go.Figure([*behind, dots])
    _window(figure, view)
    figure.update_layout(showlegend=False)
    return apply_theme(figure, theme)


def projected_states(view: TokenView) -> Float[np.ndarray, "T n k"]:
    """The tokens of a view at all states: in R³ if d = 3, else in the plane."""
    return view.xs if view.d == 3 else np.array([view.project(x)[0] for x in view.xs])


def _places(x: np.ndarray) -> dict[str, np.ndarray]:
    """Columns as coordinates."""
    return dict(zip("xyz", x.T, strict=False))


def _broken(lines: np.ndarray) -> np.ndarray:
    """Many lines (m, k, d) as one, with gaps between them."""
    gaps = np.full((len(lines), 1, lines.shape[-1]), np.nan)
    return np.concatenate([lines, gaps], axis=1).reshape(-1, lines.shape[-1])


def _paths(Points: Any, seen: np.ndarray) -> Any:
    line = {"color": PALETTE[0], "width": 1}
    path = _broken(np.swapaxes(seen, 0, 1)).astype(np.float32)  # halves what is sent to the page
    return Points(**_places(path), mode="lines", line=line, opacity=0.25, hoverinfo="skip")


def _outline(view: TokenView) -> list[Any]:
    """The circle or the sphere that tokens live on."""
    line = {"color": FAINT, "width": 1}
    if view.ring:
        s = np.linspace(0, 2 * np.pi, 181)
        return [go.Scatter(x=np.cos(s), y=np.sin(s), mode="lines", line=line, hoverinfo="skip")]
    if view.globe:
        net = _places(_broken(np.array(graticule())))
        return [go.Scatter3d(**net, mode="lines", line=line, opacity=0.35, hoverinfo="skip")]
    return []


def _hull(hull: Hull) -> list[Any]:
    """The sides of a hull, and its faces unless it is flat."""
    points, line = hull.points, {"color": PALETTE[1], "width": 2}
    if hull.dimension == 0:
        return []
    Lines: Any = go.Scatter3d if points.shape[1] == 3 else go.Scatter
    ends = np.array([points[list(edge)] for edge in edges(hull)])
    sides = Lines(**_places(_broken(ends)), mode="lines", line=line, hoverinfo="skip")
    if hull.dimension < 3:
        return [sides]
    i, j, k = np.array(hull.facets).T
    faces = go.Mesh3d(
        **_places(points), i=i, j=j, k=k, color=PALETTE[1], opacity=0.12, hoverinfo="skip"
    )
    return [faces, sides]


def add_level(
    figure: go.Figure,
    xs: Float[np.ndarray, "n d"],
    functional: Float[np.ndarray, " d"],
    level: float,
) -> None:
    """Add the part of `functional · x = level` that lies in the bounding box of the tokens.

    Args:
        figure: the figure.
        xs: tokens in R² or R³, shape (n, d).
        functional: the functional, shape (d,).
        level: its value on the line or plane.

    >>> figure = go.Figure()
    >>> add_level(figure, np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([0.0, 1.0]), 0.5)
    >>> figure.data[0].y.tolist()
    [0.5, 0.5]
    """
    low, high = xs.min(axis=0), xs.max(axis=0)
    if xs.shape[1] == 3:
        corners = plane_in_box(functional, level, np.stack([low, high]))
        if len(corners) > 2:
            shade = {"color": FAINT, "opacity": 0.25, "hoverinfo": "skip"}
            figure.add_trace(
                go.Mesh3d(**_places(corners), delaunayaxis=_flattest(functional), **shade)
            )
        return
    foot = functional * level / (functional @ functional)
    along = np.array([-functional[1], functional[0]]) / np.linalg.norm(functional)
    reach = np.linalg.norm(high - low) / 2
    ends = np.stack([foot - reach * along, foot + reach * along])
    line = {"color": FAINT, "dash": "dash"}
    figure.add_trace(go.Scatter(**_places(ends), mode="lines", line=line, hoverinfo="skip"))


def _flattest(normal: Float[np.ndarray, " 3"]) -> str:
    """The coordinate axis closest to the normal of a plane."""
    return "xyz"[int(np.argmax(np.abs(normal)))]


def _window(figure: go.Figure, view: TokenView) -> None:
    """Set equal scales, and the same window at all times."""
    if view.d == 3:
        # The reach of a view is that of the plane; in R³ tokens may be further out on an axis.
        middle = view.centre
        reach = max(view.reach, 1.08 * float(np.abs(view.xs - middle).max()))
        sides = {
            name: HIDDEN_AXIS | {"range": [middle[k] - reach, middle[k] + reach]}
            for k, name in enumerate(("xaxis", "yaxis", "zaxis"))
        }
        eye = view.frame[2] * 1.35
        camera = {"eye": dict(zip("xyz", eye.tolist(), strict=True))}
        figure.update_scenes(**sides, aspectmode="cube", camera=camera)
        return
    plain = view.ring or view.d > 3
    across = {"range": [-view.reach, view.reach], "visible": not plain}
    figure.update_xaxes(**across, constrain="domain")
    figure.update_yaxes(**across, scaleanchor="x", constrain="domain")


def _slider(figure: go.Figure) -> dict[str, Any]:
    now = {"mode": "immediate", "frame": {"duration": 0, "redraw": True}}
    steps = [
        {"label": frame.name, "method": "animate", "args": [[frame.name], now]}
        for frame in figure.frames
    ]
    return {"steps": steps, "currentvalue": {"prefix": "t = "}, "pad": {"t": 10}}


def _buttons() -> dict[str, Any]:
    play = {"fromcurrent": True, "frame": {"duration": 40, "redraw": True}}
    pause = {"mode": "immediate", "frame": {"duration": 0, "redraw": False}}
    return {
        "type": "buttons",
        "direction": "left",
        "showactive": False,
        "x": 0,
        "y": 0,
        "xanchor": "right",
        "yanchor": "top",
        "pad": {"t": 30, "r": 10},
        "buttons": [
            {"label": "▶", "method": "animate", "args": [None, play]},
            {"label": "❚❚", "method": "animate", "args": [[None], pause]},
        ],
    }
