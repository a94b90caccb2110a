"""What one saves from the page is what was run."""

import csv
import io
import json
import time
import zipfile

import numpy as np
import pytest
import xarray
from PIL import Image

from attnflow import simulate
from attnflow.simulation import Trajectory
from attnflow.spec import read_spec, read_sweep
from explore.visitor import data, drawn, expected, fill, settled

pytestmark = pytest.mark.slow

ASKED = "/?n=6&d=2&until=2.0&number=3.0&key=5"


def saved(page, button):
    """The name and the bytes of what a button saves."""
    with page.expect_download() as download:
        page.click(f"#{button}")
    return download.value.suggested_filename, download.value.path().read_bytes()


@pytest.fixture
def flow(visit):
    page = visit(ASKED)
    settled(page, "flow", "became")
    drawn(page, "flow-tokens")
    # what the form says now is not what was run
    fill(page, "flow-n", 50)
    return page


def test_tokens_as_csv(flow):
    name, content = saved(flow, "flow-save-csv")
    assert name == "attnflow-run.csv"
    rows = np.array(list(csv.reader(io.StringIO(content.decode())))[1:], float)
    run = expected(ASKED)
    np.testing.assert_allclose(rows[-6:, 2:], run.final, atol=1e-12)
    np.testing.assert_array_equal(rows[:, 0], np.repeat(run.ts, 6))


def test_the_run_as_zarr(flow, tmp_path):
    name, content = saved(flow, "flow-save-zarr")
    assert name == "attnflow-run.zarr.zip"
    zipfile.ZipFile(io.BytesIO(content)).extractall(tmp_path)
    np.testing.assert_allclose(Trajectory.load(tmp_path / "run.zarr").xs, expected(ASKED).xs)


def test_the_run_as_a_spec(flow, tmp_path):
    name, content = saved(flow, "flow-save-spec")
    path = tmp_path / name
    path.write_bytes(content)
    run = read_spec(path).build()
    again = simulate(run.system, run.x0, run.ts, method=run.method, key=run.key)
    np.testing.assert_allclose(again.xs, expected(ASKED).xs)


def test_the_run_as_python(flow):
    flow.click("#flow-python >> xpath=ancestor::details/summary")
    lines = flow.inner_text("#flow-python")
    names = {}
    exec(lines, names)
    np.testing.assert_allclose(names["flow"].xs, expected(ASKED).xs)


def test_pictures(flow):
    name, content = saved(flow, "flow-save-png")
    assert name == "attnflow-flow-tokens.png"
    assert Image.open(io.BytesIO(content)).format == "PNG"


def test_a_picture_taken_while_it_plays_is_of_the_moment_that_is_shown(visit):
    page = visit("/?n=6&d=2&until=6.0", motion="no-preference")
    settled(page, "flow", "became")
    page.wait_for_function(
        "document.getElementById('flow-time-label').innerText.startsWith('t = 1')"
    )
    with page.expect_download():
        page.click("#flow-save-png")
    assert page.inner_text("#flow-play") == "Play"
    shown = data(page, "flow-tokens")
    drawn = np.stack([shown["x"], shown["y"]], 1)
    xs = expected("/?n=6&d=2&until=6.0").xs

    def apart():
        t = float(page.inner_text("#flow-time-label").split(",")[0].removeprefix("t ="))
        return np.abs(drawn - xs[round(t / 6.0 * 80)]).max()

    until = time.monotonic() + 10  # the words may come a moment later
    while apart() > 1e-4 and time.monotonic() < until:
        page.wait_for_timeout(100)
    assert apart() <= 1e-4


def test_a_sweep(visit, tmp_path, offered):
    page = visit("/phase?store=done.zarr")
    page.wait_for_selector("#diagram .heatmaplayer image")
    name, content = saved(page, "phase-save-csv")
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    known = xarray.open_zarr(offered / "done.zarr")["together"]
    picked = [float(row["together"]) for row in rows]
    np.testing.assert_allclose(np.sort(picked), np.sort(known.values.ravel()), rtol=1e-6)
    _, content = saved(page, "phase-save-zarr")
    zipfile.ZipFile(io.BytesIO(content)).extractall(tmp_path)
    np.testing.assert_array_equal(xarray.open_zarr(tmp_path / "data.zarr")["together"], known)
    name, content = saved(page, "phase-save-spec")
    (tmp_path / name).write_bytes(content)
    assert list(read_sweep(tmp_path / name).axes) == ["beta"]


def test_a_theorem(visit):
    page = visit("/theorems?id=T6.8&key=2")
    settled(page, "theorem", "It holds")
    page.wait_for_selector("#measured table")
    told = json.loads(saved(page, "theorem-save-json")[1])
    assert (told["id"], told["key"], told["verdict"]) == ("T6.8", 2, "holds")
    rows = list(csv.DictReader(io.StringIO(saved(page, "theorem-save-csv")[1].decode())))
    assert {row["holds"] for row in rows} == {"True"}


def test_a_model(visit, tmp_path):
    page = visit("/model?text=the cat saw a mat")
    settled(page, "model", "layers")
    drawn(page, "model-tokens")
    rows = list(csv.DictReader(io.StringIO(saved(page, "model-save-csv")[1].decode())))
    assert [row["word"] for row in rows[1:4]] == ["the", "cat", "saw"]
    zipfile.ZipFile(io.BytesIO(saved(page, "model-save-zarr")[1])).extractall(tmp_path)
    states = xarray.open_zarr(tmp_path / "data.zarr")["states"]
    assert states.sizes["token"] * states.sizes["layer"] == len(rows)
