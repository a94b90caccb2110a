"""`attnflow explore`: a web page that shows attention as a flow."""

from __future__ import annotations

import logging
import socket
import webbrowser
from pathlib import Path
from typing import Annotated, Any

import typer

from attnflow.cli.shared import Guard, console, mend_cache

PORT = 8050
MAX_WAITING_REQUESTS = 128
"""Requests that may wait in the queue."""


def explore(
    folder: Annotated[
        Path, typer.Argument(help="Folder with stores of sweeps and with models.")
    ] = Path(),
    host: Annotated[
        str, typer.Option(help="Address to listen on; any but the default admits other machines.")
    ] = "127.0.0.1",
    port: Annotated[
        int | None,
        typer.Option(help=f"The port; by default {PORT}, or a free one.", min=1, max=65535),
    ] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Serve a page to watch tokens move, draw phase diagrams and test theorems.

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
        raise InputError(f"folder: {folder} is not a folder.")
    mend_cache()
    # A page that follows a computation asks several times a second.
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
                f"[yellow]warning:[/] {host} admits everyone who can reach this machine: they can "
                "run computations and see the stores and models in the folder.",
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
    """A socket on the port; by default on the usual port, or on any free one."""
    from attnflow.errors import InputError

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for at in (PORT, 0) if port is None else (port,):
        try:
            return socket.create_server((host, at), family=family, backlog=MAX_WAITING_REQUESTS)
        except OSError as error:
            # create_server adds the address to the system's words, which is named already.
            why = getattr(error.__context__, "strerror", None) or error.strerror
        except (TypeError, ValueError):  # for a malformed name
            why = "this is not an address"
    raise InputError(f"host or port: cannot listen on {host}:{port or PORT}: {why}.")
