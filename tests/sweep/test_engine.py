import signal
import sys
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from attnflow.errors import InputError
from attnflow.sweep import engine as module
from attnflow.sweep.engine import Engine, engine, results


class Watched(ThreadPoolExecutor):
    """Counts the tasks that it holds."""

    held = most = 0

    def submit(self, *args):
        future = super().submit(*args)
        self.held += 1
        self.most = max(self.most, self.held)
        future.add_done_callback(self.leave)
        return future

    def leave(self, future):
        self.held -= 1


@pytest.fixture
def counted(monkeypatch):
    monkeypatch.setattr(module, "compute", lambda spec, number: {"block": number})


def test_few_blocks_are_in_flight(counted):
    pool = Watched(2)
    found = list(results(Engine(pool, 3), "", range(500)))
    assert sorted(number for number, _ in found) == list(range(500))
    assert all(result == {"block": number} for number, result in found)
    assert pool.most <= 3


def test_numbers_are_drawn_as_they_are_needed(counted):
    taken = []

    def numbers():
        for number in range(100):
            taken.append(number)
            yield number

    stream = results(Engine(ThreadPoolExecutor(1), 2), "", numbers())
    next(stream)
    assert len(taken) <= 3
    stream.close()


def test_a_failure_does_not_stop_the_rest(monkeypatch):
    def compute(spec, number):
        return 1 // (number - 3)

    monkeypatch.setattr(module, "compute", compute)
    found = dict(results(Engine(ThreadPoolExecutor(2), 2), "", range(6)))
    assert isinstance(found.pop(3), ZeroDivisionError)
    assert len(found) == 5


class Done:
    """An executor whose tasks are done at once."""

    def submit(self, fn, spec, number):
        future = Future()
        future.set_result({"block": number})
        return future


class Dying:
    """Something during whose finaliser Ctrl-C is pressed: Python ignores exceptions there."""

    def __del__(self):
        signal.raise_signal(signal.SIGINT)


def interrupted(monkeypatch, press):
    """The blocks that came, one at a time; `press(k)` is called while the k-th is awaited."""
    calls = []

    def wait(running, timeout, return_when):
        calls.append(len(running))
        press(len(calls))
        return {next(iter(running))}, set()

    monkeypatch.setattr(module, "wait", wait)
    found = []
    with pytest.raises(KeyboardInterrupt):
        found.extend(number for number, _ in results(Engine(Done(), 4), "", range(100)))
    return found


def test_interruption_keeps_what_is_in_flight(monkeypatch):
    before = signal.getsignal(signal.SIGINT)
    found = interrupted(monkeypatch, lambda k: Dying() if k == 3 else None)
    assert found == [0, 1, 2, 3, 4, 5], "two before, the four in flight, and no more"
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_interruption_does_not_wait(monkeypatch):
    assert interrupted(monkeypatch, lambda k: signal.raise_signal(signal.SIGINT)) == [0]


@pytest.mark.slow
def test_nobody_answers():
    with (
        pytest.raises(InputError, match=r"nothing answers at tcp://127\.0\.0\.1:9"),
        engine(None, "tcp://127.0.0.1:9"),
    ):
        pass


def test_an_address_that_is_none():
    with pytest.raises(InputError, match="scheduler"), engine(None, "what://ever"):
        pass


def test_without_dask_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    said = r'workers need Dask, which is not installed: pip install "attnflow\[sweep\]"'
    with pytest.raises(InputError, match=said), engine(workers=1, scheduler=None):
        pass
