"""The flow view: choose a system, run it, watch its tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, html, no_update

from attnflow.errors import InputError
from attnflow.explore import downloads, limits
from attnflow.explore.downloads import Download, connect_downloads, download_buttons
from attnflow.explore.form import (
    FAMILIES,
    MATRICES,
    METHODS,
    PRESETS,
    STARTS,
    Form,
    label_of,
    unused,
)
from attnflow.explore.frames import (
    MAX_TOKENS_ATTENTION,
    Frames,
    attention_system,
    run_flow,
    to_page,
)
from attnflow.explore.jobs import Jobs
from attnflow.explore.layout import (
    Field,
    choice,
    columns,
    ids,
    number,
    picture,
    picture_class,
    rows,
    warning,
    words,
)
from attnflow.explore.pictures import CAPTIONS, captions, side_figures, tokens_figure
from attnflow.explore.player import connect_player, player, player_outputs, player_values
from attnflow.explore.work import JobRequest, connect_figures, connect_job, controls, status_line
from attnflow.plot import screen
from attnflow.spec import toml_of
from attnflow.systems import SYSTEMS

PART = "flow"
DOWNLOADS = {
    "csv": Download(
        "Tokens as CSV", "attnflow-run.csv", lambda _, run: downloads.csv_of_run(run.trajectory)
    ),
    "zarr": Download(
        "Run as Zarr", "attnflow-run.zarr.zip", lambda _, run: downloads.zarr_of_run(run.trajectory)
    ),
    "spec": Download(
        "Spec for attnflow run", "attnflow-run.toml", lambda form, _: toml_of(form.spec())
    ),
}

FIELDS: dict[str, Field] = {
    "system": choice(PRESETS),
    "number": number(-1e4, 1e4, wait=0.1),
    "key": number(0, 2**31 - 1, 1),
    "n": number(1, limits.MAX_TOKENS, 1),
    "d": number(1, limits.MAX_DIMENSIONS, 1),
    "until": number(0, limits.MAX_TIME),
    "noise": number(0, limits.MAX_NOISE),
    "start": choice((*STARTS, "angles", "ellipsoid")),
    "method": choice(METHODS),
    "scores": choice(FAMILIES),
    "scores_typed": words(3, "1 0; 0 1"),
    "values": choice(FAMILIES),
    "values_typed": words(3, "1 0; 0 1"),
    "heads": number(1, limits.MAX_HEADS, 1),
}


OPTIONAL_FIELDS = ("number", "d", *MATRICES)
"""Fields that not every run has."""


def layout(search: str, folder: Path) -> Any:
    """The form at the left, tokens and what goes with them at the right."""
    try:
        form, said = Form.from_address(search), ""
    except InputError as error:
        form, said = Form(), str(error)
    left = [*rows(PART, FIELDS, form), *controls(PART, "Run")]
    right = [
        html.P(_equation(form.system), id="equation", className="equation"),
        *status_line(PART),
        warning(said),
        html.P(id="predicted", className="predicted"),
        html.Div(
            [
                picture(f"{PART}-tokens", "Tokens, coloured by their last cluster", "main"),
                *[picture(f"{PART}-{name}", text) for name, text in CAPTIONS.items()],
                player(PART),
            ],
            className="flow",
        ),
        *download_buttons(PART, DOWNLOADS),
    ]
    return columns("What is run", left, "Flow", right)


def connect(app: Dash, jobs: Jobs, folder: Path) -> None:
    """All that the view does. A new β, or K, or radius is run at once."""
    connect_job(app, jobs, PART, ids(PART, FIELDS), _begin, _summary, also=[f"{PART}-number"])
    connect_player(app, PART)
    connect_downloads(app, jobs, PART, f"{PART}-tokens", DOWNLOADS, _python)
    _fill_in(app)
    connect_figures(app, jobs, PART, _drawing(), _drawn)
    for name in ("scores", "values"):
        app.clientside_callback(
            ClientsideFunction("explore", "typedField"),
            Output(f"row-{PART}-{name}_typed", "className"),
            Input(f"{PART}-{name}", "value"),
        )


def _begin(values: list[Any]) -> JobRequest:
    form = Form.read(dict(zip(FIELDS, values, strict=True)))
    spec = form.build()
    spec.build()
    return JobRequest(form, lambda on_progress: run_flow(spec, on_progress), limits.MAX_SECONDS)


def _python(form: Form, _: Frames) -> str:
    return downloads.python_of_run(form.spec())


def _summary(frames: Frames) -> str:
    report = frames.report
    said = f"{report.n} tokens, {report.steps} steps with {_method(frames.trajectory.method)}; "
    said += f"{report.clusters[0]} clusters became {report.clusters[-1]}."
    if attention_system(frames.trajectory) is not None and report.n > MAX_TOKENS_ATTENTION:
        said += f" Attention is shown for {MAX_TOKENS_ATTENTION:,} tokens at most."
    return " ".join([said, frames.ended]).strip()


def _method(method: Any) -> str:
    """A method by its name, with the step of those that have one."""
    name = type(method).__name__
    return f"{name}, dt = {float(method.dt):.3g}" if hasattr(method, "dt") else name


def _equation(system: str) -> str:
    cls = SYSTEMS[system]
    return f"{cls.equation}    {cls.source}"


def _fill_in(app: Dash) -> None:
    @app.callback(
        *[Output(name, "value") for name in ids(PART, FIELDS)[1:]],
        Input(f"{PART}-system", "value"),
        prevent_initial_call=True,
    )
    def _preset(system: str) -> Any:
        """What belongs to a system, when one chooses it."""
        form = Form.preset(system).model_dump()
        return [form[name] for name in list(FIELDS)[1:]]

    @app.callback(
        Output("equation", "children"),
        Output(f"label-{PART}-number", "children"),
        *[Output(f"row-{PART}-{name}", "className") for name in OPTIONAL_FIELDS],
        Input(f"{PART}-system", "value"),
        Input(f"{PART}-start", "value"),
    )
    def _name(system: str, start: str) -> Any:
        """Its equation, what its number is called, and the fields that say something."""
        hidden = unused(system, start)
        shown = ["field hidden" if name in hidden else "field" for name in OPTIONAL_FIELDS]
        return [_equation(system), label_of(system), *shown]


def _drawing() -> list[Output]:
    """What `_drawn` gives."""
    return [
        *[Output(f"{PART}-{name}", "figure") for name in ("tokens", *CAPTIONS)],
        *[Output(f"box-{PART}-{name}", "className") for name in CAPTIONS],
        *[Output(f"caption-{PART}-{name}", "children") for name in CAPTIONS],
        *player_outputs(PART),
        Output("predicted", "children"),
    ]


def _drawn(frames: Frames, theme: screen.Theme) -> list[Any]:
    beside = side_figures(frames, theme)
    figures = [tokens_figure(frames, theme), *(figure or no_update for figure in beside)]
    shown = [picture_class("side", shown=figure is not None) for figure in beside]
    played = player_values(PART, to_page(frames), last=len(frames.report.times) - 1)
    return [*figures, *shown, *captions(frames), *played, frames.predicted]
