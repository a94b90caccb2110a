import gc
import threading
import time
import weakref

import pytest

from attnflow.errors import InputError
from attnflow.explore import jobs as module
from attnflow.explore import memory
from attnflow.explore.jobs import NOT_KEPT, WAITING_FOR_OTHERS, WAITING_FOR_OWN, Jobs


@pytest.fixture
def jobs():
    made = Jobs(threads=2)
    yield made
    made.close()


class Work:
    """Work that goes on until it is let go, or told to end."""

    def __init__(self, result=None, deaf=False):
        self.result, self.deaf = result, deaf
        self.begun, self.release, self.over = (threading.Event() for _ in range(3))

    def __call__(self, on_progress):
        self.begun.set()
        try:
            while not self.release.wait(0.005):
                if not self.deaf:
                    on_progress(0.25)
            return self.result
        finally:
            self.over.set()


def settled(jobs, visitor, number, seconds=20):
    """The status once it is over."""
    until = time.monotonic() + seconds
    while (status := jobs.status(visitor, number)).state in ("waiting", "running"):
        assert time.monotonic() < until
        time.sleep(0.005)
    return status


def test_a_result(jobs):
    work = Work(42)
    number = jobs.start("a", work, 60.0)
    assert work.begun.wait(20)
    assert jobs.status("a", number).state == "running"
    assert jobs.busy() == 1
    work.release.set()
    status = settled(jobs, "a", number)
    assert (status.state, status.progress, status.result) == ("done", 1.0, 42)
    jobs.cancel("a")
    assert jobs.status("a", number) == status, "what is done cannot be cancelled"


def test_progress_is_seen(jobs):
    work = Work()
    number = jobs.start("a", work, 60.0)
    until = time.monotonic() + 20
    while jobs.status("a", number).progress != 0.25:
        assert time.monotonic() < until
    work.release.set()


def test_new_work_ends_the_old_of_the_same_visitor_alone(jobs):
    first, other, second = Work("first"), Work("other"), Work("second")
    one = jobs.start("a", first, 60.0)
    apart = jobs.start("b", other, 60.0)
    assert first.begun.wait(20)
    two = jobs.start("a", second, 60.0)
    assert first.over.wait(20), "the old work goes on"
    assert second.begun.wait(20), "the new work waits behind the old"
    status = jobs.status("a", one)
    assert (status.state, status.message) == ("superseded", "another run took its place")
    assert jobs.status("b", apart).state == "running"
    second.release.set()
    assert settled(jobs, "a", two).result == "second"


def test_what_was_asked_for_later_stands(jobs):
    """Requests of one page may overtake each other."""
    new = Work("new")
    number = jobs.start("a", new, 60.0, asked=2.0)
    old = jobs.start("a", lambda on_progress: "old", 60.0, asked=1.0)
    jobs.cancel("a", asked=1.5)
    new.release.set()
    assert settled(jobs, "a", number).result == "new"
    assert jobs.status("a", old).state == "superseded"
    assert settled(jobs, "a", jobs.start("a", lambda on_progress: "third", 60.0, asked=3.0)).result


def test_who_is_waited_for(jobs):
    """Work that was ended and does not know it yet is no other visitor."""
    deaf = [Work(deaf=True) for _ in range(2)]
    for work in deaf:
        jobs.start("a", work, 60.0)
        assert work.begun.wait(20)
    number = jobs.start("a", lambda on_progress: None, 60.0)
    assert jobs.status("a", number).message == WAITING_FOR_OWN
    other = jobs.start("b", lambda on_progress: None, 60.0)
    assert jobs.status("b", other).message == WAITING_FOR_OTHERS
    for work in deaf:
        work.release.set()


def test_many_starts_do_not_pile_up(jobs):
    """Each visitor has one piece of work, however often it is begun."""
    holding = [Work() for _ in range(2)]
    for k, work in enumerate(holding):
        jobs.start(f"holder {k}", work, 60.0)
        assert work.begun.wait(20)
    waiting = [Work() for _ in range(50)]
    for work in waiting:
        number = jobs.start("a", work, 60.0)
    assert jobs.busy() == 3
    assert jobs.status("a", number).state == "waiting"
    for work in (*holding, waiting[-1]):
        work.release.set()
    assert settled(jobs, "a", number).state == "done"
    assert [work.begun.is_set() for work in waiting] == [False] * 49 + [True]


