"""Figures that answer the questions of [S], the slides."""

from attnflow.figures.slides import collapse, master, scaling

RECIPES = (scaling.RECIPE, master.RECIPE, collapse.RECIPE)
