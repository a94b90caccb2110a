"""The pictures of the flow view, at the first moment; the browser moves them."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnflow.explore.frames import OVERLAP_BINS, Frames, attention_system
from attnflow.plot import screen
from attnflow.plot.style import PALETTE

MARGIN = {"l": 55, "r": 10, "t": 8, "b": 42}
"""Around pictures with axes, whose captions are above them."""

MARGIN_WITHOUT_AXES = {"l": 8, "r": 8, "t": 8, "b": 8}
"""Around pictures without axes."""

CAPTIONS = {
    "attention": "Attention, tokens in the order of their clusters",
    "overlaps": "Overlaps of all pairs",
    "energy": "Energy along time",
    "clusters": "Clusters along time",
}
"""The pictures beside the tokens, and what they say before a run."""


def tokens_figure(frames: Frames, theme: screen.Theme) -> Any:
    """Tokens where they begin, with their paths, and the hull of where they end if it is proven."""
    view = frames.view
    figure = screen.start_of_tokens(
        view.xs,
        on_sphere=view.globe or view.ring,
        labels=frames.labels,
        hull=frames.hull,
        theme=theme,
    )
    last = len(figure.data) - 1
    if frames.levels is not None:
        for level in frames.levels.values:
            screen.add_level(figure, view.xs[-1], frames.levels.functional, float(level))
    figure.data = [*figure.data[:last], *figure.data[last + 1 :], figure.data[last]]
    plain = view.ring or view.d > 2
    return figure.update_layout(uirevision="kept", margin=MARGIN_WITHOUT_AXES if plain else MARGIN)


def end_figure(frames: Frames, theme: screen.Theme) -> Any:
    """Tokens where they end, with their paths."""
    figure = tokens_figure(frames, theme)
    last = dict(zip("xyz", frames.seen[-1].T, strict=False))
    figure.data[-1].update(**last)
    return figure


def captions(frames: Frames) -> list[str]:
    """What the pictures beside the tokens show of a run."""
    said = dict(CAPTIONS)
    n, shown = frames.report.n, len(frames.rows)
    if shown < n:
        said["attention"] = f"Attention, {shown} of {n} tokens in the order of their clusters"
    system = attention_system(frames.trajectory)
    if system is not None and system.heads.count is not None:
        said["attention"] += ", mean of all heads"
    if not frames.report.energy:
        said["energy"] = "Order parameter r along time"
    return list(said.values())


def side_figures(frames: Frames, theme: screen.Theme) -> list[Any]:
    """Attention, overlaps, energy and clusters; None for what a run does not have."""
    report, ts = frames.report, np.asarray(frames.report.times)
    edges = np.linspace(-1, 1, OVERLAP_BINS + 1)
    attention = overlaps = energy = None
    if frames.attention is not None:
        attention = screen.matrix(
            frames.attention[0] * frames.attention_top / 255,
            tokens=frames.rows,
            top=frames.attention_top,
            theme=theme,
        )
    if frames.overlaps is not None:
        overlaps = screen.overlaps(frames.overlaps[0], edges, theme=theme)
        overlaps.update_yaxes(range=[0, float(np.quantile(frames.overlaps.max(axis=1), 0.9))])
    along = report.energy or report.order
    if along is not None:
        name = "energy" if report.energy else "order r"
        energy = _along(ts, {name: np.asarray(along)}, theme)
    counts = _along(ts, {"clusters": np.asarray(report.clusters)}, theme)
    found = [attention, overlaps, energy, counts]
    return [figure and figure.update_layout(margin=MARGIN) for figure in found]


def _along(ts: np.ndarray, numbers: dict[str, np.ndarray], theme: screen.Theme) -> Any:
    """Numbers along time, with a line at the moment that is shown."""
    figure = screen.lines(ts, numbers, theme=theme)
    figure.add_vline(x=float(ts[0]), line={"color": PALETTE[1], "width": 1.5})
    return figure