def test_cancelled_while_it_waits(jobs):
    holding, work = [Work(), Work()], Work()
    for k, held in enumerate(holding):
        jobs.start(f"holder {k}", held, 60.0)
    number = jobs.start("a", work, 60.0)
    jobs.cancel("a")
    assert jobs.status("a", number).state == "cancelled"
    assert jobs.busy() == 2
    for held in holding:
        held.release.set()
    jobs.close()
    assert not work.begun.is_set()
    assert jobs.busy() == 0


def test_cancelled_while_it_runs(jobs):
    work = Work()
    number = jobs.start("a", work, 60.0)
    assert work.begun.wait(20)
    jobs.cancel("a")
    assert jobs.status("a", number).state == "cancelled"
    assert work.over.wait(20)
    status = settled(jobs, "a", number)
    assert (status.state, status.message, status.progress) == ("cancelled", "cancelled", 0.25)


def test_work_that_was_ended_counts_until_its_thread_is_free(jobs):
    """It is called cancelled at once, but it is work that goes on."""
    work = Work("late", deaf=True)
    number = jobs.start("a", work, 60.0)
    assert work.begun.wait(20)
    jobs.cancel("a")
    assert jobs.status("a", number).state == "cancelled"
    assert jobs.busy() == 1
    work.release.set()
    until = time.monotonic() + 20
    while jobs.busy():
        assert time.monotonic() < until
    status = jobs.status("a", number)
    assert (status.state, status.result) == ("cancelled", None), "nobody waits for this result"


def test_work_that_takes_too_long(jobs):
    number = jobs.start("a", Work(), 0.05)
    status = settled(jobs, "a", number)
    assert status.state == "cancelled"
    assert status.message == "it took longer than 0.05 s, the limit for a run here"


def test_waiting_is_not_counted(jobs):
    holding = [Work(), Work()]
    for k, work in enumerate(holding):
        jobs.start(f"holder {k}", work, 60.0)
    number = jobs.start("a", lambda on_progress: on_progress(0.5) or "done in time", 0.2)
    time.sleep(0.4)
    for work in holding:
        work.release.set()
    assert settled(jobs, "a", number).result == "done in time"


def test_bad_input_is_told(jobs):
    def work(on_progress):
        raise InputError("n: too many.")

    status = settled(jobs, "a", jobs.start("a", work, 60.0))
    assert (status.state, status.message) == ("failed", "n: too many.")


def test_a_bug_is_told_in_the_log_alone(jobs, caplog):
    def work(on_progress):
        raise ZeroDivisionError("a secret of /home/somebody")

    status = settled(jobs, "a", jobs.start("a", work, 60.0))
    assert status.state == "failed"
    assert status.message == "something went wrong, which the server's log tells"
    assert "a secret of /home/somebody" in caplog.text


def test_what_failed_work_held_is_let_go(jobs):
    class Large:
        pass

    refs = []

    def work(on_progress):
        large = Large()
        refs.append(weakref.ref(large))
        raise InputError("n: too many.")

    settled(jobs, "a", jobs.start("a", work, 60.0))
    jobs.close()
    gc.collect()
    assert refs[0]() is None


def test_others_work_is_not_seen(jobs):
    mine = jobs.start("a", lambda on_progress: "mine", 60.0)
    theirs = jobs.start("b", lambda on_progress: "theirs", 60.0)
    assert settled(jobs, "b", theirs).result == "theirs"
    for visitor, number in (("a", theirs), ("b", mine), ("c", mine), ("a", ""), ("a", "å")):
        status = jobs.status(visitor, number)
        state = "cancelled" if visitor == "c" else "superseded"
        assert (status.state, status.result) == (state, None)
    jobs.cancel("c")
    assert settled(jobs, "a", mine).result == "mine"


