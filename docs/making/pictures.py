"""A picture of every spec in `examples/`, for the pages of the systems.

python docs/making/pictures.py                 # all of them, a few minutes
python docs/making/pictures.py kuramoto noisy  # some
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from colours import few_colours
from PIL import Image

from attnflow.errors import IncompleteRun
from attnflow.plot import overview
from attnflow.report import summarise
from attnflow.simulation import simulate
from attnflow.spec import read_spec

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PICTURES = ROOT / "docs" / "images" / "systems"

DPI = 110


def draw(spec: Path) -> Path:
    """Run a spec as `attnflow run` does and keep its picture, small enough for a page."""
    wanted = read_spec(spec)
    planned = wanted.build()
    try:
        run = simulate(
            planned.system, planned.x0, planned.ts, method=planned.method, key=planned.key
        )
    except IncompleteRun as error:
        run = error.trajectory
    figure = overview(run, summarise(run), title=wanted.title)
    return keep(figure, PICTURES / f"{spec.stem}.png")


def keep(figure, path: Path) -> Path:
    """Write a figure, small enough for a page."""
    raw = BytesIO()
    figure.savefig(raw, dpi=DPI, format="png")
    path.parent.mkdir(parents=True, exist_ok=True)
    few_colours(Image.open(raw)).save(path, optimize=True)
    return path


def main(names: Sequence[str]) -> None:
    """Draw the named specs, or all."""
    specs = [EXAMPLES / f"{name}.toml" for name in names] or sorted(EXAMPLES.glob("*.toml"))
    for spec in specs:
        print(draw(spec).relative_to(ROOT), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
