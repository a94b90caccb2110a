"""[P] Problem 7: noise and consensus on the circle, for tokens and for their density."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float, Key
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnflow import initial, observe
from attnflow.figures.recipe import Picture, Recipe, Size, sized
from attnflow.plot.style import INK, PALETTE
from attnflow.simulate import Fixed, simulate
from attnflow.systems import AngularSA, Noisy
from attnflow.theory import linear_growth
from attnflow.theory.checks.base import Quantity

BETAS = np.array([0.5, 2.0, 4.0, 6.0])
SIGMAS = np.linspace(0.05, 0.75, 8)
DRAWN = (0, 2)
"""The β whose order is drawn against σ, by their places."""

STEP, SAVES = 0.125, 41


def _make(size: Size) -> Picture:
    n, end = sized(size, 128, 512), sized(size, 20.0, 100.0)
    tokens = orders(n, end)
    limit = np.array([steady_order(beta, SIGMAS) for beta in BETAS])
    critical = threshold(BETAS)
    ratio = SIGMAS / critical[:, None]
    above, away = ratio >= 1.5, np.abs(ratio - 1) >= 0.4
    apart = np.abs(tokens - limit)[away]
    seen = (
        Quantity("r with the least noise, least of all β", tokens[:, 0].min(), "≥", 0.7),
        Quantity("r above 1.5 times the threshold, at most", tokens[above].max(), "≤", 0.35),
        Quantity("r off that of the density, away from the threshold", apart.max(), "≤", 0.25),
    )
    numbers = {
        "n": n,
        "β": BETAS,
        "σ": SIGMAS,
        "r of tokens": tokens,
        "r of the density": limit,
        "threshold": critical,
    }
    return Picture(_drawn(n, tokens), numbers, seen)


def orders(n: int, end: float) -> Float[np.ndarray, "B S"]:
    """The mean of r over the second half of runs that start in consensus, for all β and σ."""
    x0 = initial.angles(n, arc=0.5, seed=0)
    ts = np.linspace(0.0, end, SAVES)

    @jax.jit
    @jax.vmap
    def order(
        beta: Float[Array, ""], sigma: Float[Array, ""], key: Key[Array, ""]
    ) -> Float[Array, ""]:
        system = Noisy(AngularSA(beta), sigma)  # type: ignore[call-arg,arg-type]
        run = simulate(system, x0, ts, method=Fixed(STEP, "heun"), key=key)
        return observe.order_parameter(run.positions[SAVES // 2 :]).mean()

    beta, sigma = (np.ravel(part) for part in np.meshgrid(BETAS, SIGMAS, indexing="ij"))
    found = order(beta, sigma, jax.random.split(jax.random.key(1), len(beta)))
    return np.asarray(found).reshape(len(BETAS), len(SIGMAS))


def threshold(beta: Float[np.ndarray, " B"]) -> Float[np.ndarray, " B"]:
    """The σ = I₁(β)/(β I₀(β)) above which the uniform measure is stable.

    >>> threshold(np.array([1e-6])).round(6).tolist()
    [0.5]
    """
    return np.asarray(linear_growth(beta, 2, 1, True))


def steady_order(
    beta: float, sigma: Float[np.ndarray, " S"], cells: int = 128
) -> Float[np.ndarray, " S"]:
    """The r of the densities that noise leaves of a consensus.

    The drift of SA is the gradient of log F / β with F = ∫ e^{β cos(θ−ω)} dρ(ω), so that the steady
    density is proportional to F^{1/(βσ)}. It is found by iteration from a narrow one.
    """
    theta = 2 * np.pi / cells * np.arange(cells)
    kernel = np.fft.rfft(np.exp(beta * (np.cos(theta) - 1)))
    rho = np.tile(np.exp(20 * (np.cos(theta) - 1)), (len(sigma), 1))
    for _ in range(2000):
        F = np.fft.irfft(np.fft.rfft(rho / rho.sum(axis=1, keepdims=True)) * kernel, cells)
        rho = (F / F.max(axis=1, keepdims=True)) ** (1 / (beta * sigma))[:, None]
    return np.abs(rho @ np.exp(1j * theta)) / rho.sum(axis=1)


def _drawn(n: int, tokens: Float[np.ndarray, "B S"]) -> Figure:
    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    _map(figure, left, tokens)
    for b, colour in zip(DRAWN, PALETTE, strict=False):
        _along(right, float(BETAS[b]), tokens[b], colour)
    right.set(xlabel=r"noise $\sigma$", ylabel="order parameter $r$", ylim=(0, 1.02))
    legend = right.legend(
        fontsize=9,
        title=f"points: {n} tokens\nlines: density",
        title_fontsize=9,
        frameon=True,
        edgecolor="white",
        framealpha=1.0,
    )
    legend.set_zorder(5)
    return figure


def _map(figure: Figure, ax: Axes, tokens: Float[np.ndarray, "B S"]) -> None:
    """The order of tokens over σ and β, and the threshold."""
    shown: dict[str, Any] = {"cmap": "Blues", "vmin": 0, "vmax": 1, "shading": "nearest"}
    drawn = ax.pcolormesh(SIGMAS, np.arange(len(BETAS)), tokens, rasterized=True, **shown)
    figure.colorbar(drawn, ax=ax, label="order parameter $r$")
    place = np.linspace(-0.5, len(BETAS) - 0.5, 200)
    # Rows are not equally far apart in β: between two of them β is that of a line.
    slope = np.diff(BETAS)
    beta = np.interp(place, np.arange(len(BETAS)), BETAS)
    beta = np.where(place < 0, BETAS[0] + place * slope[0], beta)
    beta = np.where(place > len(BETAS) - 1, BETAS[-1] + (place - len(BETAS) + 1) * slope[-1], beta)
    right = beta > 0
    ax.plot(threshold(beta[right]), place[right], color=PALETTE[1], label="threshold")
    ax.set_yticks(np.arange(len(BETAS)), [f"{beta:g}" for beta in BETAS])
    ax.set(xlabel=r"noise $\sigma$", ylabel=r"$\beta$")
    ax.legend(loc="upper right")


def _along(ax: Axes, beta: float, tokens: Float[np.ndarray, " S"], colour: str) -> None:
    """The order against σ: of the density, of tokens, and where it is lost."""
    fine = np.linspace(SIGMAS[0], SIGMAS[-1], 57)
    ax.plot(fine, steady_order(beta, fine), color=colour, label=rf"$\beta = {beta:g}$")
    ax.plot(SIGMAS, tokens, "o", ms=4, color=colour, mec=INK, mew=0.4)
    ax.axvline(float(threshold(np.array([beta]))[0]), color=colour, ls=":", lw=1)


RECIPE = Recipe(
    "P-noise",
    "[P] Problem 7",
    "Order parameter of noisy SA on the circle from a consensus, over σ and β: it is lost above "
    "the threshold at which the uniform measure becomes stable (line), as in the steady density.",
    _make,
)
