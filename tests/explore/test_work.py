"""How a view follows its work, where answers come late, input is refused, and drawing fails."""

import time

import pytest

from attnflow.explore import flow
from attnflow.explore.jobs import INTERNAL_ERROR
from explore.clients import Page

SMALL = "?n=6&d=2&until=2.0"
LONG = "?n=300&d=3&until=100000.0&number=50.0"


def over(jobs, seconds=60):
    """Wait until no work goes on."""
    until = time.monotonic() + seconds
    while jobs.busy():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_late_news_of_an_old_run_does_not_stop_the_new_one(inside):
    page = Page(inside.address, "/", SMALL)
    page.press("flow-run")
    page.wait()
    late = page.values["flow-status.data"]
    page.press("flow-run")
    page.change({"flow-status.data": late})
    assert page.message() == "Running …"
    assert not page.values["flow-timer.disabled"]
    assert "became" in page.wait()
    assert page.values["flow-finished.data"] == page.values["flow-job.data"] != late["job"]


def test_a_run_that_was_replaced_is_not_told_of(inside):
    page = Page(inside.address, "/", SMALL)
    page.press("flow-run")
    first = page.values["flow-job.data"]
    page.press("flow-run")
    second = page.values["flow-job.data"]
    page.values["flow-job.data"] = first
    assert page.tick()
    assert page.message() == "Running …"
    page.values["flow-job.data"] = second
    assert "became" in page.wait()


def test_a_refusal_ends_what_runs_and_stays(inside):
    page = Page(inside.address, "/", LONG)
    page.press("flow-run")
    page.tick()
    running = page.values["flow-status.data"]
    page.fill("flow", n=0)
    assert page.press("flow-run").startswith("Tokens n: ")
    page.change({"flow-status.data": running})
    assert not page.tick()
    assert page.message().startswith("Tokens n: ")
    assert page.values["flow-progress.className"] == "hidden"
    over(inside.jobs)


def test_a_picture_that_cannot_be_drawn_is_told(inside, monkeypatch, caplog):
    def broken(*_):
        raise ZeroDivisionError("a secret of /home/somebody")

    monkeypatch.setattr(flow, "tokens_figure", broken)
    page = Page(inside.address, "/", SMALL)
    page.press("flow-run")
    assert page.wait() == INTERNAL_ERROR
    assert "a secret of /home/somebody" in caplog.text
    assert "a secret" not in "".join(page.said)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_tokens_of_rescaled_attention_are_drawn(inside, n):
    page = Page(inside.address, "/", f"?system=RescaledAttention&start=cube&number=1&n={n}&until=5")
    page.press("flow-run")
    assert "became" in page.wait()
    assert page.values["flow-tokens.figure"]["data"]


def test_the_way_back_shows_what_was_there(inside):
    page = Page(inside.address, "/", SMALL)
    page.change({"flow-number.value": 9.0})
    assert "number=9" in page.values["url.search"]
    page.fill("flow", n=7)
    page.change({"url.search": page.values["url.search"]})
    assert page.values["flow-n.value"] == 7, "what the page wrote itself changes nothing"
    page.change({"url.search": SMALL})
    assert (page.values["flow-n.value"], page.values["flow-number.value"]) == (6, 4.0)
    page.change({"url.search": "?n=5"})
    assert page.values["flow-n.value"] == 5


def test_opening_a_view_writes_no_address(inside):
    """It would be a step of the way back that leads here again."""
    page = Page(inside.address, "/", SMALL)
    page.change({"flow-run.n_clicks": None})
    assert page.values["flow-job.data"]
    assert page.values["url.search"] == SMALL
