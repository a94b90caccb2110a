"""The parts of the page: embedded pictures, tables, and escaped text."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Iterable, Sequence
from html import escape

import numpy as np
from matplotlib.figure import Figure

from attnflow.models.survey_types import TextSurvey

STYLE = """
body { max-width: 60rem; margin: 2rem auto 4rem; padding: 0 1.2rem; color: #222;
       background: #fdfdfb; font: 17px/1.55 Georgia, "Times New Roman", serif; }
h1 { font-size: 1.7rem; margin-bottom: 0.2rem; }
h2 { font-size: 1.25rem; margin: 2.4rem 0 0.4rem; border-top: 1px solid #ddd; padding-top: 1.2rem; }
p.lead, figcaption, td.small { color: #555; }
figure { margin: 1rem 0; } img { max-width: 100%; height: auto; }
figcaption { font-size: 0.9rem; }
table { border-collapse: collapse; margin: 0.8rem 0; font-size: 0.9rem; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 0.28rem 0.7rem 0.28rem 0; }
th { border-bottom: 1px solid #999; font-weight: normal; color: #555; }
td { border-bottom: 1px solid #eee; } td.n { font-variant-numeric: tabular-nums; }
code { font: 0.85em ui-monospace, Menlo, Consolas, monospace; background: #f1f1ec;
       padding: 0.05em 0.3em; border-radius: 3px; }
summary { cursor: pointer; color: #0072B2; }
"""


def figure_of(figure: Figure, caption: str) -> str:
    """A picture embedded in the page, with a caption that is already HTML."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    data = base64.b64encode(buffer.getvalue()).decode()
    return (
        f'<figure><img alt="" src="data:image/png;base64,{data}">'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def table_of(head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: bool = False) -> str:
    """A table whose cells are already HTML.

    Args:
        head: titles of the columns, as text.
        rows: the cells of each row.
        numbers: whether the cells are numbers, which are aligned.
    """
    cell = '<td class="n">' if numbers else "<td>"
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    body = "".join(
        "<tr>" + "".join(f"{cell}{entry}</td>" for entry in row) + "</tr>\n" for row in rows
    )
    return f"<table><tr>{titles}</tr>\n{body}</table>"


def with_errors(mean: np.ndarray, spread: np.ndarray) -> list[str]:
    """Numbers by layer, with their deviation if texts differ, to the digits that it allows.

    >>> with_errors(np.array([0.24, 12.5]), np.array([0.0123, 0.0]))
    ['0.240 ± 0.012', '12.5 ± 0']
    """
    if not np.any(spread):
        return [f"{m:.4g}" for m in mean]
    return [_with_error(m, s) for m, s in zip(mean, spread, strict=True)]


def _with_error(m: float, s: float) -> str:
    if s == 0:
        return f"{m:.4g} ± 0"
    places = max(0, 1 - math.floor(math.log10(s)))
    return f"{m:.{places}f} ± {s:.{places}f}"


def complex_number(value: complex) -> str:
    """An eigenvalue, without its imaginary part if that is 0.

    >>> complex_number(1 - 2j)
    '1.000 − 2.000i'
    """
    turned = f" {'+' if value.imag > 0 else '−'} {abs(value.imag):.3f}i" if value.imag else ""
    return f"{value.real:.3f}{turned}"


def words(text: TextSurvey, group: Iterable[int], most: int = 12) -> str:
    """The tokens of a group as HTML, each once, with its number of occurrences.

    Args:
        text: the survey of the text.
        group: the numbers of the tokens.
        most: show at most this many different tokens.
    """
    counts: dict[str, int] = {}
    for i in group:
        counts[text.tokens[i]] = counts.get(text.tokens[i], 0) + 1
    shown = [word(token) + (f"×{count}" if count > 1 else "") for token, count in counts.items()]
    rest = f" … {len(shown) - most} more words" if len(shown) > most else ""
    return " ".join(shown[:most]) + rest


def word(token: str) -> str:
    """The text of a token, with everything escaped.

    >>> word("<b>")
    '<code>&lt;b&gt;</code>'
    """
    return f"<code>{escape(token)}</code>"
