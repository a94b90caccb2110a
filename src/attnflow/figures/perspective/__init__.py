"""Figures of [P], *A mathematical perspective on Transformers*."""

from attnflow.figures.perspective import (
    bbgky,
    energy,
    fig1,
    fig2,
    fig3,
    fig4,
    fig5,
    fig6,
    gamma,
    hardmax,
    meanfield,
    noise,
    repulsive,
    wendel,
)

RECIPES = (
    fig1.RECIPE,
    fig2.RECIPE,
    fig3.RECIPE,
    fig4.RECIPE,
    fig5.RECIPE,
    fig6.RECIPE,
    wendel.RECIPE,
    gamma.RECIPE,
    energy.RECIPE,
    repulsive.RECIPE,
    meanfield.RECIPE,
    bbgky.RECIPE,
    noise.RECIPE,
    hardmax.RECIPE,
)
