"""attnflow next to the alternatives: the rows of `attnflow bench`."""

from attnflow.bench.machine import this_machine
from attnflow.bench.result import Outcome, Results
from attnflow.bench.row import Row, measure_undisturbed
from attnflow.bench.rows import ROWS, select_rows
from attnflow.retired import renamed_names

__all__ = [
    "ROWS",
    "Outcome",
    "Results",
    "Row",
    "measure_undisturbed",
    "select_rows",
    "this_machine",
]

__getattr__ = renamed_names(
    __name__, {"chosen": "select_rows", "undisturbed": "measure_undisturbed"}
)
