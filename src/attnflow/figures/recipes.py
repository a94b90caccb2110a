"""The table of all recipes, in the order of the papers."""

from __future__ import annotations

from attnflow.figures import emergence, perspective, slides
from attnflow.figures.recipe import Recipe

RECIPES: dict[str, Recipe] = {
    recipe.name: recipe for recipe in (*emergence.RECIPES, *perspective.RECIPES, *slides.RECIPES)
}
"""The recipes by name."""
