"""Which checks see which mistake: `python tests/killed.py kills.json` tries all of them.

    python tests/killed.py kills.json                          # an hour and more
    python tests/killed.py kills.json "swap Q and K" "β/2"     # some mistakes
    python tests/killed.py --quick kills.json                  # all mistakes, on a few rows

What is in the file already is kept, so that it can be stopped and started again.
`docs/making/measured.py --mutants kills.json` writes the page from it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np

from attnflow.theory.checks import CHECKS, Check, Outcome, Trial
from mutants import MUTANTS, mutated

SPHERE = [
    "R3.3",
    "P3.4",
    "3.6",
    "R3.8",
    "T4.1p",
    "T4.2",
    "T4.3",
    "T5.1p",
    "T6.1",
    "L6.4",
    "T6.8",
    "T6.9",
    "6.12",
    "D.4",
    "T9.2",
    "R2.2",
    "CAUSAL",
]
SPACE = ["T2.1", "L-dist", "T3.1", "TC.5", "T4.1", "L-dual", "T5.1", "C4.2", "R4"]
FLOWS = [*SPACE, *SPHERE]
RUNS = [row for row in FLOWS if row != "R3.8"]

CONCERNS: dict[str, list[str]] = {
    "swap Q and K": ["T4.1", "L-dual", "C4.2", "R4", "T4.2", "L6.4", "CAUSAL"],
    "transpose V": ["T4.1", "L-dual", "T5.1", "C4.2", "R4"],
    "ignore Q and K": [
        "T2.1",
        "T3.1",
        "T4.1",
        "L-dual",
        "T5.1",
        "C4.2",
        "R4",
        "R3.8",
        "T4.2",
        "L6.4",
        "R2.2",
        "CAUSAL",
    ],
    "wrong sign of V": FLOWS,
    "mean over heads": ["L-dual", "L6.4", "T6.8", "R2.2"],
    "first head alone": ["L-dual", "L6.4", "T6.8", "R2.2"],
    "ignore β": [row for row in FLOWS if row not in ("CAUSAL", "T6.9")],
    "β/2": [row for row in FLOWS if row != "T4.1p"],
    "−β": [row for row in FLOWS if row != "T4.1p"],
    "uniform attention": [row for row in FLOWS if row != "T4.1p"],
    "drop the normaliser": FLOWS,
    "ignore masses": ["L-dual", "R3.3", "3.6", "L6.4", "T5.1p", "T6.1"],
    "mask off by one": ["L6.4", "R2.2", "CAUSAL"],
    "frozen attention": [row for row in RUNS if row != "T4.1p"],
    "drop the projection": SPHERE,
    "tokens do not move": FLOWS,
    "order too low": [row for row in RUNS if row != "R4"],
    "biased draws": ["T6.7", "T6.9", "6.12", "Gin"],
}
"""The rows whose system each mistake changes: the others do not run what is wrong."""

QUICK: dict[str, tuple[str, str, str]] = {
    "swap Q and K": ("CAUSAL", "L-dual", "C4.2"),
    "transpose V": ("L-dual", "C4.2", "T5.1"),
    "ignore Q and K": ("CAUSAL", "R3.8", "T2.1"),
    "wrong sign of V": ("R3.8", "L-dist", "T6.8"),
    "mean over heads": ("L-dual", "T6.8", "R2.2"),
    "first head alone": ("L-dual", "T6.8", "R2.2"),
    "ignore β": ("R3.8", "T6.8", "R3.3"),
    "β/2": ("R3.8", "T6.8", "L-dist"),
    "−β": ("R3.8", "T6.8", "L-dist"),
    "uniform attention": ("R3.8", "T6.8", "L-dist"),
    "drop the normaliser": ("R3.8", "T6.8", "L-dist"),
    "ignore masses": ("R3.3", "L-dual", "3.6"),
    "mask off by one": ("CAUSAL", "R2.2", "L6.4"),
    "frozen attention": ("CAUSAL", "T6.8", "L-dist"),
    "drop the projection": ("R3.8", "R3.3", "T6.8"),
    "tokens do not move": ("R3.8", "R3.3", "L-dist"),
    "order too low": ("R3.3", "L-dist", "T6.8"),
    "biased draws": ("T6.7", "T6.9", "Gin"),
}
"""Three rows that see each mistake and do not take long."""


def few(row: Check) -> Iterator[Trial]:
    """The trials of a row that are compiled differently, one of each."""
    known = set()
    for trial in row.trials(key=0):
        leaves, tree = jax.tree.flatten(trial.system)
        shapes = [np.shape(leaf) for leaf in (*leaves, trial.x0)]
        kind = str((tree, shapes, trial.masses is None))
        if kind not in known or trial.system is None:
            known.add(kind)
            yield trial


def seen(row: Check) -> str | None:
    """What a row says of a mistake, or None where it does not see it."""
    draws = []
    try:
        for trial in few(row):
            draws += row.draws(trial)
            outcome = Outcome(row, tuple(draws), 0, 0.0)
            if outcome.failed:
                break
    except Exception as error:
        return f"stops: {type(error).__name__}"
    return outcome.said if outcome.wrong else None


def rows_of(name: str, quick: bool) -> list[str]:
    """The rows that a mistake is tried on; in short, those of `QUICK`, and one mistake for all."""
    if not quick:
        return CONCERNS[name]
    covered = {row for rows in QUICK.values() for row in rows}
    others = [row for row in FLOWS if row not in covered]
    return [*QUICK[name], *(others if name == "wrong sign of V" else [])]


def main(arguments: list[str] | None = None) -> None:
    """Try mistakes on rows that they concern, and keep what each row said."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path, help="where the outcomes are kept, as JSON")
    parser.add_argument("names", nargs="*", default=list(MUTANTS), help="mistakes; all without")
    parser.add_argument("--quick", action="store_true", help="three rows for each mistake")
    given = parser.parse_args(arguments)
    found = json.loads(given.file.read_text()) if given.file.exists() else {}
    for name in given.names:
        rows = [r for r in rows_of(name, given.quick) if r not in found.setdefault(name, {})]
        with mutated(name):
            for row in rows:
                begin = time.perf_counter()
                found[name][row] = seen(CHECKS[row])
                taken = time.perf_counter() - begin
                print(f"{name}, {row}: {found[name][row]} ({taken:.0f} s)", flush=True)
                given.file.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
