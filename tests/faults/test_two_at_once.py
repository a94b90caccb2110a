"""Two processes that want the same files: one of them waits, or is told who has them."""

import errno
import json
import os
import re
import signal
import socket
import subprocess
import threading

import pytest

from attnflow import files, sweep
from attnflow.errors import InputError, WriteError
from attnflow.figures.gallery import write_index
from attnflow.files import atomic_write, atomic_write_text, file_lock, is_locked
from command import call
from processes import finish, kill, start, wait_until
from small_sweep import contents, records, spec, toml

HOLD = """
import sys, time
from pathlib import Path
from attnflow.files import file_lock
with file_lock(Path(sys.argv[1]), "busy"):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path):
    """A process that holds `tmp_path / "lock"`."""
    process = start(tmp_path, "lock", program=("-c", HOLD))
    assert process.stdout.readline() == "held\n"
    yield process
    if process.poll() is None:
        kill(process)


def test_the_second_is_told_who_is_first(tmp_path, holder):
    lock = tmp_path / "lock"
    for _ in range(2):
        with pytest.raises(InputError) as told, file_lock(lock, "busy"):
            pass
        host = re.escape(socket.gethostname())
        assert re.fullmatch(
            rf"busy \(process {holder.pid} on {host}, since .*\)\.", str(told.value)
        )
    assert is_locked(lock)
    kill(holder)
    assert not is_locked(lock)
    with file_lock(lock, "busy"):
        assert f"process {os.getpid()} " in lock.read_text()


@pytest.mark.parametrize("host", ["this", "another"])
def test_a_lock_of_the_dead_locks_nobody_out(tmp_path, host):
    """Its number may have been given to another process, and it may have been on another host."""
    lock = tmp_path / "lock"
    name = socket.gethostname() if host == "this" else "elsewhere"
    lock.write_text(f"process {os.getpid()} on {name}, since 2020-01-01 00:00:00+00:00\n")
    assert not is_locked(lock)
    with file_lock(lock, "busy"):
        assert "elsewhere" not in lock.read_text()


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    def flock(*args):
        raise OSError(errno.ENOTSUP, "no locks here")

    monkeypatch.setattr(files.fcntl, "flock", flock)
    with file_lock(tmp_path / "lock", "busy"):
        atomic_write_text(tmp_path / "a.txt", "a")
    assert (tmp_path / "a.txt").read_text() == "a"


def test_writers_of_one_file_take_turns(tmp_path):
    """Each finds its own text whole, however their writes lie."""
    path = tmp_path / "a.txt"
    texts = [str(k) * 300_000 for k in range(4)]
    seen = []

    def write(text):
        for _ in range(20):
            atomic_write_text(path, text)
            seen.append(path.read_text())

    threads = [threading.Thread(target=write, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 80
    assert set(seen) <= set(texts)
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_who_waits_too_long_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_WAIT_SECONDS", 0.1)
    monkeypatch.setattr(files, "LOCK_TRY_SECONDS", 0.05)
    said = r"a\.txt: another process has been writing"
    with atomic_write(tmp_path / "a.txt"), pytest.raises(WriteError, match=said):
        atomic_write_text(tmp_path / "a.txt", "second")


@pytest.mark.slow
def test_two_sweeps_on_one_store(tmp_path):
    (tmp_path / "spec.toml").write_text(toml(count=8, dt=0.02))
    sweep.run(tmp_path / "spec.toml", tmp_path / "whole")
    command = ("sweep", "spec.toml", "--store", "store")
    store = tmp_path / "store"
    first = start(tmp_path, *command)
    wait_until(lambda: store.exists() and records(store), first)
    first.send_signal(signal.SIGSTOP)
    code, said = finish(start(tmp_path, *command))
    assert code == 2
    assert f"another process is computing this sweep (process {first.pid} on " in said
    kill(first)
    assert finish(start(tmp_path, *command))[0] == 0
    assert contents(store) == contents(tmp_path / "whole")


def test_a_store_that_appears_meanwhile_is_taken_as_it_is(tmp_path, monkeypatch):
    """Two processes see that there is none; the slower one must not replace the other's."""
    given = spec()
    made = sweep.driver.check

    def slow(spec):
        monkeypatch.setattr(sweep.driver, "check", made)
        sweep.run(given, tmp_path / "store")
        return made(spec)

    monkeypatch.setattr(sweep.driver, "check", slow)
    progress = sweep.run(given, tmp_path / "store")
    assert (progress.before, progress.done) == (4, 0)


