"""docs/performance.md shows the stored run, and nothing else."""

import re
import runpy
from pathlib import Path

import pytest

from attnflow.bench import ROWS, Results

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "benchmarks" / "tables.py"))


@pytest.fixture(scope="module")
def stored():
    return Results.load(SCRIPT["STORED"])


def test_the_page_shows_the_stored_run(stored):
    text = SCRIPT["PAGE"].read_text()
    assert SCRIPT["filled"](text, stored) == text
    assert SCRIPT["PICTURE"].exists()


def test_the_stored_run_is_complete(stored):
    assert not stored.quick
    assert [outcome.name for outcome in stored.outcomes] == [row.name for row in ROWS]
    shown = re.findall(r"<!-- bench: ([\w-]+) -->", SCRIPT["PAGE"].read_text())
    assert sorted(shown) == sorted(["machine", "targets", *(row.name for row in ROWS)])


def test_a_table_that_has_changed_is_replaced(stored):
    text = "Before.\n<!-- bench: targets -->\nold\n<!-- end -->\nAfter."
    new = SCRIPT["filled"](text, stored)
    assert "old" not in new
    assert "| row | target | measured | verdict |" in new
    assert new.startswith("Before.\n")
    assert new.endswith("\nAfter.")
