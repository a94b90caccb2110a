"""The player under tokens that move: play, pause, a slider through the moments, a speed."""

from __future__ import annotations

from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, ctx, dcc, html, no_update

from attnflow.explore.layout import aria, labelled

SPEEDS = ("½×", "1×", "2×", "4×")


def player(part: str) -> Any:
    """The controls of a view, and what the browser holds of its run: `{part}-frames`."""
    return html.Div(
        [
            html.Button("Play", id=f"{part}-play", type="button", className="play"),
            dcc.Slider(
                0,
                1,
                1,
                value=0,
                id=f"{part}-moment",
                marks=None,
                updatemode="drag",
                allow_direct_input=False,
            ),
            html.Output("", id=f"{part}-time-label", className="time-label"),
            html.Div(
                [
                    labelled("Speed", f"{part}-speed"),
                    dcc.Dropdown(SPEEDS, "1×", id=f"{part}-speed", clearable=False),
                ],
                className="speed",
            ),
            dcc.Store(id=f"{part}-frames"),
        ],
        className="player",
        role="group",
        **aria(label="Time"),
    )


def player_outputs(part: str) -> list[Output]:
    """What the player of a view is given when its run is drawn: the outputs of `player_values`."""
    return [
        Output(f"{part}-frames", "data"),
        Output(f"{part}-moment", "max"),
        Output(f"{part}-moment", "value"),
    ]


def player_values(part: str, frames: dict[str, Any], last: int) -> list[Any]:
    """The frames, their last moment, and the one to show: of a new run the first."""
    run = ctx.inputs[f"{part}-finished.data"]
    return [frames | {"run": run}, last, no_update if ctx.triggered_id == "theme" else 0]


def connect_player(app: Dash, part: str) -> None:
    """Let the browser move what `{part}-frames` holds, without asking the server."""
    app.clientside_callback(
        ClientsideFunction("explore", "move"),
        Output(f"{part}-time-label", "children"),
        Input(f"{part}-moment", "value"),
        Input(f"{part}-frames", "data"),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        ClientsideFunction("explore", "play"),
        Output(f"{part}-play", "children"),
        Input(f"{part}-play", "n_clicks"),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        ClientsideFunction("explore", "speed"),
        Output(f"{part}-speed", "id"),
        Input(f"{part}-speed", "value"),
    )
