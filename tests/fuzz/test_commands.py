"""Every command with any values for its arguments and options, up to where its work begins."""

import shutil
from importlib import import_module
from types import SimpleNamespace

import pytest
import typer
from hypothesis import strategies as st

import attnflow as af
from attnflow import sweep
from attnflow.cli import app
from attnflow.errors import Interrupted, ModelError
from attnflow.theory.search.record import Record
from checkpoints import HERE
from command import invoke
from fuzz.mutations import words
from fuzz.verdict import bounded, require_sentence
from small_sweep import spec, toml
from tries import tries

COMMANDS = typer.main.get_command(app).commands
RUN = '[system]\nname = "SA"\nbeta = 2.0\n[start]\nn = 4\nd = 3\n[times]\nstop = 1.0\ncount = 3\n'
STOPPED = 130

NAMES = {
    "bytes": "\udcff",
    "marks": "[/x]",
    "long": "a" * 300,
    "nobody": "~nobody-here/x",
    "dot": ".",
}

RIGHT = {
    "run": ["run.toml"],
    "check": ["T3.1"],
    "search": ["C4.2", "--key", "1", "--out", "search"],
    "figures": ["E-fig1"],
    "sweep": ["sweep.toml", "--store", "store"],
    "model": ["model", "--text", "text.txt"],
    "explore": [],
    "bench": [],
}
"""A line of each command whose work begins."""

WORK = [
    ("attnflow.theory.checks", "check"),
    ("attnflow.theory.search", "search"),
    ("attnflow.figures", "gallery"),
    ("attnflow.sweep", "run"),
    ("attnflow.models.survey", "survey"),
    ("attnflow.explore", "create_app"),
    ("attnflow.bench", "measure_undisturbed"),
]
"""What a command calls when all its input is checked."""

there = ["run.toml", "sweep.toml", "store", "run", "model", "text.txt", "bytes", ".", "search", ""]
outputs = ["a.png", "a.gif", "a.json", "a.html", "no/a.png", "no/a.json", "store", "a.pdf"]
numbers = [
    "0",
    "1",
    "-1",
    "2",
    "0.5",
    "1e-300",
    "nan",
    "inf",
    "-inf",
    "1e999",
    "9" * 30,
    "9" * 5000,
]
budgets = ["30s", "1.5m", "0s", "9999h", "9" * 400 + "s", "1e3", "٣"]
names = ["T3.1", "C4.2", "E-fig1", "all", "d3", "quick", "float64", "127.0.0.1", "::1", "tcp://x:1"]
nasty = [
    "[/]",
    "[/bold].png",
    "[red]",
    "\udcff.png",
    "\udcff",
    "é.json",
    "a" * 300,
    "..",
    "\x00",
    "-",
]
values = st.sampled_from(there + outputs + numbers + budgets + names + nasty) | words


@st.composite
def lines(draw, command):
    """A command line that is right, with one to three options more, or another word in it."""
    line = list(RIGHT[command])
    if line and draw(st.booleans()):
        line[draw(st.integers(0, len(line) - 1))] = draw(values)
    options = [p for p in COMMANDS[command].params if p.name != "show_list"]
    for option in draw(st.lists(st.sampled_from(options), min_size=1, max_size=3)):
        if option.param_type_name == "option":
            line.append(draw(st.sampled_from([*option.opts, *option.secondary_opts])))
        if not getattr(option, "is_flag", False):
            line.append(draw(values))
    return line


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """A folder with one of everything that a command may be given."""
    root = tmp_path_factory.mktemp("commands")
    (root / "run.toml").write_text(RUN)
    (root / "sweep.toml").write_text(toml(count=2))
    (root / "text.txt").write_text("the cat sat on the mat")
    (root / "bytes").write_bytes(b"\xff\x00\xfe")
    shutil.copytree(HERE / "bert", root / "model")
    sweep.run(spec(), root / "store")
    af.simulate(af.SA(2.0), af.initial.sphere(4, 3, key=0), [0.0, 1.0]).save(root / "run")
    (root / "search").mkdir()
    Record("C4.2", 1, 3).save(root / "search" / "C4.2-1.json")
    return root


