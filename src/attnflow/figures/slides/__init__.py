"""Figures that answer the questions of [S], the slides."""

from attnflow.figures.slides import albert, collapse, master, multihead, scaling

RECIPES = (multihead.RECIPE, scaling.RECIPE, albert.RECIPE, master.RECIPE, collapse.RECIPE)
