"""Pictures of one run: an overview and an animation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator
from PIL import Image

from attnflow import observe
from attnflow.files import atomic_write
from attnflow.plot.polytopes import draw_hull
from attnflow.plot.style import FAINT, INK, PALETTE, save, style
from attnflow.plot.tokens import TokenView
from attnflow.report import Report
from attnflow.simulation import Trajectory

UNCLUSTERED_SHARE = 0.9
"""With at least this many clusters per token at all times, their number says nothing."""


FILM_FRAMES, FRAMES_PER_SECOND = 100, 15


def overview(
    trajectory: Trajectory,
    report: Report,
    *,
    title: str | None = None,
    path: str | Path | None = None,
) -> Figure:
    """Draw a run: tokens at four times, then cluster count and energy or order over time.

    A token has the colour of its cluster at the last time but one, which shows where each cluster
    came from.

    Args:
        trajectory: a single run with its states.
        report: its report, from `report.summarise`.
        title: placed before the name of the system.
        path: also write the picture to this file, as PNG, PDF or SVG.
    """
    trajectory = trajectory.with_digits
    xs = np.asarray(trajectory.positions)
    view = view_of(trajectory)
    moments = chosen_moments(report)
    labels = cluster_labels(xs, moments, report.tolerance)
    with style():
        figure = Figure(figsize=(3.0 * len(moments), 5.2), layout="constrained")
        grid = figure.add_gridspec(2, 2 * len(moments), height_ratios=(1.5, 1))
        for column, i in enumerate(moments):
            ax = figure.add_subplot(grid[0, 2 * column : 2 * column + 2])
            view.prepare(ax)
            _draw_polytope(ax, trajectory, view)
            view.draw(ax, i, labels)
            ax.set_title(f"$t = {_number(report.times[i])}${_state(report, i)}")
        width = 2 * len(moments)
        halves = (slice(0, width // 2), slice(width // 2, width))
        beside = _beside_counts(report)
        left = halves[0] if beside else slice(0, width)
        counts_over_time(figure.add_subplot(grid[1, left]), report)
        if beside:
            beside(figure.add_subplot(grid[1, halves[1]]), report)
        heading = report.title if title is None else f"{title}: {report.title}"
        figure.suptitle(f"{heading}, $n = {report.n}$, $d = {report.d}$", fontsize=12)
        if path is not None:
            save(figure, path)
    return figure


def _state(report: Report, i: int) -> str:
    """A line about a time: r of oscillators, else the clusters, unless tokens stay a cloud."""
    if report.order:
        return f"\n$r = {report.order[i]:.2f}$"
    if min(report.clusters) >= UNCLUSTERED_SHARE * report.n:
        return ""
    count = report.clusters[i]
    return f"\n{count} {'cluster' if count == 1 else 'clusters'}"


def _draw_polytope(ax: Axes, trajectory: Trajectory, view: TokenView) -> None:
    """In R³, draw the hull of the final tokens of rescaled attention."""
    last = np.asarray(trajectory.xs[-1])
    system = trajectory.known_system
    rescaled = system is not None and system.pure_attention == "rescaled"
    if rescaled and last.shape[-1] == 3 and np.isfinite(last).all():
        draw_hull(ax, view, observe.hull(last, 1e-3))


def view_of(trajectory: Trajectory) -> TokenView:
    """The view for a trajectory: round if its tokens live on the unit sphere."""
    system = trajectory.known_system
    on_sphere = system is not None and system.space.round
    return TokenView(np.asarray(trajectory.positions), on_sphere)


def chosen_moments(report: Report) -> list[int]:
    """Four saves that tell the story: start, first clusters, longest plateau, end."""
    counts, last = np.asarray(report.clusters), len(report.clusters) - 1
    settled = int(np.argmax(counts <= 0.5 * (counts[0] + counts[-1]))) or max(1, last // 3)
    middle = _plateau(counts)
    chosen = {0, settled, middle, last}
    for extra in np.linspace(0, last, 8).round().astype(int):
        if len(chosen) >= min(4, last + 1):
            break
        chosen.add(int(extra))
    return sorted(chosen)


def _plateau(counts: np.ndarray) -> int:
    """The last save of the longest plateau between the first count and the last."""
    inside = (counts != counts[0]) & (counts != counts[-1])
    best, length, run = len(counts) * 2 // 3, 0, 0
    for i in range(1, len(counts)):
        run = run + 1 if inside[i] and counts[i] == counts[i - 1] else 0
        if run > length:
            best, length = i, run
    return best


def cluster_labels(xs: np.ndarray, moments: list[int], tolerance: float) -> np.ndarray:
    """The cluster of each token at the last moment but one, or at the last if that is a cloud.

    Args:
        xs: tokens, shape (T, n, d).
        moments: the saves that are drawn.
        tolerance: tokens linked within this distance are one cluster.
    """
    for i in (moments[-2], moments[-1]):
        found = observe.clusters(xs[i], tolerance)
        if found.count <= len(PALETTE):
            return found.labels
    return np.zeros(xs.shape[1], int)


def counts_over_time(ax: Axes, report: Report) -> None:
    """Draw the number of clusters over time, as a staircase."""
    times = _shown_times(ax, report)
    ax.step(times, report.clusters, where="post", color=PALETTE[0])
    ax.set(ylabel="clusters", ylim=(0.8, max(report.clusters) * 1.25))
    ax.set_yscale("log", base=2)
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.yaxis.set_minor_locator(NullLocator())
    if report.clusters[-1] < 8:
        ax.axhline(report.clusters[-1], color=FAINT, lw=0.6, ls=":", zorder=0)


def energy_over_time(ax: Axes, report: Report) -> None:
    """Draw the interaction energy E_β over time."""
    times = _shown_times(ax, report)
    ax.plot(times, report.energy or [], color=PALETTE[1])
    values = np.asarray(report.energy)
    if values.min() > 0 and values.max() / values.min() > 30:
        ax.set_yscale("log")
    ax.set_ylabel(r"energy $E_\beta$")


def order_over_time(ax: Axes, report: Report) -> None:
    """Draw the order parameter r over time."""
    times = _shown_times(ax, report)
    ax.plot(times, report.order or [], color=PALETTE[1])
    ax.set(ylabel="order parameter $r$", ylim=(0, 1.05))


def _beside_counts(report: Report) -> Callable[[Axes, Report], None] | None:
    """What to draw next to the cluster count, if the run has it."""
    if report.energy:
        return energy_over_time
    return order_over_time if report.order else None


def mark_time(ax: Axes, t: float) -> Line2D:
    """A vertical line at the time of an animation's frame."""
    return ax.axvline(t, color=INK, lw=0.8)


