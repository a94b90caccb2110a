"""The page: its frame and its parts."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, dcc, html, no_update

from attnflow._version import __version__
from attnflow.explore import flow, model, phase, theorems
from attnflow.explore.jobs import Jobs
from attnflow.explore.layout import aria
from attnflow.explore.safety import protect

PARTS: dict[str, tuple[str, Any]] = {
    "/": ("Flow", flow),
    "/phase": ("Phase diagram", phase),
    "/theorems": ("Theorems", theorems),
    "/model": ("Model", model),
}
"""The parts of the page by their address: a name, and a module with `layout` and `connect`."""


def create_app(folder: Path, jobs: Jobs | None = None, host: str = "127.0.0.1") -> Dash:
    """The web app, ready to be served.

    Args:
        folder: the folder with stores of sweeps and with models.
        jobs: the computations behind the page; new by default.
        host: the address that it will be served at.
    """
    app = Dash(
        "attnflow",
        assets_folder=str(Path(__file__).parent / "assets"),
        title="attnflow explore",
        update_title="",
        serve_locally=True,
        suppress_callback_exceptions=True,
    )
    app.index_string = app.index_string.replace("<html>", '<html lang="en">')
    app.layout = _layout
    jobs = jobs or Jobs()

    @app.callback(
        Output("part", "children"),
        Output("shown-url", "data"),
        Input("url", "pathname"),
        Input("url", "search"),
        State("shown-url", "data"),
    )
    def _show(pathname: str, search: str | None, shown: str | None) -> Any:
        """Show the part at an address, unless the page itself wrote the address."""
        here = f"{pathname}{search or ''}"
        if here == shown:
            return no_update, no_update
        if pathname not in PARTS:
            return html.P(f"There is no page {pathname} here.", role="alert"), here
        return PARTS[pathname][1].layout(search or "", folder), here

    app.clientside_callback(
        ClientsideFunction("explore", "links"),
        *[Output(f"to-{path}", "href") for path in PARTS],
        Input("url", "pathname"),
        Input("url", "search"),
    )

    app.clientside_callback(
        ClientsideFunction("explore", "theme"),
        Output("page", "className"),
        Output("theme", "data"),
        Output("theme-switch", "children"),
        Input("theme-switch", "n_clicks"),
        State("theme", "data"),
    )
    for _, part in PARTS.values():
        part.connect(app, jobs, folder)
    protect(app, host)
    return app


def _layout() -> Any:
    """The frame of the page, with a new, unguessable name for each visitor."""
    links = [
        dcc.Link(name, href=path, id=f"to-{path}", className="to-part")
        for path, (name, _) in PARTS.items()
    ]
    return html.Div(
        [
            dcc.Location(id="url", refresh=False),
            dcc.Store(id="shown-url"),
            dcc.Store(id="visitor", data=secrets.token_urlsafe(18)),
            dcc.Store(id="theme", storage_type="local", data="light"),
            html.Header(
                [
                    html.Strong("attnflow", className="brand"),
                    html.Nav(links, **aria(label="Parts")),
                    html.Button("Dark", id="theme-switch", type="button"),
                ]
            ),
            html.Main(id="part"),
            html.Footer(f"attnflow {__version__}. Tokens are particles, layers are time."),
        ],
        id="page",
        className="light",
    )
