"""What a phase diagram draws, and which run a click in it opens."""

import csv
import io

import pytest
import xarray

from attnflow import sweep
from attnflow.errors import InputError
from attnflow.explore.diagram import Diagram, open_diagram
from attnflow.explore.form import Form
from attnflow.explore.phase import DOWNLOADS
from attnflow.plot import Curve
from small_sweep import spec

KEEP = {"together": {"observable": "pairs_clustered", "delta": 0.01}}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A sweep along β and d."""
    path = tmp_path_factory.mktemp("sweep") / "done.zarr"
    start = {"name": "sphere", "n": 4}
    axes = {"d": [3, 2], "beta": [0.5, 1.0]}
    sweep.run(spec(keep=KEEP, start=start, axes=axes, title="Together"), path)
    return path


def test_what_was_kept_is_drawn_not_its_error(store, monkeypatch):
    """However the variables of the store are ordered."""
    load = sweep.load
    for order in (["unfinished", "together_error", "together"], ["together", "together_error"]):
        monkeypatch.setattr(sweep, "load", lambda path, order=order: load(path)[order])
        diagram = open_diagram(store)
        assert diagram.variable == "together"
        assert diagram.curve == Curve(4, 0.01, True)
    content = DOWNLOADS["csv"].content(None, diagram)
    rows = list(csv.DictReader(io.StringIO(content)))
    assert [float(row["together"]) for row in rows] == diagram.data[
        "together"
    ].values.ravel().tolist()


def test_the_part_that_is_drawn_is_named_and_is_what_a_click_opens(store):
    diagram = open_diagram(store)
    assert diagram.title == "Together, d = 3"
    form = diagram.flow(1.0, 0.5)
    assert (form.system, form.n, form.d, form.number, form.until) == ("SA", 4, 3, 0.5, 2.0)


def test_a_store_without_such_a_number(tmp_path):
    sweep.run(
        spec(keep=KEEP, system={"name": "SA", "beta": 1.0}, axes={"n": [2, 3]}),
        tmp_path / "done.zarr",
    )
    with pytest.raises(InputError, match="keeps no number that varies in time and along beta"):
        open_diagram(tmp_path / "done.zarr")


def clicked(**changes):
    """The form for a place of a sweep."""
    made = spec(keep=KEEP, **changes).model_dump(exclude_none=True)
    return Diagram(xarray.Dataset(), made, "together", {}).flow(3.0, 2.0)


def test_a_click_opens_the_run_that_is_there():
    start = {"name": "orthogonal", "n": 4, "d": 8, "reduced": True}
    form = clicked(system={"name": "USA", "V": -1}, start=start)
    wanted = {"start": "orthogonal", "n": 4, "d": 8, "values": "minus identity", "until": 4.5}
    assert form == Form.preset("USA").model_copy(update=wanted | {"number": 2.0})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"system": {"name": "SA", "mask": "causal"}}, "its form has no place for mask = 'causal'"),
        ({"system": {"name": "SA", "V": 2.0}}, "its form has no place for V = 2.0"),
        ({"system": {"name": "SA", "V": [[1, 0], [0, 2]]}}, "its form has no place for V = "),
        ({"start": {"name": "sphere", "n": 4, "d": 512}}, "Dimension d: input should be less"),
        ({"start": {"name": "cube", "n": 4, "d": 2, "side": 3.0}}, "no place for side = 3.0"),
        ({"start": {"tokens": [[1.0, 0.0]]}}, "no place for tokens = "),
    ],
)
def test_a_run_that_the_form_cannot_hold_is_not_another_one(changes, said):
    with pytest.raises(InputError, match=r"^Flow cannot show this run: ") as error:
        clicked(**changes)
    assert said in str(error.value)
