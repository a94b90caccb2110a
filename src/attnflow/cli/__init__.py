"""The command line: `attnflow run …`, `attnflow bench …`. One module for each command."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import Annotated

import typer

from attnflow._version import __version__
from attnflow.cli.bench import bench
from attnflow.cli.check import check
from attnflow.cli.explore import explore
from attnflow.cli.figures import figures
from attnflow.cli.model import model
from attnflow.cli.run import run
from attnflow.cli.search import search
from attnflow.cli.shared import console
from attnflow.cli.sweep import sweep

app = typer.Typer(
    help="Transformers as interacting particle systems: tokens are particles, layers are time.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def main(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Transformers as interacting particle systems: tokens are particles, layers are time."""
    # A file name may contain bytes that are not valid text.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    if version:
        console.print(f"attnflow {__version__}")
        raise typer.Exit


def run_command() -> None:
    """The command `attnflow`. After a failure it does not wait for threads still computing."""
    try:
        app()
    except SystemExit as end:
        if isinstance(end.code, int) and end.code:
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError):
                    stream.flush()
            os._exit(end.code)
        raise


for command in (run, check, search, figures, sweep, model, explore, bench):
    app.command()(command)