@pytest.fixture
def idle(monkeypatch, full, tmp_path):
    """A copy of the folder to work in, where all work is stopped as by Ctrl-C when it begins."""

    def stopped(*args, **kwargs):
        raise KeyboardInterrupt

    def stopped_run(system, x0, ts, **kwargs):
        reached = SimpleNamespace(ts=ts[:1])
        raise Interrupted("interrupted", time=0.0, trajectory=reached)

    def no_hub(name, revision):
        raise ModelError(f"{name} could not be loaded from the hub.")

    for module, name in WORK:
        monkeypatch.setattr(import_module(module), name, stopped)
    monkeypatch.setattr(import_module("attnflow.simulation"), "simulate", stopped_run)
    monkeypatch.setattr(import_module("attnflow.models.folder"), "_from_hub", no_hub)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "400")
    shutil.copytree(full, tmp_path / "full")
    monkeypatch.chdir(tmp_path / "full")


def judged(command, line):
    """A command ends with a code that it promises, and with a sentence if the input was wrong."""
    with bounded():
        result = invoke(command, *line)
    if not isinstance(result.exception, SystemExit | None):
        raise result.exception
    assert result.exit_code in (0, 1, 2, STOPPED), result.output
    if result.exit_code in (1, 2):
        require_sentence(result.output)
    return result


@pytest.mark.parametrize("command", RIGHT)
def test_work_that_begins_is_stopped(command, idle):
    """The attacks get as far as the work."""
    assert judged(command, RIGHT[command]).exit_code == STOPPED


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_all_lists(command, idle):
    if any(option.name == "show_list" for option in COMMANDS[command].params):
        assert judged(command, ["--list"]).exit_code == 0


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize(
    "line",
    [
        ("run", "NAME.toml"),
        ("run", "run.toml", "--out", "NAME.png"),
        ("run", "run.toml", "--json", "NAME"),
        ("check", "T3.1", "--json", "NAME"),
        ("search", "C4.2", "--out", "NAME"),
        ("search", "C4.2", "--out", "search", "--key", "1", "--json", "NAME"),
        ("figures", "E-fig1", "--out", "NAME"),
        ("figures", "E-fig1", "--json", "NAME"),
        ("sweep", "sweep.toml", "--store", "NAME"),
        ("sweep", "--status", "NAME"),
        ("model", "NAME", "--text", "text.txt"),
        ("model", "model", "--text", "NAME"),
        ("explore", "NAME"),
        ("explore", "--host", "NAME"),
        ("bench", "--json", "NAME"),
    ],
    ids=" ".join,
)
def test_names_that_no_file_has(line, name, idle):
    """Bytes that are no letters, marks of the terminal, too long, of nobody, and a folder."""
    judged(line[0], [word.replace("NAME", name) for word in line[1:]])


@pytest.mark.parametrize("budget", ["9" * 5000, "9" * 400 + "s", "٣", "1e3"], ids=range(4))
def test_budgets_that_are_none(budget, idle):
    assert judged("search", ["C4.2", "--budget", budget]).exit_code == 2


def test_a_folder_is_no_file_before_any_work(idle):
    for line in (("figures", "E-fig1"), ("check", "T3.1"), ("bench",), ("run", "run.toml")):
        result = judged(line[0], [*line[1:], "--json", "."])
        assert result.exit_code == 2
        assert "is a folder" in result.output


@pytest.mark.slow
@tries(
    400,
    10_000,
    line=st.sampled_from(sorted(COMMANDS)).flatmap(
        lambda command: st.tuples(st.just(command), lines(command))
    ),
)
def test_any_values(line, idle):
    judged(*line)
