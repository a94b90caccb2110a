"""[P] Problem 7: noise and consensus on the circle, for tokens and for their density."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Key, Num
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnflow import initial, observe
from attnflow.figures.recipe import Picture, Recipe, Size, by_size
from attnflow.plot.style import INK, PALETTE
from attnflow.simulation import Fixed, simulate
from attnflow.systems import SA, Noisy
from attnflow.systems.angles import AngleSystem
from attnflow.theory import linear_growth
from attnflow.verdicts import Quantity

MIN_SIGMA, MAX_SIGMA = 0.05, 0.75
"""The range of σ."""

BETAS_SHOWN = (0.5, 4.0)
"""The β whose order is drawn against σ; every grid has them."""

STEP, SAVES = 0.125, 41


class HarmonicSA(AngleSystem):
    """`AngularSA` whose sums go through harmonics, as those of `SA` can: O(n), for many runs.

    Noise in angles is exact; tokens that step off the circle and are brought back diffuse less.
    """

    beta: Float[Array, ""]

    def __init__(self, beta: Float[ArrayLike, ""]):
        self.beta = jnp.asarray(beta, float)

    def velocity(
        self, t: Any, x: Num[Array, "n d"], masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n d"]:
        """The speeds of the angles: what SA does to the tokens, along the circle."""
        tokens = self.positions(x)
        along = jnp.stack([-tokens[:, 1], tokens[:, 0]], axis=1)
        moved = SA(self.beta, backend="spectral").velocity(t, tokens, masses)
        return jnp.sum(moved * along, axis=1, keepdims=True)


def _make(size: Size) -> Picture:
    n, end = by_size(size, 256, 1024), by_size(size, 60.0, 100.0)
    betas = by_size(size, np.linspace(0.5, 7.5, 5), np.linspace(0.5, 8.0, 16))
    sigmas = np.linspace(MIN_SIGMA, MAX_SIGMA, by_size(size, 8, 24))
    tokens = orders(n, end, betas, sigmas)
    limit = np.array([steady_order(beta, sigmas) for beta in betas])
    critical = threshold(betas)
    ratio = sigmas / critical[:, None]
    above, away = ratio >= 1.5, np.abs(ratio - 1) >= 0.4
    apart = np.abs(tokens - limit)[away]
    seen = (
        Quantity("r with the least noise, least of all β", tokens[:, 0].min(), "≥", 0.7),
        Quantity("r above 1.5 times the threshold, at most", tokens[above].max(), "≤", 0.35),
        Quantity("r off that of the density, away from the threshold", apart.max(), "≤", 0.25),
    )
    numbers = {
        "n": n,
        "t": end,
        "β": betas,
        "σ": sigmas,
        "r of tokens": tokens,
        "r of the density": limit,
        "threshold": critical,
    }
    figure = _drawn(betas, sigmas, tokens)
    figure.suptitle(f"{n} tokens, $t$ from {end / 2:g} to {end:g}", fontsize=11)
    return Picture(figure, numbers, seen)


def orders(
    n: int, end: float, betas: Float[np.ndarray, " B"], sigmas: Float[np.ndarray, " S"]
) -> Float[np.ndarray, "B S"]:
    """The mean of r over the second half of runs that start in consensus, for all β and σ."""
    x0 = initial.angles(n, arc=0.5, key=0)
    ts = np.linspace(0.0, end, SAVES)

    def order(
        given: tuple[Float[Array, ""], Float[Array, ""], Key[Array, ""]],
    ) -> Float[Array, ""]:
        beta, sigma, key = given
        system = Noisy(HarmonicSA(beta), sigma)
        run = simulate(system, x0, ts, method=Fixed(STEP, "heun"), key=key)
        return observe.order_parameter(run.positions[SAVES // 2 :]).mean()

    beta, sigma = (np.ravel(part) for part in np.meshgrid(betas, sigmas, indexing="ij"))
    keys = jax.random.split(jax.random.key(1), len(beta))
    found = jax.jit(lambda *given: jax.lax.map(order, given))(beta, sigma, keys)
    return np.asarray(found).reshape(len(betas), len(sigmas))


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


def _drawn(
    betas: Float[np.ndarray, " B"],
    sigmas: Float[np.ndarray, " S"],
    tokens: Float[np.ndarray, "B S"],
) -> Figure:
    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    _map(figure, left, betas, sigmas, tokens)
    for beta, colour in zip(BETAS_SHOWN, PALETTE[0::2], strict=False):
        left.axhline(beta, color=colour, lw=1, ls="--")
        _along(right, beta, sigmas, tokens[np.argmin(np.abs(betas - beta))], colour)
    right.set(xlabel=r"noise $\sigma$", ylabel="order parameter $r$", ylim=(0, 1.02))
    legend = right.legend(
        fontsize=9,
        title="points: tokens\nlines: density\ndotted: threshold",
        title_fontsize=9,
        frameon=True,
        edgecolor="white",
        framealpha=1.0,
    )
    legend.set_zorder(5)
    return figure


def _map(
    figure: Figure,
    ax: Axes,
    betas: Float[np.ndarray, " B"],
    sigmas: Float[np.ndarray, " S"],
    tokens: Float[np.ndarray, "B S"],
) -> None:
    """The order of tokens over σ and β, and the threshold."""
    shown: dict[str, Any] = {"cmap": "Blues", "vmin": 0, "vmax": 1, "shading": "nearest"}
    drawn = ax.pcolormesh(sigmas, betas, tokens, rasterized=True, **shown)
    figure.colorbar(drawn, ax=ax, label="order parameter $r$")
    low, high = ax.get_ylim()
    beta = np.linspace(max(low, 1e-3), high, 200)
    ax.plot(threshold(beta), beta, color=PALETTE[1], label="threshold")
    ax.set(xlabel=r"noise $\sigma$", ylabel=r"$\beta$", ylim=(max(low, 0.0), high))
    ax.legend(loc="upper right")


def _along(
    ax: Axes,
    beta: float,
    sigmas: Float[np.ndarray, " S"],
    tokens: Float[np.ndarray, " S"],
    colour: str,
) -> None:
    """The order against σ: of the density, of tokens, and where it is lost."""
    fine = np.linspace(MIN_SIGMA, MAX_SIGMA, 57)
    ax.plot(fine, steady_order(beta, fine), color=colour, label=rf"$\beta = {beta:g}$")
    ax.plot(sigmas, tokens, "o", ms=4, color=colour, mec=INK, mew=0.4)
    ax.axvline(float(threshold(np.array([beta]))[0]), color=colour, ls=":", lw=1)


RECIPE = Recipe(
    "P-noise",
    "[P] Problem 7",
    "Order parameter of noisy SA on the circle from a consensus, over σ and β: it is lost above "
    "the threshold at which the uniform measure becomes stable (line), as in the steady density. "
    "Beside it two cuts, at the dashed β: tokens (points), the density (lines) and the threshold "
    "(dotted).",
    _make,
)
