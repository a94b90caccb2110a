"""`attnflow check`: do the theorems hold for what is simulated here?"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from attnflow.cli.shared import (
    Guard,
    bold,
    check_output,
    console,
    mend_cache,
    renamed_option,
    stop_code,
)
from attnflow.cli.threads import one_blas_thread

if TYPE_CHECKING:
    from attnflow.theory.checks import Check, Outcome

QUICK_COMPILATION = "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=0"
"""Flags of XLA: runs of checks are short, and without optimisation they compile in half the time.
"""

COLOURS = {"holds": "green", "fails": "bold red", "unresolved": "yellow"}


def check(
    ids: Annotated[
        list[str] | None, typer.Argument(help="Theorems to check, such as T3.1; all by default.")
    ] = None,
    key: Annotated[int, typer.Option(help="Other keys draw other starts and weights.")] = 0,
    seed: Annotated[str | None, renamed_option("--key")] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also show every draw that does not hold.")
    ] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Also write every draw to this file.")
    ] = None,
    show_list: Annotated[bool, typer.Option("--list", help="List all checks and stop.")] = False,
) -> None:
    """Verify theorems: draw systems that meet the hypothesis, run them, measure the conclusion.

    Every run is also compared with SciPy's solution of the equation as the papers write it, so a
    verdict tells which of the two failed, the equation or the theorem. A bound that no run comes
    near is marked as vacuous. A draw that does not settle within the time is unresolved, and a
    statement with more than a quarter of unresolved draws does not hold.

    Exits with 1 if a proven statement does not hold, or if a run does not solve its equation. A
    contradicted conjecture is reported, but it is not a failure.

    Example: `attnflow check T3.1 T4.1 --key 7 --json checks.json`
    """
    with Guard():
        if show_list:
            _list_checks()
        else:
            _check(ids or [], key, verbose, json_file)


def _list_checks() -> None:
    from attnflow.theory.checks import CHECKS

    table = Table("id", "source", "hypothesis", "conclusion")
    for row in CHECKS.values():
        name = "\n".join((row.id, *(f"({alias})" for alias in row.aliases)))
        table.add_row(name, row.source, row.hypothesis, row.conclusion)
    console.print(table)


def _check(ids: list[str], key: int, verbose: bool, json_file: Path | None) -> None:
    os.environ.setdefault("XLA_FLAGS", QUICK_COMPILATION)  # JAX reads it when it first computes
    from attnflow.records import write_json
    from attnflow.theory.checks import CHECKS, find

    check_output(json_file)
    rows = list(dict.fromkeys(find(name) for name in ids)) or list(CHECKS.values())
    mend_cache()
    outcomes: list[Outcome] = []
    stopped = False
    try:
        with one_blas_thread():
            for outcome in _outcomes(rows, key):
                outcomes.append(outcome)
                _show(outcome, verbose)
    except KeyboardInterrupt:
        stopped = True
        console.print(f"[bold red]stopped[/] after {len(outcomes)} of {len(rows)} checks.")
    if json_file is not None:
        write_json(json_file, [outcome.to_json() for outcome in outcomes])
        console.print(f"wrote {bold(json_file)}", soft_wrap=True)
    failed = _print_failed(outcomes)
    raise typer.Exit(stop_code() if stopped else int(failed))


def _outcomes(rows: list[Check], key: int) -> Iterator[Outcome]:
    """The outcomes, one after another, with a progress bar."""
    from attnflow.theory.checks import check

    bar = Progress(
        TextColumn("{task.description:<8}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    with bar:
        task = bar.add_task("", total=len(rows))
        for row in rows:
            bar.update(task, description=row.id)
            yield check(row.id, key=key)
            bar.advance(task)


def _show(outcome: Outcome, verbose: bool) -> None:
    """A heading with the verdict, the statement, and a row for every quantity."""
    row, counts = outcome.check, outcome.counts
    verdict = f"[{COLOURS[outcome.verdict]}]{outcome.said}[/]"
    shown = f", {counts['fails']} failed" if counts["fails"] else ""
    shown += f", {counts['unresolved']} unresolved" if counts["unresolved"] else ""
    console.print(
        f"[bold]{row.id}[/]  {verdict} in {counts['holds']} of {len(outcome.draws)} draws{shown}"
        f"  [dim]{row.source}, {outcome.seconds:.1f} s[/]"
    )
    console.print(Padding(f"{row.hypothesis} → {row.conclusion} [dim]({row.settings})[/]", (0, 2)))
    table = Table(box=None, pad_edge=False, show_header=False, width=min(console.width, 100))
    table.add_column(ratio=1)
    for width in (10, 12, 16):
        table.add_column(justify="right", no_wrap=True, width=width)
    for q in outcome.worst:
        margin = "vacuous" if q.vacuous else f"margin {q.margin:.2g}"
        table.add_row(f"    {q.name}", f"{q.value:.3g}", f"{q.sense} {q.bound:.3g}", margin)
    console.print(table)
    if verbose:
        _print_draws(outcome)
    console.print()


def _print_draws(outcome: Outcome) -> None:
    for draw in outcome.draws:
        if draw.verdict == "holds":
            continue
        numbers = [f"{q.name}: {q.value:.3g}, not {q.sense} {q.bound:.3g}" for q in draw.missed]
        why = "; ".join(numbers) or draw.unresolved
        console.print(f"    {draw.verdict}: {draw.label}: {why}", soft_wrap=True)


def _print_failed(outcomes: list[Outcome]) -> bool:
    failed = [o.check.id for o in outcomes if o.wrong]
    proven = sum(o.check.proven for o in outcomes)
    holding = sum(o.check.proven and not o.wrong for o in outcomes)
    seconds = sum(o.seconds for o in outcomes)
    console.print(
        f"{holding} of {proven} statements hold ({seconds:.0f} s)."
        + (f" [bold red]Not: {', '.join(failed)}.[/]" if failed else ""),
        soft_wrap=True,
    )
    return bool(failed)
