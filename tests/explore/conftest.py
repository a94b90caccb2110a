"""A real server and a real browser, for the tests that look at the page."""

import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from werkzeug.serving import make_server

from attnflow import sweep
from attnflow.explore import create_app
from attnflow.explore.jobs import Jobs
from checkpoints import HERE, minilm
from small_sweep import spec

SOFTWARE_GL = ["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
"""Chromium draws in space without a graphics card."""


@pytest.fixture(scope="session")
def offered(tmp_path_factory):
    """A folder as a user may have it: a model, a sweep that is done, and something beside it."""
    folder = tmp_path_factory.mktemp("offered")
    try:
        model = minilm()
    except pytest.skip.Exception:
        model = HERE / "bert"
    shutil.copytree(model, folder / "models" / "trained")
    keep = {"together": {"observable": "pairs_clustered", "delta": 0.01}}
    sweep.run(spec(keep=keep), folder / "done.zarr")
    return folder


@pytest.fixture(scope="session")
def server(offered, tmp_path_factory):
    """The address of `attnflow explore`, in a process of its own."""
    log = tmp_path_factory.mktemp("log") / "stderr.txt"
    command = [sys.executable, "-m", "attnflow", "explore", str(offered)]
    with (
        log.open("w") as stderr,
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env=os.environ | {"COLUMNS": "200"},
        ) as process,
    ):
        said = process.stdout.readline()
        found = re.search(r"http://\S+/", said)
        assert found, (said, log.read_text())
        yield found[0].rstrip("/")
        process.terminate()
        process.wait(30)
    assert "Traceback" not in log.read_text()


@pytest.fixture(scope="module")
def inside(tmp_path_factory):
    """The page served from this process, so that a test can change what is behind it."""
    jobs = Jobs()
    app = create_app(tmp_path_factory.mktemp("inside"), jobs)
    served = make_server("127.0.0.1", 0, app.server, threaded=True)
    threading.Thread(target=served.serve_forever, daemon=True).start()
    yield SimpleNamespace(address=f"http://127.0.0.1:{served.server_port}", jobs=jobs)
    served.shutdown()
    jobs.close()


@pytest.fixture(scope="session")
def browser():
    """Debian's Chromium, driven by Playwright."""
    playwright = pytest.importorskip("playwright.sync_api")
    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if path is None:
        pytest.skip("there is no chromium here")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage", *SOFTWARE_GL]
        )
        yield browser
        browser.close()


@pytest.fixture
def visit(browser, server):
    """Opens pages, each as a visitor of its own; in the end none may have said an error.

    With reduced motion a run does not play by itself, which takes long without a graphics card.
    """
    contexts, errors = [], []

    def open_page(address, width=1280, motion="reduce"):
        size = {"width": width, "height": 1000}
        contexts.append(browser.new_context(viewport=size, reduced_motion=motion))
        page = contexts[-1].new_page()
        page.set_default_timeout(300_000)
        page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(server + address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert errors == []


@pytest.fixture(scope="session")
def screenshots(tmp_path_factory):
    """Where pictures of the page are kept: ATTNFLOW_SCREENSHOTS, if someone wants to see them."""
    folder = os.environ.get("ATTNFLOW_SCREENSHOTS")
    if folder is None:
        return tmp_path_factory.mktemp("screenshots")
    Path(folder).mkdir(parents=True, exist_ok=True)
    return Path(folder)
