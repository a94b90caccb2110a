"""attnflow next to the alternatives: the rows of `attnflow bench`."""

from attnflow.bench.machine import this_machine
from attnflow.bench.result import Outcome, Results
from attnflow.bench.row import Row, undisturbed
from attnflow.bench.rows import ROWS, chosen

__all__ = ["ROWS", "Outcome", "Results", "Row", "chosen", "this_machine", "undisturbed"]