def test_those_away_longest_are_forgotten(jobs, monkeypatch):
    monkeypatch.setattr(module, "MAX_VISITORS", 3)
    numbers = {}
    for visitor in "abc":
        numbers[visitor] = jobs.start(visitor, lambda on_progress: "kept", 60.0)
        settled(jobs, visitor, numbers[visitor])
    jobs.status("a", numbers["a"])
    jobs.start("d", lambda on_progress: None, 60.0)
    assert jobs.status("a", numbers["a"]).result == "kept"
    assert jobs.status("b", numbers["b"]).message == NOT_KEPT
    assert jobs.status("c", numbers["c"]).result == "kept"


def test_forgotten_work_is_ended(jobs, monkeypatch):
    monkeypatch.setattr(module, "MAX_VISITORS", 1)
    work = Work()
    jobs.start("a", work, 60.0)
    assert work.begun.wait(20)
    jobs.start("b", lambda on_progress: None, 60.0)
    assert work.over.wait(20)


def test_close_ends_everything():
    jobs = Jobs(threads=2)
    works = [Work() for _ in range(5)]
    numbers = [jobs.start(str(k), work, 60.0) for k, work in enumerate(works)]
    assert works[0].begun.wait(20)
    jobs.close()
    assert jobs.busy() == 0
    assert all(work.over.is_set() or not work.begun.is_set() for work in works)
    states = {jobs.status(str(k), number).state for k, number in enumerate(numbers)}
    assert states == {"cancelled"}
    alive = [thread.name for thread in threading.enumerate() if thread.is_alive()]
    assert not [name for name in alive if name.startswith("attnflow-explore")]


def test_no_results_are_mixed_up(jobs):
    """Thirty visitors start, cancel and look at once."""
    wrong = []

    def visit(visitor):
        for k in range(40):
            number = jobs.start(
                visitor, lambda on_progress, k=k: (on_progress(0.5), (visitor, k))[1], 60.0
            )
            if k % 3 == 0:
                jobs.cancel(visitor)
            status = settled(jobs, visitor, number, 60)
            good = {("done", (visitor, k)), ("cancelled", None)} if k % 3 == 0 else None
            good = good or {("done", (visitor, k))}
            if (status.state, status.result) not in good:
                wrong.append((visitor, k, status))

    threads = [threading.Thread(target=visit, args=(f"visitor {k}",)) for k in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert wrong == []
    jobs.close()
    assert jobs.busy() == 0


def test_full_memory_is_relieved_while_no_work_goes_on(jobs, monkeypatch):
    """Compiled code goes once what runs has ended, before the next begins."""
    full = threading.Event()
    inside = []
    monkeypatch.setattr(memory, "resident", lambda: memory.MAX_BYTES + 1 if full.is_set() else 0)

    def drop():
        inside.append((jobs._memory.running, first.over.is_set(), second.begun.is_set()))
        full.clear()

    monkeypatch.setattr(memory, "drop_compiled", drop)
    first, second = Work("first"), Work("second")
    one = jobs.start("a", first, 60.0)
    assert first.begun.wait(20)
    full.set()
    two = jobs.start("b", second, 60.0)
    time.sleep(0.1)
    assert jobs.status("b", two).state == "waiting"
    first.release.set()
    second.release.set()
    assert settled(jobs, "b", two).result == "second"
    assert inside == [(0, True, False)]
    assert jobs.status("a", one).result == "first", "results stay where dropping code was enough"


def test_results_go_where_dropping_code_is_not_enough(jobs, monkeypatch):
    numbers = {v: jobs.start(v, lambda on_progress: "kept", 60.0) for v in "abc"}
    for visitor, number in numbers.items():
        settled(jobs, visitor, number)
    monkeypatch.setattr(
        memory, "resident", lambda: memory.MAX_BYTES + (1 if len(jobs._by_visitor) > 2 else 0)
    )
    monkeypatch.setattr(memory, "drop_compiled", lambda: None)
    number = jobs.start("d", lambda on_progress: "new", 60.0)
    assert settled(jobs, "d", number).result == "new"
    kept = [v for v in "abc" if jobs.status(v, numbers[v]).state == "done"]
    assert kept == ["c"]
