"""The page under many visitors; ATTNFLOW_CLIENTS and ATTNFLOW_SECONDS ask for more of it.

The counts are printed: `pytest -s -m slow tests/explore/test_load.py` shows them.
"""

import os
import threading
import time

import pytest
from werkzeug.serving import make_server

from attnflow.explore import create_app
from attnflow.explore.jobs import Jobs
from explore.clients import Page, Server
from explore.crowd import SIZES, Crowd, form_of

CLIENTS = int(os.environ.get("ATTNFLOW_CLIENTS", "20"))
SECONDS = float(os.environ.get("ATTNFLOW_SECONDS", "60"))
GROWTH = 200
"""Megabytes that the server may grow by."""

pytestmark = pytest.mark.slow


def run_each_size(address):
    """Have every size compiled."""
    page = Page(address)
    for k in range(len(SIZES)):
        form = form_of(0, k)
        page.fill("flow", n=form.n, until=form.until, number=form.number)
        page.press("flow-run")
        assert "clusters became" in page.wait(seconds=300)


def is_quiet(server, patience=120):
    """Whether the process comes to rest: it uses (nearly) no time of the processor."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        before = server.cpu
        time.sleep(2)
        if server.cpu - before < 0.2:
            return True
    return False


def check_sound(crowd):
    assert crowd.trouble == []
    assert "Traceback" not in crowd.said
    assert crowd.count["completed"] > 0
    assert crowd.count["cancelled"] > 0
    assert crowd.wrong() == []


def test_many_clients_leave_nothing_behind(tmp_path):
    with Server(tmp_path) as server:
        run_each_size(server.address)
        Crowd(server.address, CLIENTS, 5)
        assert is_quiet(server)
        before = server.resident
        crowd = Crowd(server.address, CLIENTS, SECONDS, first=500)
        assert is_quiet(server), "work goes on that nobody waits for"
        after = server.resident
        print(f"\n{CLIENTS} clients, {SECONDS:g} s: {dict(crowd.count)}; ", end="")
        print(f"{before:.0f} MB before, {after:.0f} MB after; trouble: {crowd.trouble}")
        check_sound(crowd)
        assert after - before < GROWTH
        assert "Traceback" not in server.said()
        assert server.interrupt() == 0


def test_no_thread_works_for_nobody(tmp_path):
    jobs = Jobs()
    server = make_server("127.0.0.1", 0, create_app(tmp_path, jobs).server, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    run_each_size(address)
    crowd = Crowd(address, 6, 10)
    for visitor in crowd.visitors:
        visitor.page.press("flow-run")
        visitor.page.press("flow-cancel")
    until = time.monotonic() + 120
    while jobs.busy() and time.monotonic() < until:
        time.sleep(0.05)
    assert jobs.busy() == 0
    check_sound(crowd)
    jobs.close()
    server.shutdown()
