"""The flow view: choose a system, run it, watch its tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, ctx, html, no_update

from attnflow.errors import InputError
from attnflow.explore import exports, limits
from attnflow.explore.fields import Field, choice, ids, number, rows, words
from attnflow.explore.form import FAMILIES, METHODS, STARTS, Form
from attnflow.explore.frames import Frames, run_flow, to_page
from attnflow.explore.jobs import Jobs
from attnflow.explore.pictures import side_figures, tokens_figure
from attnflow.explore.player import connect_player, player
from attnflow.explore.presets import PRESETS, label_of
from attnflow.explore.saving import Saved, connect_saving, shelf
from attnflow.explore.stage import boxed, columns, picture, warning
from attnflow.explore.work import Begun, connect_work, desk, done, voice
from attnflow.spec import toml_of
from attnflow.systems import SYSTEMS

PART = "flow"
SIDE = {
    "attention": "Attention, tokens in the order of their clusters",
    "overlaps": "Overlaps of all pairs",
    "energy": "Energy along time",
    "clusters": "Clusters along time",
}
SAVED = {
    "csv": Saved("Tokens as CSV", "attnflow-run.csv", lambda _, run: exports.table(run.trajectory)),
    "zarr": Saved(
        "Run as Zarr", "attnflow-run.zarr.zip", lambda _, run: exports.zarr_of(run.trajectory)
    ),
    "spec": Saved(
        "Spec for attnflow run", "attnflow-run.toml", lambda form, _: toml_of(form.spec())
    ),
}

FIELDS: dict[str, Field] = {
    "system": ("System", choice(PRESETS)),
    "number": ("β", number(-1e4, 1e4, wait=0.1)),
    "seed": ("Seed", number(0, 2**31 - 1, 1)),
    "n": ("Tokens n", number(1, limits.TOKENS, 1)),
    "d": ("Dimension d", number(1, limits.DIMENSIONS, 1)),
    "until": ("Until t", number(0, limits.TIME)),
    "noise": ("Noise σ", number(0, limits.NOISE)),
    "start": ("Start", choice((*STARTS, "angles", "ellipsoid"))),
    "method": ("Method", choice(METHODS)),
    "scores": ("QᵀK", choice(FAMILIES)),
    "scores_typed": ("QᵀK, typed: rows of numbers", words(3, "1 0; 0 1")),
    "values": ("V", choice(FAMILIES)),
    "values_typed": ("V, typed: rows of numbers", words(3, "1 0; 0 1")),
    "heads": ("Heads", number(1, limits.HEADS, 1)),
}


def layout(search: str, folder: Path) -> Any:
    """The form at the left, tokens and what goes with them at the right."""
    try:
        form, said = Form.from_address(search), ""
    except InputError as error:
        form, said = Form(), str(error)
    left = [*rows(PART, FIELDS, form.model_dump()), *desk(PART, "Run")]
    right = [
        html.P(_equation(form.system), id="equation", className="equation"),
        *voice(PART),
        warning(said),
        html.P(id="predicted", className="predicted"),
        html.Div(
            [
                picture(f"{PART}-tokens", "Tokens, coloured by their last cluster", "main"),
                *[picture(f"{PART}-{name}", text) for name, text in SIDE.items()],
                player(PART),
            ],
            className="flow",
        ),
        *shelf(PART, SAVED),
    ]
    return columns("What is run", left, "Flow", right)


def connect(app: Dash, jobs: Jobs, folder: Path) -> None:
    """All that the view does. A new β, or K, or radius is run at once."""
    connect_work(app, jobs, PART, ids(PART, FIELDS), _begin, _told, also=[f"{PART}-number"])
    connect_player(app, PART)
    connect_saving(app, jobs, PART, f"{PART}-tokens", SAVED, _python)
    _fill_in(app)
    _draw(app, jobs)
    for name in ("scores", "values"):
        app.clientside_callback(
            ClientsideFunction("explore", "typed"),
            Output(f"row-{PART}-{name}_typed", "className"),
            Input(f"{PART}-{name}", "value"),
        )


def _begin(values: list[Any]) -> Begun:
    form = Form.read(dict(zip(FIELDS, values, strict=True)))
    spec = form.build()
    spec.build()
    return Begun(form, lambda tell: run_flow(spec, tell), limits.SECONDS)


def _python(form: Form, _: Frames) -> str:
    return exports.python_of_run(form.spec())


def _told(frames: Frames) -> str:
    report = frames.report
    clusters = f"{report.clusters[0]} clusters became {report.clusters[-1]}"
    return f"{report.n} tokens, {report.steps} steps; {clusters}."


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
        Output(f"row-{PART}-number", "className"),
        Input(f"{PART}-system", "value"),
    )
    def _name(system: str) -> Any:
        """Its equation, and what its number is called."""
        label = label_of(system)
        return _equation(system), label, "field" if label else "field hidden"


def _draw(app: Dash, jobs: Jobs) -> None:
    @app.callback(
        *[Output(f"{PART}-{name}", "figure") for name in ("tokens", *SIDE)],
        *[Output(f"box-{PART}-{name}", "className") for name in SIDE],
        Output(f"{PART}-frames", "data"),
        Output(f"{PART}-moment", "max"),
        Output(f"{PART}-moment", "value"),
        Output("predicted", "children"),
        Input(f"{PART}-ready", "data"),
        Input("theme", "data"),
        State("visitor", "data"),
        prevent_initial_call=True,
    )
    def _show(job: str | None, theme: str, visitor: str) -> Any:
        """Draw what is done, in the colours of the page."""
        result = done(jobs, visitor, job)
        if result is None:
            return [no_update] * (2 * len(SIDE) + 5)
        frames = result.found
        beside = side_figures(frames, theme)
        figures = [tokens_figure(frames, theme), *(figure or no_update for figure in beside)]
        shown = [boxed("side", shown=figure is not None) for figure in beside]
        last = len(frames.report.times) - 1
        moment = no_update if ctx.triggered_id == "theme" else 0
        return [*figures, *shown, to_page(frames) | {"run": job}, last, moment, frames.predicted]
