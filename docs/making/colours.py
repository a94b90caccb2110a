"""Pictures with few colours: a third of the bytes, and the same to the eye."""

from __future__ import annotations

from PIL import Image

COLOURS, TURNS = 256, 3


def few_colours(picture: Image.Image) -> Image.Image:
    """A picture with a palette of its own.

    Its colours are chosen to leave none far off: a small dot counts as much as the paper around it.
    (Pillow's own choice counts pixels, and turns an orange dot brown.)
    """
    return picture.convert("RGB").quantize(
        COLOURS, method=Image.Quantize.MAXCOVERAGE, kmeans=TURNS, dither=Image.Dither.NONE
    )
