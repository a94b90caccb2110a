"""Ctrl-C and SIGTERM at random moments: one sentence, the right exit code, nothing lost."""

import json
import os
import re
import signal
import time
from contextlib import nullcontext
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
import typer

from attnflow import signals, sweep
from attnflow.cli.shared import Guard
from attnflow.theory.search import Record, search
from command import call
from processes import finish, often, start, wait_until
from small_sweep import contents, records, toml

BEGUN = """
import attnflow.cli
print("begun", flush=True)
attnflow.cli.run_command()
"""
"""The command, which says when Python and the library have been loaded."""

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}

RUN = """
[system]
name = "SA"
beta = 4.0
[start]
name = "sphere"
n = 200
d = 3
[times]
stop = 60.0
count = 61
[method]
name = "Fixed"
dt = 0.01
"""


def stopped(folder, command, moment, sent):
    """The exit code and the words of a command that was sent a signal after a while."""
    process = start(folder, *command, program=("-c", BEGUN))
    assert process.stdout.readline() == "begun\n"
    time.sleep(moment)
    process.send_signal(sent)
    code, said = finish(process)
    assert "Traceback" not in said, said
    assert "Exception ignored" not in said, said
    return code, said


def attacks(count, life):
    """Random moments in the life of a command, each with one of the two signals."""
    rng = np.random.default_rng(count)
    for k in range(count):
        yield (k + rng.uniform()) * life / count, (signal.SIGINT, signal.SIGTERM)[k % 2]


@pytest.mark.parametrize("tries", often(4, 30))
def test_run(tmp_path, tries):
    (tmp_path / "spec.toml").write_text(RUN)
    command = ("run", "spec.toml", "--out", "a.png", "--json", "a.json", "--store", "a.zarr")
    begun = time.monotonic()
    assert finish(start(tmp_path, *command))[0] == 0
    whole = contents(tmp_path / "a.zarr")
    life, ends = time.monotonic() - begun, set()
    for moment, sent in attacks(tries, life):
        code, said = stopped(tmp_path, command, moment, sent)
        ends.add(code)
        # After the last word Python only ends, and a signal then ends it as it would any program.
        assert code in (0, CODES[sent]) or (code == -sent and "wrote a.png" in said), said
        assert code in (0, -sent) or "stopped" in said
        assert not list(tmp_path.glob(".unfinished-*"))
        json.loads((tmp_path / "a.json").read_text())
    assert ends - {0}
    assert finish(start(tmp_path, *command))[0] == 0
    assert contents(tmp_path / "a.zarr") == whole


@pytest.mark.parametrize("tries", often(4, 30))
def test_sweep(tmp_path, tries):
    (tmp_path / "spec.toml").write_text(toml(count=8 * tries, dt=0.02))
    sweep.run(tmp_path / "spec.toml", tmp_path / "whole")
    store = tmp_path / "store"
    command = ("sweep", "spec.toml", "--store", "store")
    before = {}
    for moment, sent in attacks(tries, 4.0):
        code, said = stopped(tmp_path, command, moment, sent)
        assert code == CODES[sent], said
        assert "stopped" in said or "resumes from here" in said
        after = records(store) if store.exists() else {}
        assert before.items() <= after.items(), "nothing is lost or computed twice"
        before = after
    assert finish(start(tmp_path, *command))[0] == 0
    assert before.items() <= records(store).items()
    assert contents(store) == contents(tmp_path / "whole")


@pytest.mark.parametrize("tries", often(4, 30))
def test_search(tmp_path, tries):
    """However often it is stopped, its record is that of a search that was not."""
    path = tmp_path / "attnflow-search" / "C4.2-printed-0.json"
    before = 0
    for moment, sent in attacks(tries, 4.0):
        code, said = stopped(tmp_path, ("search", "C4.2-printed", "--budget", "1h"), moment, sent)
        assert code == CODES[sent], said
        assert "stopped" in said
        runs = Record.load(path).runs if path.exists() else 0
        assert runs >= before
        before = runs
    code, said = finish(start(tmp_path, "search", "C4.2-printed", "--budget", "3"))
    assert code == 0, said
    assert Record.load(path) == search("C4.2-printed", runs=before + 3)
    for hit in Record.load(path).hits:
        assert path.with_name(f"{path.stem}-run{hit.run}.toml").exists()


@pytest.mark.parametrize("tries", often(2, 20))
def test_figures(tmp_path, tries):
    command = ("figures", "P-gamma", "E-fig1", "--no-film", "--workers", 2, "--out", "out")
    for moment, sent in attacks(tries, 12.0):
        code, said = stopped(tmp_path, command, moment, sent)
        assert code in (0, CODES[sent]) or (code == -sent and "index.html" in said), said
        for record in (tmp_path / "out").glob("[PE]*.json"):
            told = json.loads(record.read_text())
            assert all((tmp_path / "out" / file).exists() for file in told["files"])
            assert f'id="{told["name"]}"' in (tmp_path / "out" / "index.html").read_text()


