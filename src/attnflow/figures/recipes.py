"""The table of all recipes, in the order of the papers."""

from __future__ import annotations

from attnflow.figures.emergence import (
    fig1,
    fig3,
    fig6,
    fig7a,
    fig7b,
    fig8,
    fig10,
    fig13,
    qk,
)
from attnflow.figures.recipe import Recipe

_ALL: tuple[Recipe, ...] = (
    fig1.RECIPE,
    fig3.RECIPE,
    fig1.SNAPSHOTS,
    fig6.RECIPE,
    fig7a.RECIPE,
    fig7b.RECIPE,
    fig8.RECIPE,
    fig10.RECIPE,
    fig3.LARGER,
    fig13.RECIPE,
    fig13.GROWING,
    qk.RECIPE,
)

RECIPES: dict[str, Recipe] = {recipe.name: recipe for recipe in _ALL}
"""The recipes by name."""
