"""Many figures at once, and the page that shows them."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from attnflow.checks import available_cores, require_count
from attnflow.figures.recipe import Size
from attnflow.figures.recipes import RECIPES
from attnflow.figures.written import Written, find, write
from attnflow.files import write_whole

INDEX = "index.html"
THREADS = "OPENBLAS_NUM_THREADS"

STYLE = """
body { font: 16px/1.5 Georgia, serif; color: #222; max-width: 62rem }
body { margin: 2rem auto; padding: 0 1rem }
figure { margin: 0 0 3rem; border-top: 1px solid #ddd; padding-top: 1rem }
img { max-width: 100% } td, th { padding: 0 .8rem 0 0; text-align: left; font-size: .9rem }
.no { color: #b00020; font-weight: bold } .yes { color: #00693e } small { color: #666 }
"""


def gallery(
    names: Sequence[str],
    size: Size,
    folder: Path,
    *,
    workers: int | None = None,
    film: bool = True,
    tell: Callable[[str, Written | BaseException], None] | None = None,
) -> list[Written]:
    """Make figures in a folder, several at once, and an index page of all that are there.

    `tell` hears of each one when it is done, or of the error that stopped it; the others go on.
    Interrupted, it keeps the figures that are finished. Each of `workers` is a process, by default
    one for each core.
    """
    for name in names:
        find(name)
    workers = require_count(available_cores() if workers is None else workers, "workers")
    done = []
    for name, outcome in _made(names, size, folder, min(workers, len(names)), film):
        if isinstance(outcome, Written):
            done.append(outcome)
        if tell is not None:
            tell(name, outcome)
        write_index(folder)
    order = list(names)
    return sorted(done, key=lambda written: order.index(written.name))


def _made(
    names: Sequence[str], size: Size, folder: Path, workers: int, film: bool
) -> Iterator[tuple[str, Any]]:
    if workers == 1:
        for name in names:
            try:
                yield name, write(name, size, folder, film)
            except Exception as error:  # told, and the others go on
                yield name, error
        return
    with _pool(workers) as pool:
        asked: dict[Future[Written], str] = {
            pool.submit(write, name, size, folder, film): name for name in names
        }
        for future in as_completed(asked):
            yield asked[future], future.exception() or future.result()


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Fresh processes, as JAX does not survive a fork; what has not begun is dropped at the end.

    Each has one thread of BLAS: where there are more threads than cores, they wait for each other
    busily, and eigenvalues of 128 × 128 matrices took fifteen times as long.
    """
    before = os.environ.get(THREADS)
    os.environ[THREADS] = before or "1"
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
        if before is None:
            del os.environ[THREADS]


def write_index(folder: Path) -> Path:
    """A page with every finished figure of a folder, in the order of the table of recipes."""
    found = {path.stem: path for path in folder.glob("*.json") if path.stem in RECIPES}
    parts = [_entry(json.loads(found[name].read_text())) for name in RECIPES if name in found]
    page = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>attnflow: figures</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style>'
        f"<h1>Figures</h1>{''.join(parts)}</html>\n"
    )
    path = folder / INDEX
    write_whole(path, page)
    return path


def _entry(record: dict[str, Any]) -> str:
    name, said = html.escape(record["name"]), html.escape(record["shows"])
    rows = "".join(_row(quantity) for quantity in record["seen"])
    links = " · ".join(
        f'<a href="{file}">{file}</a>' for file in [*record["files"], f"{name}.json"]
    )
    return (
        f'<figure id="{name}"><h2>{name} <small>{html.escape(record["source"])}, '
        f"{record['size']} size, {record['seconds']:.0f} s</small></h2>"
        f'<img src="{name}.png" alt="{said}"><figcaption><p>{said}</p>'
        f"<table>{rows}</table><small>{links}</small></figcaption></figure>"
    )


def _row(quantity: dict[str, Any]) -> str:
    verdict = '<td class="yes">seen</td>' if quantity["holds"] else '<td class="no">not seen</td>'
    measured, bound = (_number(quantity[key]) for key in ("measured", "bound"))
    name = html.escape(quantity["name"])
    return (
        f"<tr><td>{name}</td><td>{measured}</td><td>{quantity['sense']} {bound}</td>{verdict}</tr>"
    )


def _number(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"
