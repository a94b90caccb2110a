"""Every figure of the papers as a recipe: a run, a picture, and checks of what it shows."""

from attnflow.figures.export import Written, find, write
from attnflow.figures.gallery import gallery, write_index
from attnflow.figures.recipe import SIZES, Picture, Recipe, Size, sized
from attnflow.figures.recipes import RECIPES

__all__ = [
    "RECIPES",
    "SIZES",
    "Picture",
    "Recipe",
    "Size",
    "Written",
    "find",
    "gallery",
    "sized",
    "write",
    "write_index",
]
