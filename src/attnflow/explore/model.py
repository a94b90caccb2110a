"""The model view: a trained model, a text, and what its tokens do layer by layer."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import xarray
from dash import Dash, Output, html
from pydantic import Field as Bounded

from attnflow import models
from attnflow.errors import InputError
from attnflow.explore import downloads, paths
from attnflow.explore.address import Address
from attnflow.explore.downloads import Download, connect_downloads, download_buttons
from attnflow.explore.jobs import Jobs, OnProgress
from attnflow.explore.layout import Field, choice, columns, number, picture, rows, warning, words
from attnflow.explore.player import connect_player, player, player_outputs, player_values
from attnflow.explore.work import JobRequest, connect_figures, connect_job, controls, status_line
from attnflow.models.survey_types import Survey
from attnflow.plot import screen
from attnflow.plot.model import joining_tokens
from attnflow.plot.tokens import TokenView

PART = "model"
MAX_SECONDS, MAX_CHARS, MAX_TOKENS = 180.0, 4000, 400
EXAMPLE = (
    "Two pendulum clocks on one beam fall into step. Each pendulum moves the beam a little, the "
    "beam moves the other pendulum, and after half an hour the clocks swing together."
)


class ModelView(Address):
    """A model by its folder, a text, and the layer whose heads are looked at, counted from 1."""

    labels: ClassVar[Mapping[str, str]] = {
        "folder": "Model",
        "text": "Text",
        "layer": "Heads of layer",
    }

    folder: str = ""
    text: Annotated[str, Bounded(min_length=1, max_length=MAX_CHARS)] = EXAMPLE
    layer: Annotated[int, Bounded(ge=1, le=200)] = 1


FIELDS: dict[str, Field] = {
    "text": words(8, "a paragraph"),
    "layer": number(1, 200, 1),
}


def layout(search: str, folder: Path) -> Any:
    """Model and text at the left, tokens by layer at the right."""
    known = paths.models(folder)
    try:
        view, said = ModelView.from_address(search), ""
    except InputError as error:
        view, said = ModelView(), str(error)
    if not known:
        said = "There is no model in the folder that this page was started with."
    fields = {"folder": choice(known), **FIELDS}
    view = view.model_copy(update={"folder": view.folder or next(iter(known), "")})
    right = [
        *status_line(PART),
        warning(said),
        html.Div(
            [
                picture(f"{PART}-tokens", "Tokens by layer; point at one to read its word", "main"),
                picture(f"{PART}-overlaps", "Overlaps of all pairs after this layer"),
                picture(f"{PART}-spectra", "Eigenvalues of V, all heads of the chosen layer"),
                player(PART),
            ],
            className="flow",
        ),
        picture(f"{PART}-tree", "Tokens that join, layer by layer", "tree"),
        *download_buttons(PART, DOWNLOADS),
    ]
    left = [*rows(PART, fields, view), *controls(PART, "Read")]
    return columns("Model and text", left, "Model", right)


def connect(app: Dash, jobs: Jobs, folder: Path) -> None:
    """All that the view does."""
    names = ["folder", *FIELDS]

    def begin(values: list[Any]) -> JobRequest:
        view = ModelView.read(dict(zip(names, values, strict=True)))
        path = paths.inside(folder, view.folder)
        return JobRequest(
            view, lambda on_progress: _surveyed(path, view.text, on_progress), MAX_SECONDS
        )

    connect_job(app, jobs, PART, [f"{PART}-{name}" for name in names], begin, _summary)
    connect_player(app, PART)
    connect_downloads(app, jobs, PART, f"{PART}-tokens", DOWNLOADS, _python)

    figures = [Output(f"{PART}-{name}", "figure") for name in ("tokens", "overlaps", "tree")]
    connect_figures(app, jobs, PART, [*figures, *player_outputs(PART)], _drawn)
    spectra = [
        Output(f"{PART}-spectra", "figure"),
        Output(f"caption-{PART}-spectra", "children"),
    ]
    connect_figures(app, jobs, PART, spectra, _heads, also=[f"{PART}-layer"])


def _drawn(survey: Survey, theme: screen.Theme) -> list[Any]:
    return [*_figures(survey, theme), *player_values(PART, _frames(survey), survey.layers)]


def _heads(survey: Survey, theme: screen.Theme, layer: int | None) -> list[Any]:
    asked, last = layer or 1, len(survey.spectra)
    return [_spectra(survey, min(asked, last), theme), _of_layer(asked, last)]


@lru_cache(maxsize=2)
def _loaded(path: Path) -> models.Model:
    return models.load(path)


def _surveyed(path: Path, text: str, on_progress: OnProgress) -> Survey:
    model = _loaded(path)
    if (count := len(model.tokens(text))) > MAX_TOKENS:
        raise InputError(
            f"Text: it has {count} tokens; at most {MAX_TOKENS} are read here. "
            "`attnflow model` has no such limit."
        )
    return models.survey(model, text, progress=on_progress)


def _summary(survey: Survey) -> str:
    text = survey.texts[0]
    counts = text.cluster_counts
    good, heads = survey.good_heads
    return (
        f"{len(text.tokens)} tokens through {survey.layers} layers: {counts[0]} clusters became "
        f"{counts[-1]}; {good} of {heads} heads are good triples."
    )


def _directions(survey: Survey) -> np.ndarray:
    """The tokens on the sphere, as their overlaps see them."""
    return np.asarray(survey.states / np.linalg.norm(survey.states, axis=-1, keepdims=True))


def _figures(survey: Survey, theme: screen.Theme) -> list[Any]:
    """Tokens and overlaps before the first layer, and who joins whom."""
    text = survey.texts[0]
    tokens = screen.start_of_tokens(
        _directions(survey), on_sphere=False, labels=text.labels[-1], words=text.tokens, theme=theme
    )
    edges = np.linspace(-1, 1, text.histogram.shape[1] + 1)
    overlaps = screen.overlaps(text.histogram[0], edges, theme=theme)
    overlaps.update_yaxes(range=[0, float(np.quantile(text.histogram.max(axis=1), 0.9))])
    shown = joining_tokens(text.labels[-1])
    names = [text.tokens[i] for i in shown]
    tree = screen.merge_tree(text.labels[:, shown], names, theme=theme)
    return [tokens, overlaps, tree]


def _frames(survey: Survey) -> dict[str, Any]:
    """What the slider moves."""
    seen = screen.projected_states(TokenView(_directions(survey), False))
    text = survey.texts[0]
    return {
        "label": "layers passed:",
        "ts": list(range(len(seen))),
        "positions": np.round(np.moveaxis(seen, 2, 1), 4).tolist(),
        "overlaps": np.round(text.histogram, 3).tolist(),
        "clusters": [int(count) for count in text.cluster_counts],
    }


def _spectra(survey: Survey, layer: int, theme: screen.Theme) -> Any:
    found = survey.spectra[layer - 1]
    values = np.concatenate([head.eigenvalues for head in found.heads])
    return screen.spectrum(values, theme=theme)


def _of_layer(asked: int, last: int) -> str:
    """Whose eigenvalues are shown.

    >>> _of_layer(100, 6)
    'Eigenvalues of V, all heads of layer 6: there is no layer 100, this is the last'
    """
    said = f"Eigenvalues of V, all heads of layer {min(asked, last)}"
    return said if asked <= last else f"{said}: there is no layer {asked}, this is the last"


def _csv(survey: Survey) -> str:
    """The cluster of every token after every layer."""
    rows = io.StringIO()
    lines = csv.writer(rows)
    lines.writerow(["layer", "token", "word", "cluster"])
    text = survey.texts[0]
    for layer, labels in enumerate(text.labels):
        for token, (word, label) in enumerate(zip(text.tokens, labels, strict=True)):
            lines.writerow([layer, token, word, int(label)])
    return rows.getvalue()


def _zarr(survey: Survey) -> bytes:
    text = survey.texts[0]
    return downloads.zarr_of_dataset(
        xarray.Dataset(
            {
                "states": (("layer", "token", "d"), survey.states),
                "cluster": (("layer", "token"), text.labels),
            },
            coords={"word": ("token", [str(word) for word in text.tokens])},
        )
    )


def _python(view: ModelView, _: Survey) -> str:
    return (
        "from attnflow import models\n\n"
        f"model = models.load({view.folder!r})\n"
        f"survey = models.survey(model, {view.text!r})\n"
        "print(survey.texts[0].cluster_counts)\n"
    )


DOWNLOADS = {
    "csv": Download("Clusters as CSV", "attnflow-model.csv", lambda _, survey: _csv(survey)),
    "zarr": Download("States as Zarr", "attnflow-model.zarr.zip", lambda _, survey: _zarr(survey)),
}
