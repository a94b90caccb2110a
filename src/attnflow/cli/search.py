"""`attnflow search`: look for a counter-example to a conjecture."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from attnflow.cli.shared import (
    Guard,
    bold,
    check_output,
    console,
    mend_cache,
    renamed_option,
    stop_code,
)

if TYPE_CHECKING:
    from attnflow.theory.checks import Trial
    from attnflow.theory.search import Finding, Question, Record

MAX_HITS_PRINTED = 8
"""Largest number of hits that are printed; all are on disk."""


def search(
    id: Annotated[
        str | None, typer.Argument(help="The question: C4.2, C4.2-printed, problem-1, …")
    ] = None,
    budget: Annotated[
        str, typer.Option(help="How long to search: a number of runs, or a time such as 30s.")
    ] = "100",
    key: Annotated[int, typer.Option(help="Other keys draw other candidates.")] = 0,
    seed: Annotated[str | None, renamed_option("--key")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the record and a spec of each hit.")] = Path(
        "attnflow-search"
    ),
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start over, even if there is a record.")
    ] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Also write the record to this file.")
    ] = None,
    show_list: Annotated[bool, typer.Option("--list", help="List all questions and stop.")] = False,
) -> None:
    """Draw weights and starts at random, and look for one that contradicts a conjecture.

    A hit must survive a second run with a tighter tolerance. It is written as a spec that
    `attnflow run` reproduces. The same command continues where the last one ended; Ctrl-C loses
    nothing.

    Example: `attnflow search C4.2-printed --budget 30s`
    """
    with Guard():
        if show_list or id is None:
            _list_questions()
        else:
            _search(id, budget, key, out, fresh, json_file)


def _list_questions() -> None:
    from attnflow.theory.search import QUESTIONS

    table = Table("id", "statement", "a hit is")
    for question in QUESTIONS.values():
        name = "\n".join((question.id, *(f"({alias})" for alias in question.aliases)))
        table.add_row(name, question.statement, question.looks_for)
    console.print(table)


def parse_budget(text: str) -> dict[str, int | float]:
    """`100` is a number of runs, `30s` or `2m` a time.

    >>> parse_budget("100"), parse_budget("1.5m")
    ({'runs': 100}, {'seconds': 90.0})
    """
    from attnflow.errors import InputError

    if re.fullmatch(r"[1-9][0-9]{0,8}", text):
        return {"runs": int(text)}
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(s|m|h)", text)
    if match is None or float(match[1]) == 0:
        raise InputError(
            f"budget must be a number of runs such as 100, or a time such as 30s, 5m or 2h, not "
            f"{text!r}."
        )
    return {"seconds": float(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2]]}


def _search(id: str, budget: str, key: int, out: Path, fresh: bool, json_file: Path | None) -> None:
    from attnflow.errors import InputError
    from attnflow.files import file_lock
    from attnflow.randomness import as_key
    from attnflow.theory.search import find

    question = find(id)
    limit = parse_budget(budget)
    as_key(key)
    check_output(json_file)
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file: give a folder for the record and the specs.")
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{question.id}-{key}.json"
    with file_lock(path.with_name(f".{path.stem}.lock"), f"{path}: another search is writing it"):
        stopped = _go_on(question, key, limit, path, fresh, json_file)
    raise typer.Exit(stop_code() if stopped else 0)


def _go_on(
    question: Question,
    key: int,
    limit: dict[str, int | float],
    path: Path,
    fresh: bool,
    json_file: Path | None,
) -> bool:
    """Continue the search after the record; returns whether it was stopped."""
    from attnflow.theory.search import Record, search

    record = Record(question.id, key)
    if path.exists() and not fresh:
        record = Record.load(path)
        console.print(f"continuing after {record.runs} runs of {bold(path)}", soft_wrap=True)
    mend_cache()
    console.print(f"[bold]{question.id}[/] {question.source}: {question.statement}")
    begun, before = time.monotonic(), record.runs
    stopped = False
    with console.status("") as status:
        keep = _FindingWriter(question, path, lambda text: status.update(text))
        try:
            search(question.id, key=key, record=record, on_candidate=keep, **limit)  # type: ignore[arg-type]
        except KeyboardInterrupt:
            stopped = True
    for file in (path, json_file):
        if file is not None:
            record.save(file)
    _print_record(record, path, record.runs - before, time.monotonic() - begun)
    if stopped:
        console.print("[bold red]stopped[/]; the same command resumes from here.")
    return stopped


class _FindingWriter:
    """Shows and saves what a search finds: the record every few seconds, a spec of each hit."""

    def __init__(self, question: Question, path: Path, show: Callable[[str], object]):
        self.question, self.path, self.show = question, path, show
        self.saved = time.monotonic()

    def __call__(self, record: Record, finding: Finding, trial: Trial) -> None:
        from attnflow.files import atomic_write_text

        if finding.hit:
            atomic_write_text(spec_path(self.path, record.runs - 1), self._spec(finding, trial))
        if finding.hit or time.monotonic() - self.saved > 5:
            record.save(self.path)
            self.saved = time.monotonic()
        self.show(f"{record.runs} runs, {len(record.hits)} hits")

    def _spec(self, finding: Finding, trial: Trial) -> str:
        from attnflow.spec import write_spec
        from attnflow.verdicts import described

        header = f"# {self.question.source}: {finding.sentence}\n# {described(trial.about)}\n"
        return header + write_spec(trial.system, trial.x0, trial.ts, trial.method)


def spec_path(record: Path, run: int) -> Path:
    """The path of the spec of a hit."""
    return record.with_name(f"{record.stem}-run{run}.toml")


def _print_record(record: Record, path: Path, runs: int, seconds: float) -> None:
    from attnflow.verdicts import described

    table = Table("seen", "runs")
    for seen, count in record.tally.most_common():
        table.add_row(escape(seen), str(count))
    console.print(table)
    console.print(f"{runs} runs in {seconds:.1f} s, {record.runs} in all, {len(record.hits)} hits.")
    for hit in record.hits[:MAX_HITS_PRINTED]:
        drawn = described(hit.about)
        said = escape(f"run {hit.run} ({drawn}): {hit.sentence}")
        console.print(f"[bold]hit[/] {said}", soft_wrap=True)
        console.print(f"    attnflow run {spec_path(path, hit.run)}", markup=False, soft_wrap=True)
    if len(record.hits) > MAX_HITS_PRINTED:
        console.print(
            f"… and {len(record.hits) - MAX_HITS_PRINTED} more in {bold(path)}", soft_wrap=True
        )
