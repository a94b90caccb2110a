"""Every figure of the papers as a recipe: a run, a picture, and checks of what it shows."""

from attnflow.figures.export import RECIPES, FigureRecord, find, write
from attnflow.figures.gallery import gallery, write_index
from attnflow.figures.recipe import SIZES, Picture, Recipe, Size, by_size
from attnflow.retired import renamed_names

__all__ = [
    "RECIPES",
    "SIZES",
    "FigureRecord",
    "Picture",
    "Recipe",
    "Size",
    "by_size",
    "find",
    "gallery",
    "write",
    "write_index",
]

__getattr__ = renamed_names(__name__, {"Written": "FigureRecord", "sized": "by_size"})
