"""Results as tables, for the terminal (Rich) and for documents (Markdown)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from rich.table import Table

from attnflow.bench.result import Curve, Entry, Outcome, Results, Spread, TargetResult


@dataclass(frozen=True)
class Grid:
    """A table of text.

    Attributes:
        title: its title.
        head: a heading for each column.
        rows: the cells of each row.
    """

    title: str
    head: list[str]
    rows: list[list[str]]

    def rich(self) -> Table:
        """For the terminal, without the title. Words are left-aligned, numbers right-aligned."""
        table = Table()
        for i, heading in enumerate(self.head):
            justify: Literal["left", "right"] = "left" if i in self._words() else "right"
            table.add_column(heading, justify=justify, no_wrap=heading not in LONG, overflow="fold")
        for row in self.rows:
            table.add_row(*(_coloured(cell) for cell in row))
        return table

    def markdown(self) -> str:
        """For a document, without the title."""
        rules = ["---" if i in self._words() else "---:" for i in range(len(self.head))]
        lines = [self.head, rules, *self.rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def _words(self) -> set[int]:
        """The columns of words."""
        return {i for i, heading in enumerate(self.head) if heading in WORDS}


LONG = {"note", "target"}
WORDS = {"contender", "note", "row", "target", "verdict", "method", "where", "measured"}


def of_entries(outcome: Outcome) -> Grid:
    """What each contender of a row did, without empty columns."""
    columns = {h: [cell(e) for e in outcome.entries] for h, cell in COLUMNS.items()}
    shown = {heading: cells for heading, cells in columns.items() if any(cells)}
    return Grid(
        outcome.title, list(shown), [list(row) for row in zip(*shown.values(), strict=True)]
    )


COLUMNS: dict[str, Callable[[Entry], str]] = {
    "contender": lambda e: e.contender,
    "time": lambda e: "" if e.seconds is None else duration(e.seconds.median),
    "× the first": lambda e: "" if e.ratio is None else ranged(e.ratio),
    "error": lambda e: "" if e.error is None else f"{e.error:.0e}",
    "memory": lambda e: "" if e.megabytes is None else f"{e.megabytes:,.0f} MB",
    "note": lambda e: e.note,
}


def of_curves(outcome: Outcome) -> Grid:
    """The growth of each method: the exponent, the largest size, and the time there."""
    rows = [_curve(curve) for curve in outcome.curves]
    absent = [[e.contender, "", e.note, "", ""] for e in outcome.entries]
    head = ["method", "where", "exponent", "largest n", "time there"]
    return Grid(outcome.title, head, rows + absent)


def _curve(curve: Curve) -> list[str]:
    exponent = "" if curve.exponent is None else f"{curve.exponent:.2f}"
    size, seconds = f"{curve.sizes[-1]:,}", duration(curve.seconds[-1])
    return [curve.contender, curve.label, exponent, size, seconds]


def of_targets(results: Results, called: Callable[[Outcome], str]) -> Grid:
    """Every target with what was measured. `called` gives the name of a row."""
    rows = [
        [
            called(outcome) if i == 0 else "",
            target(verdict),
            measured(verdict),
            "machine was busy" if outcome.disturbed and verdict.timed else judged(verdict),
        ]
        for outcome in results.outcomes
        for i, verdict in enumerate(outcome.verdicts)
    ]
    return Grid("Targets", ["row", "target", "measured", "verdict"], rows)


def target(verdict: TargetResult) -> str:
    """The target in words.

    >>> target(TargetResult("PyTorch", "≥", 2.5, " ×", None))
    '≥ 2.5 × PyTorch'
    >>> target(TargetResult("error", "≤", 1e-12, "", None))
    'error ≤ 1e-12'
    """
    bound = f"{verdict.sense} {verdict.bound:,g}{verdict.unit}"
    return f"{bound} {verdict.quantity}" if verdict.unit == " ×" else f"{verdict.quantity} {bound}"


def measured(verdict: TargetResult) -> str:
    """What was measured against it."""
    return "—" if verdict.measured is None else f"{ranged(verdict.measured)}{verdict.unit}"


def judged(verdict: TargetResult) -> str:
    """Met, or missed and by how much.

    >>> judged(TargetResult("speed", "≥", 2.0, " ×", Spread(1.5, 1.4, 1.6)))
    'missed by 25 %'
    """
    if verdict.median is None:
        return "not measured"
    return "met" if verdict.met else f"missed by {-100 * verdict.median.slack:.0f} %"


def duration(seconds: float) -> str:
    """Seconds with their unit, to three digits.

    >>> duration(0.01234), duration(1234.5)
    ('12.3 ms', '1,234 s')
    """
    if seconds < 1e-3:
        return f"{1e6 * seconds:.3g} µs"
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{_number(seconds)} s"


def ranged(spread: Spread) -> str:
    """The median, with the range over the rounds where there is one.

    >>> ranged(Spread(2.0, 1.5, 3.0))
    '2.00 (1.50–3.00)'
    """
    if spread.low == spread.high:
        return _number(spread.median)
    return f"{_number(spread.median)} ({_number(spread.low)}–{_number(spread.high)})"


def _number(value: float) -> str:
    """Three digits that mean something.

    >>> [_number(v) for v in (1000.0, 2.5, 0.852, 1e-12, 87.3, 15.0)]
    ['1,000', '2.50', '0.85', '1e-12', '87.3', '15']
    """
    if value == 0 or abs(value) < 1e-3:
        return f"{value:.0e}"
    digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    whole = float(value).is_integer() and abs(value) >= 10
    return f"{value:,.{0 if whole else digits}f}"


def _coloured(cell: str) -> str:
    """Verdicts in colour."""
    if cell == "met":
        return "[green]met[/]"
    return f"[red]{cell}[/]" if cell.startswith("missed") else cell
