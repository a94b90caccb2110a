"""docs/claims.md: every theorem, conjecture and figure beside its number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnflow.theory.search.base import Question

OPENING = """\
# What the papers claim, and what we measured

Every theorem, conjecture and figure that attnflow reproduces stands here beside its number. [E] is
*The emergence of clusters in self-attention dynamics*, [P] *A mathematical perspective on
Transformers*, [S] the slides *Emergence of Clustering in Self-Attention*. No number on this page
was typed: `docs/making/measured.py` writes it from the files of `attnflow check`, `attnflow search`
and `attnflow figures`, and a test writes it again and compares.
"""

THEOREMS = """\
## Theorems, and facts that the papers measured

Starts and weights that meet the hypothesis are drawn, the flow is run, and the conclusion is
measured. Shown is the worst draw of each quantity beside its bound; a statement about t → ∞ is
judged at a horizon with a tolerance, which `attnflow check ID` prints. A measured agreement is no
proof, and a bound is often a tolerance of ours where the theorem only says that something tends
to 0. *Off the equation* is how far a run is from SciPy's solution of the equation as it is written;
[which mistakes would be seen](mutants.md) says what these rows would notice. A bound is *vacuous*
where nothing that can be run comes near it.
"""

CONJECTURES = """\
## Conjectures and open problems

`attnflow search` draws candidates at random and looks for one that contradicts the statement. A hit
was seen a second time, at a tighter tolerance and for longer. Where a statement speaks of a limit
or of an order O(·), a hit is a run that is worth a look and no counter-example; no hit is no proof.
"""

FIGURES = """\
## Figures

What must be seen in a figure is a list of quantities with bounds. The pictures are in the
[gallery](gallery.md).
"""

ELSEWHERE = """\
## Measured on other pages

| claim | where |
| --- | --- |
| mean-field limit, Dobrushin's estimate ([P] §3, Remark 3.3) | [many tokens](many-tokens.md) |
| growth of modes about the uniform measure | [densities](meanfield.md) |
| closures of the equation of pairs ([P] Problem 4) | [many tokens](many-tokens.md) |
| noise and consensus ([P] Problem 7), flocks, CBO | \
[noise and flocks](systems/noise-and-flocks.md) |
| Kuramoto's threshold, random graphs ([P] §7) | [angles](systems/angles.md) |
| hardmax as a limit, doubly stochastic attention ([P] §9.3, Remark 3.5) | \
[hard maximum and Sinkhorn](systems/hardmax-and-sinkhorn.md) |
| phase diagrams at full size ([P] Figs. 3–5) | [phase diagrams](sweeps.md) |
| trained models ([E] §6, [P] Fig. 1) | [trained models](models.md), [slides](slides.md) |
"""


@dataclass(frozen=True)
class Measured:
    """What is kept of checks, searches and figures; the questions of the searches by id."""

    checks: Sequence[dict[str, Any]]
    searches: Sequence[dict[str, Any]]
    figures: Sequence[dict[str, Any]]
    questions: Mapping[str, type[Question]]


def page(found: Measured, missing: Sequence[str]) -> str:
    """The whole page. Figures that are `missing` are named."""
    proven = [row for row in found.checks if row["proven"]]
    open_ = [row for row in found.checks if not row["proven"]]
    parts = [
        OPENING,
        _tally(proven, found.figures),
        THEOREMS,
        table(("", "claim", "measured, and its bound", "draws"), map(_theorem, proven)),
        CONJECTURES,
        table(
            ("", "statement, and what a hit is", "seen", "hits"),
            [
                *map(_checked, open_),
                *(_searched(row, found.questions[row["id"]]) for row in found.searches),
            ],
        ),
        FIGURES,
        table(
            ("", "what must be seen", "measured, and its bound", ""), map(_figure, found.figures)
        ),
    ]
    if missing:
        parts.append(f"Not measured yet: {', '.join(missing)}.\n")
    return "\n".join([*parts, ELSEWHERE])


def _tally(proven: Sequence[dict[str, Any]], figures: Sequence[dict[str, Any]]) -> str:
    holds = sum(row["verdict"] == "holds" for row in proven)
    seen = sum(row["holds"] for row in figures)
    said = [f"**{seen} of {len(figures)}** figures show what they must"]
    if stand_ins := sum(stand_in(row) != "" for row in figures):
        said.append(f"{stand_ins} of them with another trained model than the papers'")
    if quick := sum(row["size"] == "quick" for row in figures):
        said.append(f"{quick} of them at quick size")
    return (
        f"**{holds} of {len(proven)}** statements, most of them theorems, hold in every draw that "
        f"settled; {', '.join(said)}.\n"
    )


def stand_in(row: dict[str, Any]) -> str:
    """The trained model of a figure, where it is not the one of the papers."""
    model = row.get("model", "")
    return "" if "albert" in model.lower() else model


def size(row: dict[str, Any]) -> str:
    """The size in which a figure was made, and with which model in place of the papers'."""
    other = stand_in(row)
    return f"{row['size']} size" + (f", with {other} in place of ALBERT" if other else "")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def plain(text: str) -> str:
    """Text as it is, whatever Markdown would make of its signs."""
    for sign in "*_[]":
        text = text.replace(sign, f"\\{sign}")
    return text.replace("<", "&lt;").replace("|", r"\|")


def quantity(row: dict[str, Any]) -> str:
    """A measured number beside its bound."""
    measured, bound = (number(row[key]) for key in ("measured", "bound"))
    vacuous = " (vacuous)" if row.get("vacuous") else ""
    return f"{plain(row['name'])}: **{measured}** {row['sense']} {bound}{vacuous}"


def number(value: float | str) -> str:
    """Three digits; words (inf) as they are."""
    return value if isinstance(value, str) else f"{value:.3g}"


def _theorem(row: dict[str, Any]) -> Sequence[str]:
    counts = row["counts"]
    drawn = sum(counts.values())
    said = f"{row.get('said', row['verdict'])} in {counts['holds']} of {drawn}"
    if counts["unresolved"]:
        said += f", {counts['unresolved']} unresolved"
    return (
        f"**{row['id']}** {plain(row['source'])}",
        f"{plain(row['hypothesis'])} → {plain(row['conclusion'])}",
        "; ".join(map(quantity, row["worst"])),
        said,
    )


def _checked(row: dict[str, Any]) -> Sequence[str]:
    first, claim, measured, _ = _theorem(row)
    counts = row["counts"]
    return first, claim, f"in {sum(counts.values())} draws: {measured}", str(counts["fails"])


def _searched(row: dict[str, Any], question: type[Question]) -> Sequence[str]:
    often = sorted(row["tally"].items(), key=lambda item: -item[1])
    seen = "; ".join(f"{plain(what)}: {count}" for what, count in often)
    return (
        f"**{row['id']}** {plain(question.source)}",
        f"{plain(question.statement)}. A hit: {plain(question.looks_for)}",
        f"of {row['runs']} candidates: {seen}",
        str(row["hits"]),
    )


def _figure(row: dict[str, Any]) -> Sequence[str]:
    name = row["name"]
    return (
        f"[{name}](gallery.md#{name.lower()}) {plain(row['source'])}, {size(row)}",
        plain(row["shows"]),
        "; ".join(map(quantity, row["seen"])),
        "seen" if row["holds"] else "**not seen**",
    )
