"""Figures of [E], *The emergence of clusters in self-attention dynamics*."""

from attnflow.figures.emergence import (
    fig1,
    fig3,
    fig4,
    fig6,
    fig7a,
    fig7b,
    fig8,
    fig10,
    fig13,
    ginibre,
    qk,
    table1,
)

RECIPES = (
    fig1.RECIPE,
    fig3.RECIPE,
    fig4.RECIPE,
    fig1.SNAPSHOTS,
    fig6.RECIPE,
    fig7a.RECIPE,
    fig7b.RECIPE,
    fig8.RECIPE,
    fig10.RECIPE,
    fig3.LARGER,
    fig13.RECIPE,
    fig13.GROWING,
    ginibre.RECIPE,
    table1.RECIPE,
    qk.RECIPE,
)
