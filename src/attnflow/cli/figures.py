"""`attnflow figures`: reproduce the figures of the papers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn
from rich.table import Table

from attnflow.cli.shared import Guard, bold, check_output, check_place, console, stop_code

if TYPE_CHECKING:
    from attnflow.figures import FigureRecord, Size


def figures(
    names: Annotated[
        list[str] | None, typer.Argument(help="Figures to make, such as E-fig1, or `all`.")
    ] = None,
    size: Annotated[
        str, typer.Option(help="`quick` takes seconds, `paper` uses the sizes of the papers.")
    ] = "quick",
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("figures"),
    workers: Annotated[
        int | None, typer.Option(help="Figures to make at once; by default one for each core.")
    ] = None,
    film: Annotated[bool, typer.Option(help="Also make the animations.")] = True,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Also write what was seen to this file.")
    ] = None,
    show_list: Annotated[bool, typer.Option("--list", help="List all figures and stop.")] = False,
) -> None:
    """Make figures of the papers: each with its numbers, and checks of what it must show.

    Each figure is a PNG, a PDF and a JSON file; index.html shows them all. Exits with 1 if a
    figure does not show what it must.

    Example: `attnflow figures all --size quick --out figures`
    """
    with Guard():
        if show_list or not names:
            _list_figures()
        else:
            _figures(names, size, out, workers, film, json_file)


def _list_figures() -> None:
    from attnflow.figures import RECIPES

    table = Table("name", "source", "what must be seen")
    for recipe in RECIPES.values():
        table.add_row(recipe.name, recipe.source, recipe.shows)
    console.print(table)


def _figures(
    names: list[str],
    size: str,
    out: Path,
    workers: int | None,
    film: bool,
    json_file: Path | None,
) -> None:
    from attnflow.errors import InputError, unknown
    from attnflow.figures import RECIPES, SIZES, find, gallery
    from attnflow.figures.gallery import INDEX
    from attnflow.records import write_json

    check_output(json_file)
    check_place(out / INDEX if out.is_dir() else out)
    if out.exists() and not out.is_dir():
        raise InputError(f"--out: {out} is a file, not a folder.")
    if size not in SIZES:
        raise unknown("size", size, SIZES)
    chosen = list(RECIPES) if names == ["all"] else [find(name).name for name in names]
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    failed, stopped, done = False, False, []
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=len(chosen))

        def on_progress(name: str, outcome: FigureRecord | BaseException) -> None:
            nonlocal failed
            bar.advance(task)
            failed |= _print_outcome(name, outcome)
            if not isinstance(outcome, BaseException):
                done.append(outcome)

        try:
            gallery(chosen, _sized(size), out, workers=workers, film=film, on_progress=on_progress)
        except KeyboardInterrupt:
            stopped = True
            console.print(f"[bold red]stopped[/] after {len(done)} of {len(chosen)} figures.")
    if json_file is not None:
        write_json(json_file, done)
    console.print(f"{len(done)} figures in {bold(out)}: {bold(out / INDEX)}", soft_wrap=True)
    raise typer.Exit(stop_code() if stopped else int(failed))


def _sized(size: str) -> Size:
    return "paper" if size == "paper" else "quick"


def _print_outcome(name: str, outcome: FigureRecord | BaseException) -> bool:
    """Print an outcome; returns whether the figure failed or does not show what it must."""
    from attnflow.errors import sentence

    if isinstance(outcome, BaseException):
        console.print(f"[bold red]failed[/] {name}: ", end="", soft_wrap=True)
        console.print(sentence(outcome), markup=False, soft_wrap=True)
        return True
    word = "[green]seen[/]" if outcome.holds else "[bold red]not seen[/]"
    console.print(f"[bold]{name}[/]  {word}  [dim]{outcome.source}, {outcome.seconds:.1f} s[/]")
    for q in outcome.seen:
        if not q["holds"]:
            said = f"    {q['name']}: {q['measured']}, not {q['sense']} {q['bound']}"
            console.print(said, markup=False, soft_wrap=True)
    return not outcome.holds
