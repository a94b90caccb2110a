"""The table of all recipes, in the order of the papers."""

from __future__ import annotations

from attnflow.figures.emergence import fig1, fig3
from attnflow.figures.perspective import fig1 as p_fig1
from attnflow.figures.perspective import hardmax
from attnflow.figures.recipe import Recipe
from attnflow.figures.slides import collapse, master, scaling

_ALL: tuple[Recipe, ...] = (
    fig1.RECIPE,
    fig3.RECIPE,
    fig1.SNAPSHOTS,
    fig3.LARGER,
    p_fig1.RECIPE,
    hardmax.RECIPE,
    scaling.RECIPE,
    master.RECIPE,
    collapse.RECIPE,
)

RECIPES: dict[str, Recipe] = {recipe.name: recipe for recipe in _ALL}
"""The recipes by name."""
