"""Real Dask workers, and SIGKILL: the store must be the same, bit for bit."""

import os
import signal
import subprocess
import sys
import time

import pytest
from distributed import LocalCluster

from attnflow import sweep
from attnflow.sweep.store import Store
from small_sweep import contents, records, toml

BLOCKS = 12
COMMAND = (sys.executable, "-c", "from attnflow.cli import app; app()", "sweep")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the spec, and the store of an undisturbed run in one process."""
    folder = tmp_path_factory.mktemp("killed")
    (folder / "spec.toml").write_text(toml(count=BLOCKS, dt=0.002))
    assert sweep.run(folder / "spec.toml", folder / "whole").complete
    return folder


@pytest.mark.slow
def test_a_worker_is_killed(place):
    spec = place / "spec.toml"
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        pids = [worker.process.pid for worker in cluster.workers.values()]
        killed = []

        def kill(tally):
            if tally.done >= 2 and not killed:
                os.kill(pids[0], signal.SIGKILL)
                killed.append(pids[0])

        address = cluster.scheduler_address
        tally = sweep.run(spec, place / "worker", scheduler=address, tell=kill)
    assert killed
    assert (tally.done, tally.failures) == (BLOCKS, [])
    assert contents(place / "worker") == contents(place / "whole")


@pytest.mark.slow
@pytest.mark.parametrize("workers", [None, 2], ids=["in process", "two workers"])
def test_the_client_is_killed(place, workers):
    store = place / f"client-{workers}"
    options = [] if workers is None else ["--workers", str(workers)]
    arguments = [*COMMAND, "spec.toml", "--store", store.name, *options]
    process = subprocess.Popen(arguments, cwd=place, start_new_session=True)
    _wait(lambda: store.exists() and len(records(store)) >= 2, process)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    _wait(lambda: not _alive(process.pid), None)
    before = records(store)
    assert 2 <= len(before) < BLOCKS, "it was killed in the middle"
    found = sweep.status(store)
    assert (found.done, found.running) == (len(before), False)
    subprocess.run(arguments, cwd=place, check=True)
    assert contents(store) == contents(place / "whole")
    assert before.items() <= records(store).items(), "nothing was computed twice"


@pytest.mark.slow
def test_ctrl_c_keeps_the_blocks_in_flight(place):
    store = place / "interrupted"
    arguments = [*COMMAND, "spec.toml", "--store", store.name]
    process = subprocess.Popen(arguments, cwd=place, stdout=subprocess.PIPE, text=True)
    _wait(lambda: store.exists() and len(records(store)) >= 1, process)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "goes on from here" in " ".join(said.split())
    assert 1 <= len(records(store)) < BLOCKS
    subprocess.run(arguments, cwd=place, check=True)
    assert contents(store) == contents(place / "whole")


def test_workers_give_the_bits_of_this_process(tmp_path):
    (tmp_path / "spec.toml").write_text(toml(count=3))
    sweep.run(tmp_path / "spec.toml", tmp_path / "here")
    sweep.run(tmp_path / "spec.toml", tmp_path / "there", workers=2)
    assert len(list(Store.open(tmp_path / "there").done())) == 3
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


def _wait(condition, process, seconds=180):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        assert process is None or process.poll() is None, "it ended too early"
        time.sleep(0.05)


def _alive(group):
    """Whether a process of the group still lives."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
