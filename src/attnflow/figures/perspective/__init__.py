"""Figures of [P], *A mathematical perspective on Transformers*."""

from attnflow.figures.perspective import energy, fig2, fig3, fig4, fig6, gamma, repulsive, wendel

RECIPES = (
    fig2.RECIPE,
    fig3.RECIPE,
    fig4.RECIPE,
    fig6.RECIPE,
    wendel.RECIPE,
    gamma.RECIPE,
    energy.RECIPE,
    repulsive.RECIPE,
)
