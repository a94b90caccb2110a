"""`attnflow bench`: attnflow next to the alternatives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.status import Status

from attnflow.cli.shared import Guard, bold, check_output, console, stop_code

if TYPE_CHECKING:
    from attnflow.bench import Outcome, Results, Row
    from attnflow.bench.tables import Grid


def bench(
    only: Annotated[
        list[str] | None, typer.Option(help="Measure only this row; can be repeated.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small sizes: takes a minute, judges no targets.")
    ] = False,
    attempts: Annotated[
        int, typer.Option(help="Repeat a row up to this often while other programs disturb it.")
    ] = 1,
    out: Annotated[Path, typer.Option(help="File for the picture of time against n.")] = Path(
        "attnflow-bench.png"
    ),
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Also write the numbers to this file.")
    ] = None,
    show_list: Annotated[bool, typer.Option("--list", help="List all rows and stop.")] = False,
) -> None:
    """Compare attnflow with PyTorch, KeOps, NumPy and plain JAX, and judge its targets.

    Contenders that are not installed are skipped: `pip install "attnflow[bench]"` installs them.
    Ctrl-C keeps what was measured.

    Example: `attnflow bench --only d3 --only ensemble --json bench.json`
    """
    with Guard():
        if show_list:
            _list_rows()
        else:
            _bench(only or [], quick, attempts, out, json_file)


def _list_rows() -> None:
    from attnflow.bench import ROWS

    for row in ROWS:
        console.print(f"[bold]{row.name:<16}[/]{row.title}", soft_wrap=True)


def _bench(only: list[str], quick: bool, attempts: int, out: Path, json_file: Path | None) -> None:
    import jax

    from attnflow.bench import Results, select_rows, this_machine
    from attnflow.checks import require_count

    require_count(attempts, "attempts")
    check_output(out, {".png", ".pdf", ".svg"})
    check_output(json_file)
    rows = [row.quick() for row in select_rows(only)] if quick else select_rows(only)
    jax.config.update("jax_enable_compilation_cache", False)
    outcomes: list[Outcome] = []
    code = 0
    console.print(f"{this_machine()}\n", soft_wrap=True)
    try:
        for outcome in _measured(rows, attempts):
            outcomes.append(outcome)
            _show(outcome)
    except KeyboardInterrupt:
        console.print(f"[bold red]stopped[/] after {len(outcomes)} of {len(rows)} rows.")
        code = stop_code()
    _write_results(Results(this_machine(), quick, outcomes), out, json_file)
    raise typer.Exit(code)


def _measured(rows: list[Row], attempts: int) -> Iterator[Outcome]:
    """Measure one row after another, and show what is being measured."""
    from attnflow.bench import measure_undisturbed

    for k, row in enumerate(rows, start=1):
        heading = f"[bold]{row.name}[/] ({k} of {len(rows)})"
        with console.status(heading) as status:

            def on_progress(text: str, heading: str = heading, status: Status = status) -> None:
                status.update(f"{heading} · {text}")

            outcome = measure_undisturbed(row, attempts, on_progress)
        yield outcome


def _show(outcome: Outcome) -> None:
    """Print a row's table, and a warning if the machine was busy with something else."""
    from attnflow.bench import tables

    grid = tables.of_curves if outcome.name == "growth" else tables.of_entries
    _print(grid(outcome))
    if outcome.disturbed:
        console.print(
            f"[yellow]Other programs used {outcome.others:.1f} cores meanwhile: "
            "do not trust these numbers.[/]"
        )
    console.print()


def _print(grid: Grid) -> None:
    console.print(f"[bold]{grid.title}[/]", soft_wrap=True)
    console.print(grid.rich())


def _write_results(results: Results, out: Path, json_file: Path | None) -> None:
    """Print the targets and write the files."""
    from attnflow.bench import plot, tables

    if results.quick:
        console.print("Small sizes (--quick): targets are not judged.")
    elif any(outcome.verdicts for outcome in results.outcomes):
        _print(tables.of_targets(results, lambda outcome: outcome.name))
    written = []
    if json_file is not None:
        results.save(json_file)
        written.append(json_file)
    if results.curves:
        plot.growth(results.curves, path=out)
        written.append(out)
    for path in written:
        console.print(f"wrote {bold(path)}", soft_wrap=True)
