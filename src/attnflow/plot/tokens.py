"""Tokens in their space: on the circle, on the sphere, in R² and R³, or through PCA."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.patches import Circle

from attnflow.plot.style import FAINT, colours

TRAIL_SAVES = 12
"""Number of earlier saves in a trail."""

MAX_TRAIL_GAP = 0.5
"""If a token moves further between two saves, its trail has a gap: a chord is not its path."""


class TokenView:
    """A view of tokens that stays the same for a whole run.

    Up to d = 3 tokens are shown as they are; the sphere is turned so that most of the final tokens
    are in front. Above that, the picture shows the two leading principal components of all states.

    Args:
        xs: tokens, shape (T, n, d).
        on_sphere: whether tokens live on a unit sphere.
        plane: an orthonormal basis of the plane to show instead, shape (2, d).
    """

    def __init__(
        self,
        xs: Float[np.ndarray, "T n d"],
        on_sphere: bool,
        plane: Float[np.ndarray, "2 d"] | None = None,
    ):
        self.xs = np.asarray(xs, dtype=float)
        self.d = self.xs.shape[-1]
        self.globe = on_sphere and self.d == 3 and plane is None
        self.ring = on_sphere and (self.d == 2 or plane is not None)
        self.frame, self.centre = self._frame(plane)
        flat = self.project(self.xs.reshape(-1, self.d))[0]
        flat = flat[np.isfinite(flat).all(axis=1)]
        self.reach = 1.12 if self.globe or self.ring else 1.08 * float(np.abs(flat).max() or 1.0)

    def _frame(self, plane: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        zero = np.zeros(self.d)
        if plane is not None:
            return plane, zero
        if self.d <= 2:
            return np.eye(self.d), zero
        if self.globe:
            return _facing(self.xs[-1]), zero
        if self.d == 3:
            return _oblique(), self._middle()
        points = self.xs.reshape(-1, self.d)
        points = points[np.isfinite(points).all(axis=1)]
        middle = points.mean(axis=0)
        axes = _principal(points - middle)
        seen = (points - middle) @ axes.T
        return axes, middle + 0.5 * (seen.min(axis=0) + seen.max(axis=0)) @ axes

    def _middle(self) -> np.ndarray:
        last = self.xs[-1]
        return 0.5 * (last.min(axis=0) + last.max(axis=0))

    def project(self, x: Float[np.ndarray, "n d"]) -> tuple[np.ndarray, np.ndarray]:
        """Plane coordinates, shape (n, 2), and how near each token is to the viewer, shape (n,)."""
        seen = (np.asarray(x, dtype=float) - self.centre) @ self.frame.T
        if self.d == 1:
            return np.column_stack([seen[:, 0], np.zeros(len(seen))]), np.ones(len(seen))
        near = seen[:, 2] if seen.shape[1] == 3 else np.ones(len(seen))
        return seen[:, :2], near

    def prepare(self, ax: Axes) -> None:
        """Prepare the axes: the outline of the space, equal scales, no ticks."""
        ax.set(xlim=(-self.reach, self.reach), ylim=(-self.reach, self.reach))
        ax.set_aspect("equal")
        if self.globe or self.ring or self.d >= 3:
            ax.axis("off")
        if self.globe:
            ax.add_patch(Circle((0, 0), 1, facecolor="#F4F6F8", edgecolor=FAINT, lw=0.8, zorder=0))
            for line in graticule():
                flat, near = self.project(line)
                flat[near < 0] = np.nan
                ax.plot(*flat.T, color="#D5DAE0", lw=0.6, zorder=0)
        if self.ring:
            ax.add_patch(Circle((0, 0), 1, facecolor="none", edgecolor=FAINT, lw=0.8, zorder=0))
        if self.d >= 4 and not self.ring:
            aside: Any = {"transform": ax.transAxes, "color": FAINT}
            ax.text(0.5, 0.0, "PC 1", ha="center", **aside)
            ax.text(0.0, 0.5, "PC 2", ha="right", va="center", rotation="vertical", **aside)
        if self.d == 1:
            ax.set_yticks([])

    def draw(self, ax: Axes, i: int, labels: np.ndarray, size: float = 26) -> list[Any]:
        """Draw the tokens at a save with their trails; returns the artists.

        Args:
            ax: the axes.
            i: the number of the save.
            labels: the label of each token, which sets its colour, shape (n,).
            size: area of the dots. Tokens on the far side are paler.
        """
        flat, near = self.project(self.xs[i])
        shade = np.array(colours(labels))
        past = np.array([self.project(x)[0] for x in self.xs[max(0, i - TRAIL_SAVES) : i + 1]])
        if self.globe or self.ring:
            leaps = np.linalg.norm(np.diff(past, axis=0), axis=-1) > MAX_TRAIL_GAP
            past[:-1][leaps] = np.nan
        faint = np.where(near >= 0, 0.35, 0.12)
        trails = LineCollection(
            list(np.swapaxes(past, 0, 1)),
            colors=[to_rgba(c, a) for c, a in zip(shade, faint, strict=True)],
            linewidths=0.9,
            zorder=1,
        )
        artists: list[Any] = [ax.add_collection(trails, autolim=False)]
        order = np.argsort(near)
        alpha = np.where(near >= 0, 0.95, 0.3)
        faces = [to_rgba(shade[token], alpha[token]) for token in order]
        edges = [to_rgba("white", alpha[token]) for token in order]
        across, up = flat[order].T
        dots = ax.scatter(across, up, size, faces, edgecolors=edges, linewidths=0.5, zorder=2)
        artists.append(dots)
        return artists


def _facing(x: Float[np.ndarray, "n 3"]) -> np.ndarray:
    """A view of the sphere from the side where most clusters are, slightly from above."""
    spots = np.unique(np.round(x, 2), axis=0)
    candidates = np.concatenate([x, spots, -spots, [[0, 0, 1.0]]])
    shown = (candidates @ spots.T).clip(min=-0.2, max=0.6).sum(axis=1)
    eye = candidates[np.argmax(shown)] + 0.35 * spots.mean(axis=0) + np.array([0.1, 0.2, 0.15])
    eye = eye / np.linalg.norm(eye)
    up = np.eye(3)[np.argmin(np.abs(eye))]
    right = np.cross(up, eye) / np.linalg.norm(np.cross(up, eye))
    return np.stack([right, np.cross(eye, right), eye])


def _principal(away: Float[np.ndarray, "k d"]) -> Float[np.ndarray, "2 d"]:
    """The two leading principal axes of points about 0.

    Two eigenvectors of the covariance take a fiftieth of the time of all singular vectors.
    """
    d = away.shape[1]
    scaled = away / (np.abs(away).max() or 1.0)
    axes = scipy.linalg.eigh(scaled.T @ scaled, subset_by_index=(d - 2, d - 1))[1]
    return axes.T[::-1]


def _oblique() -> np.ndarray:
    """R³ seen from the usual corner."""
    a, e = np.deg2rad(-60), np.deg2rad(25)
    eye = np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
    right = np.array([-np.sin(a), np.cos(a), 0.0])
    return np.stack([right, np.cross(eye, right), eye])


def graticule() -> list[np.ndarray]:
    """Circles of latitude and longitude."""
    s = np.linspace(0, 2 * np.pi, 181)
    lines = []
    for latitude in np.deg2rad([-60, -30, 0, 30, 60]):
        c = np.cos(latitude)
        lines.append(
            np.stack([c * np.cos(s), c * np.sin(s), np.full_like(s, np.sin(latitude))], -1)
        )
    for longitude in np.deg2rad(np.arange(0, 180, 30)):
        c, n = np.cos(longitude), np.sin(longitude)
        lines.append(np.stack([np.cos(s) * c, np.cos(s) * n, np.sin(s)], -1))
    return lines