@pytest.mark.slow
def test_ctrl_c_reaches_the_makers_of_figures_too(tmp_path):
    """A terminal sends it to all processes of the group."""
    process = start(tmp_path, "figures", "E-fig1", "E-fig3", "--workers", 2, program=("-c", BEGUN))
    assert process.stdout.readline() == "begun\n"
    time.sleep(4)
    os.killpg(process.pid, signal.SIGINT)
    code, said = finish(process)
    assert code == 130, said
    assert "Traceback" not in said
    assert "stopped" in said


@pytest.mark.slow
def test_ctrl_c_leaves_the_workers_their_blocks(tmp_path):
    (tmp_path / "spec.toml").write_text(toml(count=12, dt=0.005))
    store = tmp_path / "store"
    command = ("sweep", "spec.toml", "--store", "store")
    process = start(tmp_path, *command, "--workers", 2)
    wait_until(lambda: store.exists() and records(store), process)
    os.killpg(process.pid, signal.SIGINT)
    code, said = finish(process)
    assert code == 130, said
    assert "Traceback" not in said
    in_flight = int(re.search(r"stopping after (\d) blocks in flight", said)[1])
    assert len(records(store)) >= 1 + in_flight
    assert finish(start(tmp_path, *command))[0] == 0
    sweep.run(tmp_path / "spec.toml", tmp_path / "whole")
    assert contents(store) == contents(tmp_path / "whole")


@pytest.mark.slow
def test_a_second_ctrl_c_does_not_wait(tmp_path):
    (tmp_path / "spec.toml").write_text(toml(count=4, dt=1e-5))
    process = start(tmp_path, "sweep", "spec.toml", "--store", "store", program=("-c", BEGUN))
    wait_until(lambda: (tmp_path / "store").exists(), process)
    time.sleep(4)
    process.send_signal(signal.SIGINT)
    time.sleep(2)
    assert process.poll() is None, "it waits for the blocks in flight"
    process.send_signal(signal.SIGINT)
    code, said = finish(process, seconds=30)
    assert code == 130
    assert "stopping after 2 blocks in flight; Ctrl-C again does not wait" in said
    assert "Traceback" not in said


def test_a_sweep_that_is_stopped_before_there_is_a_store(folder, monkeypatch):
    (folder / "spec.toml").write_text(toml())

    def stop(*args):
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(sweep.driver, "check", stop)
    code, said = call("sweep", "spec.toml")
    assert code == 143
    assert said.endswith("stopped; what was finished is kept. ")


@pytest.mark.parametrize("shielded", [True, False])
def test_children_can_be_kept_from_ctrl_c(shielded):
    """As multiprocessing starts them: its helper process must not undo it."""
    with signals.shield_children() if shielded else nullcontext():
        child = get_context("spawn").Process(target=time.sleep, args=(60,))
        child.start()
    mask = Path(f"/proc/{child.pid}/status").read_text()
    child.kill()
    child.join()
    blocked = int(re.search(r"SigBlk:\s*(\w+)", mask)[1], 16)
    assert bool(blocked & 1 << signal.SIGINT - 1) == shielded
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


class Dying:
    """Something during whose finaliser Ctrl-C is pressed: Python ignores exceptions there."""

    def __del__(self):
        signal.raise_signal(signal.SIGINT)


def test_an_interruption_that_python_ignores_comes_again(capsys):
    def work():
        with Guard():
            Dying()
            time.sleep(30)

    begun = time.monotonic()
    with pytest.raises(typer.Exit) as end:
        work()
    assert end.value.exit_code == 130
    assert time.monotonic() - begun < 20
    told = capsys.readouterr()
    assert "Traceback" not in told.out + told.err


def test_signals_are_held_and_then_come():
    done = []

    def work():
        with signals.defer_interrupts() as came:
            signal.raise_signal(signal.SIGINT)
            done.append(came())

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == [True]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_signal_is_not_held():
    done = []

    def work():
        with signals.defer_interrupts():
            signal.raise_signal(signal.SIGINT)
            done.append(1)
            signal.raise_signal(signal.SIGINT)
            done.append(2)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == [1]


def test_a_hit_is_counted_and_told_or_neither():
    """Ctrl-C in the middle of telling waits until the candidate is told."""
    told = []

    def on_progress(record, finding, trial):
        signal.raise_signal(signal.SIGINT)
        told.append(record.runs)

    record = Record("C4.2-printed", 0)
    with pytest.raises(KeyboardInterrupt):
        search("C4.2-printed", runs=3, record=record, on_candidate=on_progress)
    assert told == [1]
    assert (record.runs, record.tally.total()) == (1, 1)
