"""`attnflow run`: simulate a system, report which clusters form and when, and draw it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from attnflow.cli.shared import (
    Guard,
    bold,
    check_output,
    check_place,
    console,
    mend_cache,
    stop_code,
)


def run(
    spec: Annotated[
        Path | None,
        typer.Argument(help="A TOML spec. By default SA on S² with n = 64, β = 9."),
    ] = None,
    out: Annotated[Path, typer.Option(help="File for the picture.")] = Path("attnflow-run.png"),
    gif: Annotated[
        Path | None, typer.Option(help="Also write an animation to this file.", metavar="FILE.gif")
    ] = None,
    store: Annotated[
        Path | None, typer.Option(help="Also save the trajectory in this Zarr store.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Also write the numbers to this file.")
    ] = None,
    show_list: Annotated[bool, typer.Option("--list", help="List all systems and stop.")] = False,
) -> None:
    """Simulate a system, report which clusters form and when, and draw it.

    Example: `attnflow run examples/circle.toml --out circle.png --gif circle.gif`
    """
    if show_list:
        _list_systems()
        return
    with Guard():
        mend_cache()
        _run(spec, out, gif, store, json_file)


def _run(
    spec: Path | None, out: Path, gif: Path | None, store: Path | None, json_file: Path | None
) -> None:
    from attnflow.errors import IncompleteRun, Interrupted
    from attnflow.simulation import simulate
    from attnflow.simulation.trajectory import require_replaceable
    from attnflow.spec import default_spec, read_spec

    for path, suffixes in ((out, {".png", ".pdf", ".svg"}), (gif, {".gif"})):
        check_output(path, suffixes)
    check_output(json_file)
    if store is not None:
        require_replaceable(store)
        check_place(store)
    wanted = default_spec() if spec is None else read_spec(spec)
    planned = wanted.build()
    code = 0
    try:
        trajectory = simulate(
            planned.system,
            planned.x0,
            planned.ts,
            method=planned.method,
            key=planned.key,
            progress=sys.stderr.isatty(),
        )
    except (IncompleteRun, Interrupted) as error:
        console.print(f"[bold red]stopped:[/] {escape(str(error))}", soft_wrap=True)
        trajectory, code = error.trajectory, stop_code() if isinstance(error, Interrupted) else 1
        if len(trajectory.ts) < 2:
            raise typer.Exit(code) from None
    _write_results(trajectory, wanted.title, out, gif, store, json_file)
    raise typer.Exit(code)


def _write_results(
    trajectory: Any,
    title: str | None,
    out: Path,
    gif: Path | None,
    store: Path | None,
    json_file: Path | None,
) -> None:
    """Print the report and write the requested files."""
    from attnflow.plot import animate, overview
    from attnflow.records import write_json
    from attnflow.report import summarise

    report = summarise(trajectory)
    _print_report(report, title)
    written = []
    if store is not None:
        written.append(trajectory.save(store))
    if json_file is not None:
        write_json(json_file, report.to_json())
        written.append(json_file)
    overview(trajectory, report, title=title, path=out)
    written.append(out)
    if gif is not None:
        written.append(animate(trajectory, report, path=gif))
    for path in written:
        console.print(f"wrote {bold(path)}", soft_wrap=True)


def _print_report(report: Any, title: str | None) -> None:
    heading = None if title is None else Text(title)
    table = Table(show_header=False, box=None, pad_edge=False, title=heading, title_justify="left")
    table.add_row("system", report.system)
    table.add_row("tokens", f"n = {report.n} in R^{report.d}")
    table.add_row("method", report.method)
    table.add_row("steps", f"{report.steps} ({report.rejected} rejected)")
    if report.sums_error is not None:
        exact = f"error of each mean below {report.sums_error:.1g} at the end"
        table.add_row("sums", f"through harmonics, {exact}")
    stairs = report.staircase
    shown = stairs if len(stairs) <= 12 else [*stairs[:2], None, *stairs[-9:]]
    steps = " → ".join("…" if s is None else f"{s[1]} (t = {s[0]:.3g})" for s in shown)
    table.add_row("clusters", f"{steps}, until t = {report.times[-1]:.4g}")
    table.add_row("", f"(tokens linked within {report.tolerance:.2g})")
    if report.energy is not None:
        table.add_row("energy", f"E_β: {report.energy[0]:.6g} → {report.energy[-1]:.6g}")
    if report.order is not None:
        table.add_row("order", f"r: {report.order[0]:.6g} → {report.order[-1]:.6g}")
    console.print(table)


def _list_systems() -> None:
    from attnflow.systems import SYSTEMS

    table = Table("system", "equation", "source")
    for name, system in SYSTEMS.items():
        table.add_row(name, system.equation, system.source)
    console.print(table)
