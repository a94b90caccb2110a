"""`attnflow sweep`: a phase diagram, on one machine or many."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from attnflow.cli.shared import (
    Guard,
    bold,
    check_output,
    console,
    mend_cache,
    stop_code,
)

if TYPE_CHECKING:
    from attnflow.sweep import Status, SweepProgress

PICTURES = {".png", ".pdf", ".svg"}
MAX_FAILURES_PRINTED = 5
"""Largest number of failures that are printed; all are in the store."""


def sweep(
    spec: Annotated[Path | None, typer.Argument(help="A TOML spec with [axes] and [keep].")] = None,
    store: Annotated[
        Path | None, typer.Option(help="The Zarr store; by default the spec's name with .zarr.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Compute with this many processes of a local Dask cluster.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Use the Dask cluster at this address (tcp://…).")
    ] = None,
    patience: Annotated[
        float | None,
        typer.Option(help="Restart workers if no block is done for this many seconds."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Also draw the phase diagram to this file.")
    ] = None,
    status: Annotated[
        Path | None, typer.Option(help="Show the progress of the sweep in this store, and stop.")
    ] = None,
    only_plan: Annotated[
        bool, typer.Option("--plan", help="Check the spec, show the size of the sweep, and stop.")
    ] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Also write the summary to this file.")
    ] = None,
) -> None:
    """Run a grid of systems with many realisations, and save observables in a Zarr store.

    The same command computes only what is missing. `attnflow.sweep.load` and `xarray.open_zarr`
    read the store.

    Example: `attnflow sweep examples/sweeps/circle.toml --out circle.png`
    """
    from attnflow.errors import InputError

    with Guard():
        check_output(json_file)
        check_output(out, PICTURES)
        stopped = False
        if status is not None:
            place = status
        elif spec is None:
            raise InputError("give a spec, such as examples/sweeps/circle.toml, or --status STORE.")
        elif only_plan:
            _plan(spec, json_file)
            return
        else:
            place = store or Path(spec.stem + ".zarr")
            stopped = _sweep(spec, place, workers, scheduler, patience)
            if stopped and not place.exists():
                raise KeyboardInterrupt
        found = _print_status(place, json_file)
        if out is not None and found.done:
            _draw(place, out)
    raise typer.Exit(stop_code() if stopped else 1 if found.failures else 0)


class _Rate(ProgressColumn):
    """Cells per second of this process."""

    def render(self, task: Task) -> Text:
        rate = task.fields["rate"]
        return Text(f"{rate:.3g} cells/s" if rate else "starting")


def _sweep(
    spec: Path, store: Path, workers: int | None, scheduler: str | None, patience: float | None
) -> bool:
    """Compute what is missing; returns whether it was stopped."""
    from attnflow import sweep
    from attnflow.spec import read_sweep

    described = read_sweep(spec)
    mend_cache()
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("cells"), _Rate())
    with Progress(*columns, TimeRemainingColumn(), console=console) as bar:
        task = bar.add_task("", total=None, rate=0.0, visible=False)

        def on_progress(progress: SweepProgress) -> None:
            rate = progress.done / max(time.monotonic() - progress.started, 1e-3)
            done = progress.before + progress.done
            bar.update(task, completed=done, total=progress.cells, rate=rate, visible=True)
            if progress.stopping and not stopping:
                stopping.append(progress.stopping)
                bar.console.print(
                    f"stopping after {progress.stopping} blocks in flight; "
                    "Ctrl-C again does not wait"
                )

        stopping: list[int] = []
        options = {"workers": workers, "scheduler": scheduler, "patience": patience}
        try:
            sweep.run(described, store, on_progress=on_progress, **options)  # type: ignore[arg-type]
        except KeyboardInterrupt:
            return True
    return False


def _plan(spec: Path, json_file: Path | None) -> None:
    from attnflow.records import write_json
    from attnflow.sweep import plan

    found = plan(spec)
    if json_file is not None:
        write_json(json_file, found)
    console.print(
        f"{found.cells:,} cells, {found.runs:,} runs in {found.tasks:,} tasks; "
        f"{found.compilations:,} to compile; at most {_amount(found.bytes)} in the store.",
        soft_wrap=True,
    )


def _print_status(store: Path, json_file: Path | None) -> Status:
    from attnflow import sweep
    from attnflow.records import write_json
    from attnflow.verdicts import described

    found = sweep.status(store)
    if json_file is not None:
        write_json(json_file, found)
    said = [f"{found.done} of {found.cells} cells, each of {found.realisations} runs"]
    if found.running:
        said.append("running")
    elif not found.complete:
        said.append("not running: the same command resumes from here")
    if found.seconds_since_last is not None and not found.complete:
        said.append(f"last written {_duration(found.seconds_since_last)} ago")
    if found.running and found.seconds_left is not None:
        said.append(f"{found.cells_per_second:.3g} cells/s, {_duration(found.seconds_left)} left")
    console.print(f"{bold(found.store)}: " + "; ".join(said) + ".", soft_wrap=True)
    for failure in found.failures[:MAX_FAILURES_PRINTED]:
        where = f"{failure['cells']} cells from {described(failure['cell'])}"
        console.print(f"[bold red]failed[/] {escape(where)}: ", end="", soft_wrap=True)
        console.print(failure["error"], markup=False, soft_wrap=True)
    if len(found.failures) > MAX_FAILURES_PRINTED:
        console.print(f"… and {len(found.failures) - MAX_FAILURES_PRINTED} more failures.")
    return found


def _duration(seconds: float | int) -> str:
    """Seconds for people.

    >>> _duration(5400)
    '1.5 h'
    """
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def _amount(size: float | int) -> str:
    """Bytes for people.

    >>> _amount(3_200_000)
    '3.2 MB'
    """
    for unit, bytes_ in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= bytes_:
            return f"{size / bytes_:.3g} {unit}"
    return f"{size} bytes"


def _draw(store: Path, out: Path) -> None:
    from attnflow.plot import sweep_diagram
    from attnflow.sweep import load

    sweep_diagram(load(store), out)
    console.print(f"picture: {bold(out)}", soft_wrap=True)
