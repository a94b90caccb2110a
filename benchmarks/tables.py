"""Fill the tables and draw the picture of docs/performance.md from the stored run.

    python benchmarks/tables.py

A table stands between `<!-- bench: NAME -->` and `<!-- end -->`. NAME is a row of the benchmark,
`targets` or `machine`.
"""

import re
from pathlib import Path

from attnflow.bench import Results, plot, tables

ROOT = Path(__file__).parents[1]
STORED = ROOT / "benchmarks" / "results.json"
PAGE = ROOT / "docs" / "performance.md"
PICTURE = ROOT / "docs" / "images" / "performance.png"


def filled(text: str, results: Results) -> str:
    """The text with every table between its marks replaced by that of the results."""

    def table(found: re.Match) -> str:
        name = found[1]
        return f"<!-- bench: {name} -->\n\n{content(name, results)}\n\n<!-- end -->"

    return re.sub(r"<!-- bench: ([\w-]+) -->.*?<!-- end -->", table, text, flags=re.DOTALL)


def content(name: str, results: Results) -> str:
    """What stands between the marks of this name."""
    if name == "machine":
        return f"Measured on: {results.machine}."
    if name == "targets":
        return tables.of_targets(results, lambda outcome: outcome.title).markdown()
    [outcome] = [outcome for outcome in results.outcomes if outcome.name == name]
    grid = tables.of_curves(outcome) if name == "growth" else tables.of_entries(outcome)
    return f"**{grid.title}**\n\n{grid.markdown()}"


if __name__ == "__main__":
    results = Results.load(STORED)
    PAGE.write_text(filled(PAGE.read_text(), results))
    plot.growth(results.curves, PICTURE)
