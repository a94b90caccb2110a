"""`attnflow sweep`: a phase diagram, on one machine or many."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
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

from attnflow.cli.shared import Guard, check_output, console, keep_compiled_code

if TYPE_CHECKING:
    from attnflow.sweep import Status, Tally

PICTURES = {".png", ".pdf", ".svg"}
SHOWN = 5
"""So many failures are printed; all are in the store."""


def sweep(
    spec: Annotated[Path | None, typer.Argument(help="A TOML spec with [axes] and [keep].")] = None,
    store: Annotated[
        Path | None, typer.Option(help="The Zarr store; by default the spec's name with .zarr.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Compute with so many processes of a local Dask cluster.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Use the Dask cluster at this address (tcp://…).")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Also draw the phase diagram to this file.")
    ] = None,
    status: Annotated[
        Path | None, typer.Option(help="Say how the sweep of this store stands, and stop.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Also write the summary to this file.")
    ] = None,
) -> None:
    """Run a grid of systems with many realisations, and keep observables in a Zarr store.

    The same command again computes only what is missing. `attnflow.sweep.load` and
    `xarray.open_zarr` read the store.

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
        else:
            place = store or Path(spec.stem + ".zarr")
            stopped = _sweep(spec, place, workers, scheduler)
        found = _tell(place, json_file)
        if out is not None and found.done:
            _draw(place, out)
    raise typer.Exit(130 if stopped else 1 if found.failures else 0)


class _Rate(ProgressColumn):
    """Cells per second of this process."""

    def render(self, task: Task) -> Text:
        rate = task.fields["rate"]
        return Text(f"{rate:.3g} cells/s" if rate else "starting")


def _sweep(spec: Path, store: Path, workers: int | None, scheduler: str | None) -> bool:
    """Compute what is missing; whether it was stopped."""
    from attnflow import sweep
    from attnflow.spec import read_sweep

    described = read_sweep(spec)
    keep_compiled_code()
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("cells"), _Rate())
    with Progress(*columns, TimeRemainingColumn(), console=console) as bar:
        task = bar.add_task("", total=None, rate=0.0)

        def tell(tally: Tally) -> None:
            rate = tally.done / (time.monotonic() - tally.begun)
            bar.update(task, completed=tally.before + tally.done, total=tally.cells, rate=rate)

        try:
            sweep.run(described, store, workers=workers, scheduler=scheduler, tell=tell)
        except KeyboardInterrupt:
            return True
    return False


def _tell(store: Path, json_file: Path | None) -> Status:
    from attnflow import sweep
    from attnflow.theory.checks.base import described

    found = sweep.status(store)
    if json_file is not None:
        json_file.write_text(json.dumps(asdict(found), indent=2) + "\n")
    said = [f"{found.done} of {found.cells} cells, each of {found.realisations} runs"]
    if found.running:
        said.append("running")
    elif not found.complete:
        said.append("not running: the same command goes on from here")
    if found.seconds_since_last is not None and not found.complete:
        said.append(f"last written {_duration(found.seconds_since_last)} ago")
    if found.running and found.seconds_left is not None:
        said.append(f"{found.cells_per_second:.3g} cells/s, {_duration(found.seconds_left)} left")
    console.print(f"[bold]{found.store}[/]: " + "; ".join(said) + ".", soft_wrap=True)
    for failure in found.failures[:SHOWN]:
        where = f"{failure['cells']} cells from {described(failure['cell'])}"
        console.print(f"[bold red]failed[/] {where}: ", end="", soft_wrap=True)
        console.print(failure["error"], markup=False, soft_wrap=True)
    if len(found.failures) > SHOWN:
        console.print(f"… and {len(found.failures) - SHOWN} more failures.")
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


def _draw(store: Path, out: Path) -> None:
    from attnflow.plot import sweep_diagram
    from attnflow.sweep import load

    sweep_diagram(load(store), out)
    console.print(f"picture: {out}", soft_wrap=True)
