"""docs/mutants.md: which check and which figure sees which mistake."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

OPENING = """\
# Which mistakes would be seen

A check that cannot fail says nothing. So every mistake below is made on purpose, at the lowest
place of the library, so that all that stands on it is wrong too (`tests/mutants.py`), and then rows
of `attnflow check` are run. A row *sees* a mistake if it no longer holds. The tables have what was
tried: `python tests/killed.py kills.json` tries every row that runs what is wrong, and takes an
hour and more; with `--quick` it tries three rows for each mistake, and on all others a wrong sign.
`docs/making/measured.py --mutants kills.json` writes this page. Continuous integration tries two
mistakes every day, other ones on the next day.

Most rows see a mistake because every run is compared with SciPy's solution of the equation as the
papers write it. Many theorems are true of the wrong flow too: this is written as *equation* below,
where the others say *theorem*, or *both*.
"""


def page(sections: Mapping[str, Mapping[str, Mapping[str, str | None]]]) -> str:
    """The whole page, from what each row said of each mistake that was tried on it."""
    parts = [OPENING]
    for title, found in sections.items():
        parts += [f"## {title.capitalize()}\n", by_mistake(found), by_row(found)]
    return "\n".join(parts)


def by_mistake(found: Mapping[str, Mapping[str, str | None]]) -> str:
    """For each mistake the rows that see it, and those that do not."""
    lines = ["| mistake | seen by | tried, and not seen by |", "| --- | --- | --- |"]
    for name, rows in found.items():
        seen = ", ".join(f"{row} ({short(word)})" for row, word in rows.items() if word)
        unseen = ", ".join(row for row, word in rows.items() if not word)
        lines.append(f"| {name} | {seen} | {unseen or '—'} |")
    return "\n".join([*lines, ""])


def by_row(found: Mapping[str, Mapping[str, str | None]]) -> str:
    """For each row the mistakes that it sees."""
    lines = ["| row | mistakes that it sees |", "| --- | --- |"]
    for row in dict.fromkeys(row for rows in found.values() for row in rows):
        sees = ", ".join(name for name, rows in found.items() if rows.get(row))
        lines.append(f"| {row} | {sees or '—'} |")
    return "\n".join([*lines, ""])


def short(word: str) -> str:
    """What failed, in a word.

    >>> short("fails (the equation, not the theorem)")
    'equation'
    """
    known: Iterable[tuple[str, str]] = (
        ("the equation and the theorem", "both"),
        ("the equation, not the theorem", "equation"),
        ("the theorem", "theorem"),
        ("stops", "stops"),
        ("contradicted", "theorem"),
    )
    return next((brief for long, brief in known if long in word), word)