def _shown_times(ax: Axes, report: Report) -> np.ndarray:
    """The save times, on a log scale if they are spaced that way, with 0 at the left edge."""
    times = np.asarray(report.times)
    ax.set_xlabel("time $t$")
    gaps = np.diff(times)
    if len(times) > 3 and gaps[-1] > 20 * gaps[1]:
        ax.set_xscale("log")
        ax.set_xlim(times[1], times[-1])
    else:
        ax.set_xlim(times[0], times[-1])
    return times


def _number(value: float) -> str:
    """A time for a title: a plain number if it is short, else with a power of ten."""
    if value == 0 or 1e-3 <= abs(value) < 1e4:
        return f"{value:.3g}"
    mantissa, exponent = f"{value:.2e}".split("e")
    digits = mantissa.rstrip("0").rstrip(".")
    factor = "" if digits == "1" else rf"{digits}\cdot "
    return rf"{factor}10^{{{int(exponent)}}}"


def animate(trajectory: Trajectory, report: Report, *, path: str | Path) -> Path:
    """Write a GIF: the tokens move, and a line marks the time on the cluster count.

    The background is drawn once, and all frames share one palette. This is ten times faster than
    drawing each frame from scratch.

    Args:
        trajectory: a single run with its states.
        report: its report, from `report.summarise`.
        path: the file to write, ending in .gif.
    """
    view = view_of(trajectory)
    labels = cluster_labels(
        np.asarray(trajectory.positions), chosen_moments(report), report.tolerance
    )
    saves = np.unique(np.linspace(0, len(report.times) - 1, FILM_FRAMES).round().astype(int))
    with style():
        figure = Figure(figsize=(5.0, 6.2), layout="constrained", dpi=90)
        canvas = FigureCanvasAgg(figure)
        above, below = figure.subplots(2, 1, height_ratios=(3, 1))
        view.prepare(above)
        counts_over_time(below, report)
        title = above.set_title(f"{report.title}, $t = 0$")
        title.set_animated(True)
        canvas.draw()
        still = canvas.copy_from_bbox(figure.bbox)

        def frame(i: int) -> Image.Image:
            canvas.restore_region(still)
            title.set_text(f"{report.title}, $t = {report.times[i]:.3g}$")
            above.draw_artist(title)
            line = mark_time(below, max(report.times[i], below.get_xlim()[0]))
            below.draw_artist(line)
            moving = view.draw(above, i, labels)
            for artist in moving:
                above.draw_artist(artist)
            for artist in (*moving, line):
                artist.remove()
            return Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3].copy())

        frames = [frame(int(i)) for i in saves]
    palette = frames[len(frames) // 2].quantize(255, method=Image.Quantize.MEDIANCUT)
    film = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in frames]
    path = Path(path)
    with atomic_write(path) as place:
        film[0].save(
            place, save_all=True, append_images=film[1:], duration=1000 // FRAMES_PER_SECOND, loop=0
        )
    return path
