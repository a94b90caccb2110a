"""Dask workers that die, hang, or send garbage: the store is the same, bit for bit."""

import os
import signal
import time

import numpy as np
import pytest
from distributed import LocalCluster

from attnflow import sweep
from attnflow.errors import InputError
from attnflow.sweep import engine
from attnflow.sweep.inspection import Computed
from attnflow.sweep.store import Store
from processes import finish, kill, start, wait_until
from small_sweep import contents, records, spec, toml

BLOCKS = 12


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the spec, and the store of an undisturbed run in one process."""
    folder = tmp_path_factory.mktemp("workers")
    (folder / "spec.toml").write_text(toml(count=BLOCKS, dt=0.02))
    assert sweep.run(folder / "spec.toml", folder / "whole").complete
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGSTOP], ids=["dies", "hangs"])
def test_a_worker(place, sent):
    """One that hangs is started anew when nothing was done for a while."""
    store = place / sent.name
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        pids = [worker.process.pid for worker in cluster.workers.values()]
        harmed = []

        def harm(progress):
            if progress.done >= 2 and not harmed:
                os.kill(pids[0], sent)
                harmed.append(pids[0])

        progress = sweep.run(
            place / "spec.toml",
            store,
            scheduler=cluster.scheduler_address,
            patience=30.0,
            on_progress=harm,
        )
    assert harmed
    assert (progress.done, progress.failures) == (BLOCKS, [])
    assert contents(store) == contents(place / "whole")


@pytest.mark.slow
def test_the_client_is_killed(place):
    store = place / "client"
    arguments = ("sweep", "spec.toml", "--store", store.name, "--workers", 2)
    process = start(place, *arguments)
    wait_until(lambda: store.exists() and len(records(store)) >= 2, process)
    kill(process)
    before = records(store)
    assert 2 <= len(before) < BLOCKS, "it was killed in the middle"
    assert finish(start(place, *arguments))[0] == 0
    assert contents(store) == contents(place / "whole")
    assert before.items() <= records(store).items(), "nothing was computed twice"


def test_workers_give_the_bits_of_this_process(tmp_path):
    (tmp_path / "spec.toml").write_text(toml(count=3))
    sweep.run(tmp_path / "spec.toml", tmp_path / "here")
    sweep.run(tmp_path / "spec.toml", tmp_path / "there", workers=2)
    assert len(list(Store.open(tmp_path / "there").done())) == 3
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


GIVEN = {"axes": {"beta": [0.5, 1.0, 2.0, 4.0]}, "realisations": 300}
KEPT = {"E": {"observable": "energy", "quantiles": [0.1, 0.9]}}
right = engine.compute


def other_number(block):
    return block._replace(number=block.number + 1)


def other_version(block):
    return block._replace(version="0.0")


def no_block(block):
    return block.values


def changed(name, change):
    return lambda block: block._replace(values=block.values | {name: change(block.values[name])})


GARBAGE = {
    "another block": other_number,
    "another version": other_version,
    "no block": no_block,
    "wrong shape": changed("E", lambda a: a[..., :-1]),
    "wrong type": changed("E", lambda a: a.astype(np.float16)),
    "no array": changed("E", list),
    "one array too many": lambda block: block._replace(values=block.values | {"F": np.zeros(3)}),
    "NaN": changed("E", lambda a: a * np.nan),
    "more unfinished runs than there are": changed("unfinished", lambda a: a + 301),
    "a negative error": changed("E_error", lambda a: -1 - a),
    "quantiles upside down": changed("E_quantiles", lambda a: a[:, ::-1]),
}


@pytest.fixture
def given(tmp_path):
    made = spec(**GIVEN, keep=KEPT)
    sweep.run(made, tmp_path / "whole")
    return made


@pytest.mark.parametrize("harm", GARBAGE.values(), ids=GARBAGE)
def test_garbage_is_computed_again(given, tmp_path, monkeypatch, harm):
    """A worker sends garbage for a block once."""
    calls = []

    def compute(text, number):
        calls.append(number)
        block = right(text, number)
        return harm(block) if number == 2 and calls.count(2) == 1 else block

    monkeypatch.setattr(engine, "compute", compute)
    progress = sweep.run(given, tmp_path / "store")
    assert (progress.done, progress.failures) == (4, [])
    assert contents(tmp_path / "store") == contents(tmp_path / "whole")
    assert calls.count(2) in (2, 3), "NaN that goes away must be seen to be gone"


def test_garbage_for_ever_fails_and_is_not_kept(given, tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "compute", lambda text, number: other_number(right(text, number)))
    progress = sweep.run(given, tmp_path / "store")
    assert progress.done == 0
    assert [failure.error for failure in progress.failures] == [
        f"the result cannot be right: it is block {failure.block + 1}."
        for failure in progress.failures
    ]
    assert len(progress.failures) == 4
    assert records(tmp_path / "store") == {}
    monkeypatch.undo()
    assert sweep.run(given, tmp_path / "store").complete
    assert contents(tmp_path / "store") == contents(tmp_path / "whole")


def test_nan_that_is_meant_is_kept(given, tmp_path, monkeypatch):
    """An observable may have no value: two computations agree, and then it is believed."""
    calls = []

    def compute(text, number):
        calls.append(number)
        return GARBAGE["NaN"](right(text, number))

    monkeypatch.setattr(engine, "compute", compute)
    assert sweep.run(given, tmp_path / "store").complete
    assert 5 <= len(calls) <= 8
    with sweep.load(tmp_path / "store") as data:
        assert np.isnan(data["E"].values).all()


def test_patience_needs_workers(given, tmp_path):
    with pytest.raises(InputError, match="patience needs workers"):
        sweep.run(given, tmp_path / "store", patience=3.0)


class Hanging:
    """An executor that never finishes anything."""

    def submit(self, *args):
        return engine.Future()


def test_workers_that_cannot_be_restarted_fail_their_blocks(monkeypatch):
    tried = []

    def restart():
        tried.append(time.monotonic())
        raise (TimeoutError if len(tried) == 1 else ValueError)

    monkeypatch.setattr(engine, "INTERRUPT_POLL_SECONDS", 0.01)
    monkeypatch.setattr(engine, "FIRST_BLOCK_FACTOR", 2)
    hung = engine.Engine(Hanging(), 2, restart)
    found = dict(engine.results(hung, "", range(9), patience=0.1))
    assert len(tried) == 2
    assert [str(error) for error in found.values()] == ["no block finished within 0.4 s."] * 2


class Dropping:
    """An executor whose scheduler is gone."""

    def submit(self, *args):
        future = engine.Future()
        future.cancel()
        future.set_running_or_notify_cancel()
        return future


def test_a_scheduler_that_is_gone_is_told():
    with pytest.raises(InputError, match="dropped the blocks in flight"):
        list(engine.results(engine.Engine(Dropping(), 2), "", range(9)))


def test_a_block_knows_what_it_is(given):
    block = right(sweep.driver.canonical(given), 3)
    assert isinstance(block, Computed)
    assert block.number == 3
