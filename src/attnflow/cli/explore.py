"""`attnflow explore`: a web page where one sees attention flow."""

from __future__ import annotations

import logging
import socket
import webbrowser
from pathlib import Path
from typing import Annotated, Any

import typer

from attnflow.cli.shared import Guard, console, keep_compiled_code

PORT = 8050
MAX_WAITING_REQUESTS = 128
"""Requests that may wait to be taken."""


def explore(
    folder: Annotated[
        Path, typer.Argument(help="Where stores of sweeps and folders of models are looked for.")
    ] = Path(),
    host: Annotated[
        str, typer.Option(help="The address to listen at; others than this one let others in.")
    ] = "127.0.0.1",
    port: Annotated[
        int | None,
        typer.Option(help=f"The port; without it {PORT}, or a free one.", min=1, max=65535),
    ] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Serve a page where tokens move, phase diagrams are made, and theorems are tried.

    Example: `attnflow explore --open`
    """
    with Guard():
        _explore(folder, host, port, open_page)


def _explore(folder: Path, host: str, port: int | None, open_page: bool) -> None:
    from attnflow.errors import InputError
    from attnflow.extras import import_optional

    import_optional("dash", "explore", "the page needs Dash")
    from werkzeug.serving import make_server

    from attnflow.explore import create_app
    from attnflow.explore.jobs import Jobs
    from attnflow.explore.safety import is_local

    if not folder.is_dir():
        raise InputError(f"folder: {folder} is no folder.")
    keep_compiled_code()
    # A page that watches its work asks several times a second.
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    with _listening(host, port) as listening:
        jobs = Jobs()
        app = create_app(folder, jobs, host)
        at = listening.getsockname()[1]
        server: Any = make_server(host, at, app.server, threaded=True, fd=listening.fileno())
        address = f"http://{f'[{host}]' if ':' in host else host}:{at}/"
        console.print(f"attnflow explore is at [bold]{address}[/], until Ctrl-C", soft_wrap=True)
        if not is_local(host):
            console.print(
                f"[yellow]warning:[/] {host} lets in everyone who can reach this machine: they can "
                "compute here and see the stores and models of the folder.",
                soft_wrap=True,
            )
        if open_page:
            webbrowser.open(address)
        try:
            server.serve_forever()
        finally:
            console.print("closing")
            jobs.close()


def _listening(host: str, port: int | None) -> socket.socket:
    """A socket at the port; without one at the usual port, or at any that is free."""
    from attnflow.errors import InputError

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for at in (PORT, 0) if port is None else (port,):
        try:
            return socket.create_server((host, at), family=family, backlog=MAX_WAITING_REQUESTS)
        except OSError as error:
            why = str(error.strerror).partition(" (while")[0]
        except (TypeError, ValueError):  # of a name that cannot be one
            why = "this is no address"
    raise InputError(f"host or port: {host}:{port or PORT} cannot be listened at: {why}.")
