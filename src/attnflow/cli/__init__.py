"""The command line: `attnflow run …`, `attnflow bench …`. One module for each command."""

from __future__ import annotations

from typing import Annotated

import typer

from attnflow._version import __version__
from attnflow.cli.bench import bench
from attnflow.cli.check import check
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
    if version:
        console.print(f"attnflow {__version__}")
        raise typer.Exit


for command in (run, check, search, figures, sweep, model, bench):
    app.command()(command)
