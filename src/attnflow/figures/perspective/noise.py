"""[P] Problem 7: noise and consensus on the circle, for tokens and for their density."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import iv

from attnflow import initial, observe
from attnflow.figures.recipe import Picture, Recipe, Size, sized
from attnflow.plot.style import INK, PALETTE
from attnflow.simulate import Fixed, simulate
from attnflow.systems import AngularSA, Noisy
from attnflow.theory.checks.base import Quantity

BETAS = (0.5, 2.0, 4.0, 6.0)
SIGMAS = np.linspace(0.05, 0.75, 8)
DRAWN = (0.5, 4.0)
STEP = 0.1


def _make(size: Size) -> Picture:
    n, end = sized(size, 96, 1024), sized(size, 40.0, 400.0)
    tokens = np.array([[_order(beta, sigma, n, end) for sigma in SIGMAS] for beta in BETAS])
    limit = np.array([[steady_order(beta, sigma) for sigma in SIGMAS] for beta in BETAS])
    critical = threshold(np.array(BETAS))
    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    _map(figure, left, tokens)
    for beta, colour in zip(DRAWN, PALETTE, strict=False):
        _along(right, beta, tokens[BETAS.index(beta)], colour)
    right.set(xlabel=r"noise $\sigma$", ylabel="order parameter $r$", ylim=(0, 1.02))
    right.legend(fontsize=9)
    ratio = SIGMAS[None, :] / critical[:, None]
    above, away = ratio >= 1.5, np.abs(ratio - 1) >= 0.4
    seen = (
        Quantity("r with the least noise, least of all β", tokens[:, 0].min(), "≥", 0.7),
        Quantity("r above 1.5 times the threshold, at most", tokens[above].max(), "≤", 0.35),
        Quantity(
            "r of tokens less r of the density, away from the threshold, at most",
            np.abs(tokens - limit)[away].max(),
            "≤",
            0.25,
        ),
    )
    numbers = {
        "n": n,
        "β": BETAS,
        "σ": SIGMAS,
        "r of tokens": tokens,
        "r of the density": limit,
        "threshold": critical,
    }
    return Picture(figure, numbers, seen)


def _order(beta: float, sigma: float, n: int, end: float) -> float:
    """The mean of r over the second half of a run that starts in consensus."""
    system = Noisy(AngularSA(beta), sigma)  # type: ignore[call-arg,arg-type]
    ts = np.linspace(0.0, end, 41)
    x0 = initial.angles(n, arc=0.5, seed=0)
    run = simulate(system, x0, ts, method=Fixed(STEP, "heun"), key=1)
    return float(observe.order_parameter(run.positions[20:]).mean())


def threshold(beta: Float[np.ndarray, " B"]) -> Float[np.ndarray, " B"]:
    """The σ = I₁(β)/(β I₀(β)) above which the uniform measure is stable."""
    return iv(1, beta) / (beta * iv(0, beta))


def steady_order(beta: float, sigma: float, cells: int = 128) -> float:
    """The r of the density that noise leaves of a consensus.

    The drift of SA is the gradient of log F / β with F = ∫ e^{β cos(θ−ω)} dρ(ω), so that the steady
    density is proportional to F^{1/(βσ)}. It is found by iteration from a narrow one.
    """
    theta = 2 * np.pi / cells * np.arange(cells)
    kernel = np.fft.rfft(np.exp(beta * (np.cos(theta) - 1)))
    rho = np.exp(20 * (np.cos(theta) - 1))
    for _ in range(2000):
        F = np.fft.irfft(np.fft.rfft(rho / rho.sum()) * kernel, cells)
        rho = (F / F.max()) ** (1 / (beta * sigma))
    return float(np.abs(np.sum(rho * np.exp(1j * theta))) / rho.sum())


def _map(figure: Figure, ax: Axes, tokens: np.ndarray) -> None:
    shown: dict[str, Any] = {"cmap": "Blues", "vmin": 0, "vmax": 1, "shading": "nearest"}
    drawn = ax.pcolormesh(SIGMAS, BETAS, tokens, rasterized=True, **shown)
    figure.colorbar(drawn, ax=ax, label="order parameter $r$")
    low, high = ax.get_ylim()
    beta = np.linspace(max(low, 0.01), high, 200)
    ax.plot(threshold(beta), beta, color=PALETTE[1])
    ax.set(xlabel=r"noise $\sigma$", ylabel=r"$\beta$", ylim=(low, high))


def _along(ax: Axes, beta: float, tokens: np.ndarray, colour: str) -> None:
    fine = np.linspace(SIGMAS[0], SIGMAS[-1], 57)
    limit = [steady_order(beta, sigma) for sigma in fine]
    ax.plot(fine, limit, color=colour, label=rf"$\beta = {beta:g}$, density")
    ax.plot(SIGMAS, tokens, "o", ms=4, color=colour, mec=INK, mew=0.4, label="tokens")
    ax.axvline(float(threshold(np.array([beta]))[0]), color=colour, ls=":", lw=1)


RECIPE = Recipe(
    "P-noise",
    "[P] Problem 7",
    "Order parameter of noisy SA on the circle from a consensus, over σ and β: it is lost above "
    "the threshold at which the uniform measure becomes stable (line), as in the steady density.",
    _make,
)
