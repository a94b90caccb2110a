"""[P] Fig. 6: the function g, whose sign says which tokens can hold each other at a maximum."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from attnflow import observe
from attnflow.figures.recipe import Picture, Recipe, Size
from attnflow.plot.style import FAINT, PALETTE
from attnflow.theory import tau_star
from attnflow.verdicts import Quantity

BETAS = (2.0, 6.0)


def g(tau: Float[np.ndarray, " T"], beta: float | int) -> Float[np.ndarray, " T"]:
    """`(cos τ − β sin² τ) e^{β cos τ}`, [P] appendix B, divided by its value e^β at 0.

    >>> g(np.array([0.0, np.pi / 2]), 1.0).round(4).tolist()
    [1.0, -0.3679]
    """
    return (np.cos(tau) - beta * np.sin(tau) ** 2) * np.exp(beta * (np.cos(tau) - 1))


def second_derivatives(tau: Float[np.ndarray, " T"], beta: float | int) -> Float[np.ndarray, " T"]:
    """The same from the Hessian of E_β: `n² ∂₁∂₂E_β` of two tokens that are τ apart."""
    pairs = np.stack([np.zeros_like(tau), tau], axis=-1)
    x = jnp.stack([jnp.cos(pairs), jnp.sin(pairs)], axis=-1)
    mixed = jax.vmap(lambda x: observe.hessian(x, beta)[0, 1])(x)
    return 4 * np.asarray(mixed) * np.exp(-beta)


def _make(size: Size) -> Picture:
    tau = np.linspace(0, np.pi, 721)
    dots = np.linspace(0, np.pi, 19)
    figure = Figure(figsize=(4.8, 3.4), layout="constrained")
    ax = figure.subplots()
    ax.axhline(0, color=FAINT, lw=0.8, zorder=0)
    numbers, seen = {}, []
    for beta, colour in zip(BETAS, PALETTE, strict=False):
        star, values = float(tau_star(beta)), g(tau, beta)
        mirrored = np.concatenate([-tau[:0:-1], tau]), np.concatenate([values[:0:-1], values])
        ax.plot(*mirrored, color=colour, label=rf"$\beta = {beta:g}$")
        measured = second_derivatives(dots, beta)
        ax.plot(dots, measured, "o", ms=3.2, mfc="white", mec=colour)
        for side in (-star, star):
            ax.plot([side, side], [0, -0.5], color=colour, lw=0.8, ls=":")
        # the wider angle is named on its left, the narrower one on its right
        where = "right" if beta == min(BETAS) else "left"
        ax.text(-star, -0.52, rf"$-\tau^*_{{{beta:g}}}$", color=colour, ha=where, va="top")
        numbers[f"β = {beta:g}"] = {"τ*": star, "τ": tau, "g / e^β": values}
        off = np.abs(measured - g(dots, beta)).max()
        seen += [
            Quantity(f"|g(τ*)| / e^β, β = {beta:g}", abs(g(np.array([star]), beta)[0]), "≤", 1e-12),
            Quantity(f"g nearer than τ*, β = {beta:g}", values[tau < star].min(), "≥", 0.0),
            Quantity(f"g farther than τ*, β = {beta:g}", values[tau > star].max(), "≤", 0.0),
            Quantity(f"|g − n² ∂₁∂₂E_β| / e^β, β = {beta:g}", off, "≤", 1e-12),
        ]
    ax.set(xlabel=r"angle $\tau$", ylabel=r"$g(\tau)\, e^{-\beta}$", xlim=(-np.pi, np.pi))
    ax.set_ylim(-0.66, 1.05)
    ax.set_xticks([-np.pi, -np.pi / 2, 0, np.pi / 2, np.pi])
    ax.set_xticklabels([r"$-\pi$", r"$-\pi/2$", "0", r"$\pi/2$", r"$\pi$"])
    ax.legend(loc="upper right")
    return Picture(figure, numbers, tuple(seen))


RECIPE = Recipe(
    "P-fig6",
    "[P] Fig. 6",
    "g(τ) = (cos τ − β sin² τ) e^{β cos τ} is positive up to τ*_β and negative beyond: the second "
    "derivatives of the energy, measured on two tokens (dots), lie on it.",
    _make,
)
