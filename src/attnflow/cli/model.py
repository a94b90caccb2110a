"""`attnflow model`: what the tokens of a trained Transformer do, layer by layer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from attnflow.cli.shared import Guard, bold, check_output, console, mend_cache
from attnflow.cli.threads import one_blas_thread

if TYPE_CHECKING:
    from attnflow.models.survey_types import Survey

MAX_TEXT_BYTES = 2**20
"""Largest size of a text, in bytes."""


def model(
    name: Annotated[
        str, typer.Argument(help="A folder in the hub's layout, or a name on the hub.")
    ],
    text: Annotated[list[Path], typer.Option(help="A file with text; several give error bars.")],
    depth: Annotated[
        int | None, typer.Option(help="Layers to run; can exceed the model's if all are shared.")
    ] = None,
    beta: Annotated[float, typer.Option(help="The β of the energy.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Tokens with overlap ≥ 1 − δ are linked.")] = 0.1,
    dtype: Annotated[str, typer.Option(help="float32 or float64.")] = "float32",
    revision: Annotated[
        str | None, typer.Option(help="A branch, tag or commit of a model on the hub.")
    ] = None,
    out: Annotated[Path, typer.Option(help="File for the page.")] = Path("attnflow-model.html"),
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Also write the numbers to this file.")
    ] = None,
) -> None:
    """Run a trained Transformer on texts, measure what its tokens do, and write a page about it.

    Example: `attnflow model albert-xlarge-v2 --text paragraph.txt --depth 48 --out albert.html`
    """
    with Guard():
        mend_cache()
        check_output(out, {".html"})
        check_output(json_file)
        texts = [read_text(path) for path in text]
        _model(name, texts, depth, beta, delta, dtype, revision, out, json_file)


def read_text(path: Path) -> str:
    """The text of a file, or an error that says why it cannot be read."""
    from attnflow.errors import InputError

    if not path.is_file():
        raise InputError(f"{path}: there is no such file.")
    if path.stat().st_size > MAX_TEXT_BYTES:
        raise InputError(
            f"{path} has {path.stat().st_size:,} bytes, but a text may have at most "
            f"{MAX_TEXT_BYTES:,}."
        )
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: {error}.") from None
    if not text.strip():
        raise InputError(f"{path} is empty.")
    return text


def _model(
    name: str,
    texts: list[str],
    depth: int | None,
    beta: float,
    delta: float,
    dtype: str,
    revision: str | None,
    out: Path,
    json_file: Path | None,
) -> None:
    from attnflow.files import atomic_write_text
    from attnflow.model_report import html_report, to_json
    from attnflow.models import load
    from attnflow.models.survey import survey
    from attnflow.records import write_json

    loaded = load(name, dtype=dtype, revision=revision)
    bar = sys.stderr.isatty()
    with one_blas_thread():
        found = survey(loaded, texts, depth=depth, beta=beta, delta=delta, progress=bar)
        _print_survey(found)
        page = html_report(found)
    atomic_write_text(out, page)
    written = [out]
    if json_file is not None:
        write_json(json_file, to_json(found))
        written.append(json_file)
    for path in written:
        console.print(f"wrote {bold(path)}", soft_wrap=True)


def _print_survey(found: Survey) -> None:
    """Print the comparison with theory."""
    from attnflow.models.predictions import predictions

    sizes = ", ".join(str(len(text.tokens)) for text in found.texts)
    console.print(f"{found.model}: {found.layers} layers, texts of {sizes} tokens", markup=False)
    table = Table("theory", "predicted", "seen", show_lines=True)
    for row in predictions(found):
        table.add_row(*(part.replace("[", r"\[") for part in row))
    console.print(table)
