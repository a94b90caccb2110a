"""Many figures at once, and the page that shows them."""

from __future__ import annotations

import html
import os
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from attnflow.checks import available_cores, require_count
from attnflow.errors import InputError
from attnflow.figures.export import RECIPES, FigureRecord, find, write
from attnflow.figures.recipe import Size
from attnflow.figures.trained import require_reader
from attnflow.files import atomic_write_text
from attnflow.records import read_record
from attnflow.retired import renamed_arguments
from attnflow.signals import shield_children

INDEX = "index.html"
BLAS_THREADS_VARIABLE = "OPENBLAS_NUM_THREADS"

STYLE = """
body { font: 16px/1.5 Georgia, serif; color: #222; max-width: 62rem }
body { margin: 2rem auto; padding: 0 1rem }
figure { margin: 0 0 3rem; border-top: 1px solid #ddd; padding-top: 1rem }
img { max-width: 100% } td, th { padding: 0 .8rem 0 0; text-align: left; font-size: .9rem }
.no { color: #b00020; font-weight: bold } .yes { color: #00693e } small { color: #666 }
"""


@renamed_arguments(tell="on_progress")
def gallery(
    names: Sequence[str],
    size: Size,
    folder: Path,
    *,
    workers: int | None = None,
    film: bool = True,
    on_progress: Callable[[str, FigureRecord | BaseException], None] | None = None,
) -> list[FigureRecord]:
    """Make figures in a folder, several at once, and a page that shows all figures in it.

    A figure that fails does not stop the others. Ctrl-C keeps the figures that are finished.

    Args:
        names: the names of recipes.
        size: `"quick"`, which takes seconds, or `"paper"`, with the sizes of the papers.
        folder: where the files go.
        workers: number of processes. By default one for each core.
        film: whether to make animations.
        on_progress: called with the name of each figure and the result, or the error.
    """
    recipes = [find(name) for name in names]
    if any(recipe.model for recipe in recipes):
        require_reader()
    workers = require_count(available_cores() if workers is None else workers, "workers")
    done = []
    try:
        with closing(_made(names, size, folder, min(workers, len(names)), film)) as made:
            for name, outcome in made:
                if isinstance(outcome, FigureRecord):
                    done.append(outcome)
                if on_progress is not None:
                    on_progress(name, outcome)
                write_index(folder)
    except KeyboardInterrupt:
        write_index(folder)
        raise
    order = list(names)
    return sorted(done, key=lambda written: order.index(written.name))


def _made(
    names: Sequence[str], size: Size, folder: Path, workers: int, film: bool
) -> Generator[tuple[str, Any], None, None]:
    if workers == 1:
        for name in names:
            try:
                yield name, write(name, size, folder, film)
            except Exception as error:  # reported; the other figures continue
                yield name, error
        return
    with _pool(workers) as pool:
        with shield_children():
            asked: dict[Future[FigureRecord], str] = {
                pool.submit(write, name, size, folder, film): name for name in names
            }
        lost = []
        for future in as_completed(asked):
            if isinstance(future.exception(), BrokenProcessPool):
                lost.append(asked[future])
            else:
                yield asked[future], future.exception() or future.result()
    for name in lost:  # a process died, and with it the figures that had not started
        with _pool(1) as pool:
            with shield_children():
                alone = pool.submit(write, name, size, folder, film)
            yield name, alone.exception() or alone.result()


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Spawned processes, because JAX does not survive a fork; pending work is dropped at the end.

    Each has one BLAS thread. With more threads than cores they spin while they wait for each
    other: eigenvalues of 128 × 128 matrices took fifteen times as long.
    """
    before = os.environ.get(BLAS_THREADS_VARIABLE)
    os.environ[BLAS_THREADS_VARIABLE] = before or "1"
    context = get_context("spawn")
    end, ours = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_end_with, initargs=(end,))
    try:
        yield pool
    except BaseException:
        ours.close()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        ours.close()
        if before is None:
            del os.environ[BLAS_THREADS_VARIABLE]


def _end_with(end: Connection) -> None:
    """End this process when the other end of a pipe is closed, as it is when its parent dies.

    Otherwise processes whose parent was killed would run forever.
    """

    def watch() -> None:
        wait([end])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def write_index(folder: Path) -> Path:
    """Write a page with all finished figures of a folder, in the order of the recipes."""
    records = (folder / f"{name}.json" for name in RECIPES)
    parts = [_part(record) for record in records if record.exists()]
    page = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>attnflow: figures</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style>'
        f"<h1>Figures</h1>{''.join(parts)}</html>\n"
    )
    path = folder / INDEX
    if folder.is_dir():
        atomic_write_text(path, page)
    return path


def _part(path: Path) -> str:
    """A figure on the page, or a note that its record is damaged.

    Another process may be remaking the figure and have removed its record.
    """
    try:
        return _entry(read_record(path, FigureRecord, "record of a figure"))
    except (InputError, KeyError, TypeError, ValueError):
        said = f'<p class="no">{path.name} is damaged: make {path.stem} again.</p>'
        return said if path.exists() else ""


def _entry(written: FigureRecord) -> str:
    name, said, source, size = (
        html.escape(word) for word in (written.name, written.shows, written.source, written.size)
    )
    rows = "".join(_row(quantity) for quantity in written.seen)
    files = (html.escape(file) for file in [*written.files, f"{written.name}.json"])
    links = " · ".join(f'<a href="{file}">{file}</a>' for file in files)
    return (
        f'<figure id="{name}"><h2>{name} <small>{source}, '
        f"{size} size, {written.seconds:.0f} s</small></h2>"
        f'<img src="{name}.png" alt="{said}"><figcaption><p>{said}</p>'
        f"<table>{rows}</table><small>{links}</small></figcaption></figure>"
    )


def _row(quantity: dict[str, Any]) -> str:
    verdict = '<td class="yes">seen</td>' if quantity["holds"] else '<td class="no">not seen</td>'
    measured, bound = (_number(value) for value in (quantity["measured"], quantity["bound"]))
    name, sense = (html.escape(str(quantity[key])) for key in ("name", "sense"))
    return f"<tr><td>{name}</td><td>{measured}</td><td>{sense} {bound}</td>{verdict}</tr>"


def _number(value: float | str) -> str:
    return html.escape(value) if isinstance(value, str) else f"{value:.4g}"