def test_two_searches_on_one_record(folder):
    out = folder / "found"
    out.mkdir()
    with file_lock(out / ".C4.2-printed-0.lock", "busy"):
        code, said = call("search", "C4.2-printed", "--budget", "2", "--out", out)
        assert code == 2
        assert f"another search is writing it (process {os.getpid()} on " in said
        assert not (out / "C4.2-printed-0.json").exists()
        assert call("search", "C4.2-printed", "--key", 1, "--budget", "1", "--out", out)[0] == 0


def test_an_index_beside_another_figures_command(tmp_path):
    """A record that vanishes is left out until the next index; one that is none is told."""
    record = {"name": "E-fig1", "shows": "a", "source": "b", "size": "quick", "seconds": 1.0}
    whole = record | {"holds": True, "seen": [], "files": []}
    (tmp_path / "E-fig1.json").write_text(json.dumps(whole))
    (tmp_path / "E-fig3.json").write_text("{")
    (tmp_path / "E-fig4.json").symlink_to(tmp_path / "gone")
    page = write_index(tmp_path).read_text()
    assert '<figure id="E-fig1">' in page
    assert "E-fig3.json is damaged" in page
    assert "E-fig4" not in page


def test_what_is_no_file_is_written_to_directly(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE, text=True)
    atomic_write_text(tmp_path / "pipe", "through")
    assert reader.communicate(timeout=30)[0] == "through"
    assert (tmp_path / "pipe").is_fifo()


def test_a_link_is_followed(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "here.txt").symlink_to(tmp_path / "there" / "a.txt")
    atomic_write_text(tmp_path / "here.txt", "a")
    assert (tmp_path / "here.txt").is_symlink()
    assert (tmp_path / "there" / "a.txt").read_text() == "a"


@pytest.mark.parametrize("exchange", [True, False], ids=["in one step", "in two"])
def test_a_folder_replaces_a_folder(tmp_path, monkeypatch, exchange):
    if not exchange:
        monkeypatch.setattr(files, "_exchanged", lambda a, b: False)
    for text in ("old", "new"):
        with atomic_write(tmp_path / "store") as place:
            place.mkdir()
            (place / text).write_text(text)
    assert [p.name for p in (tmp_path / "store").iterdir()] == ["new"]
    assert [p.name for p in tmp_path.iterdir()] == ["store"]


def test_a_folder_that_was_moved_aside_comes_back(tmp_path, monkeypatch):
    """Where folders cannot be exchanged, a process may die between two renames."""
    with atomic_write(tmp_path / "store") as place:
        place.mkdir()
    (tmp_path / ".unfinished-store").mkdir()
    (tmp_path / "store").rename(tmp_path / ".unfinished-store" / "before")
    files.restore(tmp_path / "store")
    assert (tmp_path / "store").is_dir()


@pytest.mark.slow
def test_makers_of_figures_end_with_who_asked_for_them(tmp_path):
    """A killed command leaves no process behind that goes on writing."""
    process = start(tmp_path, "figures", "E-fig1", "E-fig3", "--workers", 2, "--out", "out")
    wait_until(lambda: len(_children(process.pid)) >= 2, process)
    kill(process)  # waits until the whole group is gone


def _children(pid):
    told = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout
    return told.split()


DYING = """
import os
import signal
from pathlib import Path
from matplotlib.figure import Figure
from attnflow.figures import gallery
from attnflow.figures.recipe import Picture, Recipe
from attnflow.figures.export import RECIPES
from attnflow.verdicts import Quantity
def drawn(size):
    return Picture(Figure(), {}, (Quantity("a", 1, "≥", 1),))
def dying(size):
    os.kill(os.getpid(), signal.SIGKILL)
RECIPES.clear()
for name in ("A", "B", "C"):
    RECIPES[name] = Recipe(name, "[T]", "nothing", dying if name == "B" else drawn)
def tell(name, outcome):
    print(name, type(outcome).__name__)
if __name__ == "__main__":
    gallery("ABC", "quick", Path("out"), workers=2, on_progress=tell)
"""


@pytest.mark.slow
def test_a_maker_of_figures_that_dies_takes_no_other_with_it(tmp_path):
    (tmp_path / "dying.py").write_text(DYING)
    code, said = finish(start(tmp_path, program=("dying.py",)))
    assert code == 0, said
    assert {"A FigureRecord", "B BrokenProcessPool", "C FigureRecord"} <= set(
        re.findall(r"\w \w+", said)
    )
    assert {p.name for p in (tmp_path / "out").glob("*.json")} == {"A.json", "C.json"}
