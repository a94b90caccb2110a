"""`attnflow explore` as a process, and what its answers carry."""

import contextlib
import http.client
import re
import socket
import subprocess
from pathlib import Path

import pytest

from attnflow.cli.explore import PORT
from attnflow.explore.limits import MAX_REQUEST_BYTES
from attnflow.explore.safety import HEADERS
from command import call
from explore.clients import Page, Refused, Server, fetch


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One that finds the usual port taken."""
    with socket.socket() as usual:
        # If it cannot be taken, somebody has it, which is as good.
        with contextlib.suppress(OSError):
            usual.bind(("127.0.0.1", PORT))
            usual.listen()
        with Server(tmp_path_factory.mktemp("explore")) as made:
            yield made


def test_it_says_where_it_is(server):
    assert re.search(
        r"attnflow explore is at http://127\.0\.0\.1:\d+/, until Ctrl-C", server.said()
    )
    assert not server.address.endswith(f":{PORT}/")
    status, headers, text = fetch(server.address)
    assert status == 200
    assert "attnflow explore" in text
    for name, value in HEADERS.items():
        assert headers[name] == value


@pytest.mark.parametrize("path", ["_dash-layout", "_dash-dependencies", "assets/explore.js", "no"])
def test_every_answer_has_the_headers(server, path):
    _, headers, _ = fetch(server.address + path)
    assert {name: headers[name] for name in HEADERS} == HEADERS


def test_it_listens_to_this_machine_alone(server):
    port = int(server.address.rstrip("/").split(":")[-1])
    table = Path("/proc/net/tcp")
    if not table.exists():
        pytest.skip("needs /proc")
    lines = [line.split() for line in table.read_text().splitlines()[1:]]
    at = {
        where for _, where, _, state, *_ in lines if state == "0A" and where.endswith(f"{port:04X}")
    }
    assert at == {f"0100007F:{port:04X}"}


def test_every_visitor_has_a_name_of_its_own(server):
    names = {Page(server.address).visitor for _ in range(5)}
    assert len(names) == 5
    assert min(map(len, names)) >= 24


def test_every_part_shows(server):
    for path in ("/", "/phase", "/theorems", "/model", "/nowhere"):
        Page(server.address, path)
    for search in ("?n=5&number=2", "?n=many", "?" + "&" * 100 + "a=1" * 3, "?%00=%ff&n=%00"):
        Page(server.address, "/", search)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"n": 5000}, "Tokens n: input should be less than or equal to 2000"),
        ({"n": None}, "Tokens n: empty, or no whole number from 1 to 2,000."),
        ({"n": 2000, "d": 60}, "Tokens n: 2000 tokens in R^60"),
        ({"values": "typed", "values_typed": "1 0; 0 x"}, "V: only numbers can be typed here"),
        ({"until": -1}, "Until t: input should be greater than 0"),
    ],
)
def test_a_run_that_is_refused(server, fields, said):
    page = Page(server.address)
    page.fill("flow", **fields)
    assert page.press("flow-run").startswith(said)
    assert page.values.get("flow-job.data") is None
    assert "Traceback" not in "".join(page.said)


def test_others_runs_are_not_seen(server):
    mine, other = Page(server.address), Page(server.address)
    mine.fill("flow", n=5, until=1.0)
    mine.press("flow-run")
    other.change({"flow-job.data": mine.values["flow-job.data"]})
    other.tick()
    assert "no longer kept" in other.message()
    assert other.values.get("flow-finished.data") is None
    mine.press("flow-cancel")


def test_an_answer_to_nonsense_is_short(server):
    page = Page(server.address)
    for data in ({}, [], {"output": "no.such"}, {"output": "part.children", "inputs": "x"}):
        with pytest.raises(Refused) as error:
            page.post(data)
        assert "Traceback" not in str(error.value)
        assert str(Path.cwd()) not in page.said[-1]


def test_a_request_that_is_too_large(server):
    status, _, _ = fetch(f"{server.address}_dash-update-component", {"a": "b" * MAX_REQUEST_BYTES})
    assert status == 413


def test_a_body_of_unknown_length_is_refused(server):
    """One that comes in pieces could have no end."""
    at = server.address.removeprefix("http://").rstrip("/")
    headers = {"Content-Type": "application/json", "Transfer-Encoding": "chunked"}
    with contextlib.closing(http.client.HTTPConnection(at, timeout=60)) as connection:
        path = "/_dash-update-component"
        connection.request("POST", path, iter([b"{}"]), headers, encode_chunked=True)
        assert connection.getresponse().status == 411


@pytest.mark.parametrize(("host", "warned"), [("0.0.0.0", True), ("localhost", False)])
def test_it_warns_where_others_are_let_in(tmp_path, host, warned):
    with Server(tmp_path, "--host", host) as server:
        server.interrupt(120)
        assert ("admits everyone who can reach this machine" in server.said()) == warned


def test_a_port_that_is_taken(server, tmp_path):
    port = server.address.rstrip("/").split(":")[-1]
    code, said = call("explore", tmp_path, "--port", port)
    assert code == 2
    assert said == (
        f"error: host or port: cannot listen on 127.0.0.1:{port}: Address already in use. "
    )


def test_a_folder_that_is_none(tmp_path):
    code, said = call("explore", tmp_path / "nowhere")
    assert code == 2
    assert said == f"error: folder: {tmp_path / 'nowhere'} is not a folder. "


@pytest.mark.parametrize("port", ["0", "65536", "http"])
def test_a_port_that_is_none(tmp_path, port):
    code, said = call("explore", tmp_path, "--port", port)
    assert code == 2
    assert "--port" in said


def test_ctrl_c_ends_work_too(tmp_path):
    """While a run of a minute goes on; no process is left, and nobody answers."""
    with Server(tmp_path) as server:
        page = Page(server.address)
        page.fill("flow", n=300, d=3, until=1e5, number=50.0)
        assert page.press("flow-run") == "Running …"
        page.tick()
        assert page.message() == "Running …"
        parents = f"ps -o pid= --ppid {server.process.pid}"
        assert server.interrupt(120) == 0
        assert server.said().splitlines()[1:] == ["closing"]
        left = subprocess.run(parents.split(), capture_output=True, text=True, check=False)
        assert left.stdout.split() == []
        with pytest.raises(OSError, match="refused"):
            fetch(server.address)
