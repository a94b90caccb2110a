"""The pages of what was measured: docs/claims.md, gallery.md and mutants.md, from files.

    attnflow check --json checks.json
    attnflow search C4.2 --json C4.2.json
    attnflow figures all --size paper --out figures
    python tests/killed.py kills.json
    python docs/making/measured.py --checks checks.json --searches C4.2.json --figures figures
    python docs/making/measured.py --mutants kills.json

What is given is kept in docs/measured/ (without single draws and the numbers behind pictures),
pictures in docs/images/figures/. The pages are written from what is kept, so parts may be measured
at different times.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import claims
import gallery
import mistakes
from colours import few_colours
from PIL import Image

DOCS = Path(__file__).parents[1]
KEPT = DOCS / "measured"
PICTURES = DOCS / "images" / "figures"

WIDEST = 1600


def keep_checks(file: Path) -> None:
    """Keep the outcome of each check, without its draws."""
    for record in json.loads(file.read_text()):
        record.pop("draws")
        _write(KEPT / "checks" / f"{record['id']}.json", record)


def keep_searches(files: Iterable[Path]) -> None:
    """Keep what was searched, how often, and what was seen."""
    for file in files:
        record = json.loads(file.read_text())
        record["hits"] = len(record["hits"])
        _write(KEPT / "searches" / f"{record['id']}.json", record)


def keep_figures(folder: Path) -> None:
    """Keep what was seen in the figures of a folder, and their pictures and films."""
    from attnflow.figures import RECIPES

    PICTURES.mkdir(parents=True, exist_ok=True)
    for file in sorted(folder.glob("*.json")):
        record = json.loads(file.read_text())
        numbers = record.pop("numbers")
        if RECIPES[record["name"]].model:
            record["model"] = numbers["model"]
        _write(KEPT / "figures" / file.name, record)
        for name in record["files"]:
            if name.endswith(".gif"):
                shutil.copy(folder / name, PICTURES / name)
        _shrink(folder / f"{record['name']}.png", PICTURES / f"{record['name']}.png")


def keep_mutants(file: Path) -> None:
    """Keep what each row of `attnflow check` said of each mistake."""
    _write(KEPT / "mutants" / "checks.json", json.loads(file.read_text()))


def _shrink(source: Path, target: Path) -> None:
    """A picture as wide as a page needs it, with few colours."""
    picture = Image.open(source).convert("RGB")
    picture.thumbnail((WIDEST, 10 * WIDEST))
    few_colours(picture).save(target, optimize=True)


def _write(path: Path, record: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")


def kept(kind: str, order: Iterable[str]) -> list[dict[str, Any]]:
    """What is kept of a kind, in the order of the library's table."""
    found = {path.stem: path for path in (KEPT / kind).glob("*.json")}
    return [json.loads(found[name].read_text()) for name in order if name in found]


def pages() -> dict[Path, str]:
    """The pages, as what is kept has them now."""
    from attnflow.figures import RECIPES
    from attnflow.theory.checks import CHECKS
    from attnflow.theory.search import QUESTIONS

    figures = [row | {"shows": RECIPES[row["name"]].shows} for row in kept("figures", RECIPES)]
    found = claims.Measured(
        checks=kept("checks", CHECKS),
        searches=kept("searches", QUESTIONS),
        figures=figures,
        questions=QUESTIONS,
    )
    missing = [name for name in RECIPES if name not in {one["name"] for one in figures}]
    tried = {
        path.stem: json.loads(path.read_text())
        for path in sorted((KEPT / "mutants").glob("*.json"))
    }
    return {
        DOCS / "claims.md": claims.page(found, missing),
        DOCS / "gallery.md": gallery.page(figures, missing),
        DOCS / "mutants.md": mistakes.page(tried),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Keep what is given, then write the pages."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--checks", type=Path, help="what `attnflow check --json` wrote")
    parser.add_argument("--searches", type=Path, nargs="*", default=[], help="of `attnflow search`")
    parser.add_argument("--figures", type=Path, help="the folder of `attnflow figures --out`")
    parser.add_argument("--mutants", type=Path, help="what `tests/killed.py` wrote")
    given = parser.parse_args(arguments)
    if given.checks:
        keep_checks(given.checks)
    keep_searches(given.searches)
    if given.figures:
        keep_figures(given.figures)
    if given.mutants:
        keep_mutants(given.mutants)
    for path, text in pages().items():
        path.write_text(text)
        print(path.relative_to(DOCS.parent))


if __name__ == "__main__":
    main()
