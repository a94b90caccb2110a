"""The table of all recipes, in the order of the papers."""

from __future__ import annotations

from attnflow.figures.emergence import fig1, fig3
from attnflow.figures.perspective import energy, fig6, gamma, repulsive, wendel
from attnflow.figures.perspective import fig2 as p_fig2
from attnflow.figures.perspective import fig3 as p_fig3
from attnflow.figures.perspective import fig4 as p_fig4
from attnflow.figures.recipe import Recipe

_ALL: tuple[Recipe, ...] = (
    *(fig1.RECIPE, fig3.RECIPE, fig1.SNAPSHOTS, fig3.LARGER),
    *(p_fig2.RECIPE, p_fig3.RECIPE, p_fig4.RECIPE, fig6.RECIPE),
    *(wendel.RECIPE, gamma.RECIPE, energy.RECIPE, repulsive.RECIPE),
)

RECIPES: dict[str, Recipe] = {recipe.name: recipe for recipe in _ALL}
"""The recipes by name."""
