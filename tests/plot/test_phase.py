import numpy as np
import pytest
import xarray

from attnflow import sweep
from attnflow.errors import InputError
from attnflow.plot import Curve, phase_diagram, sweep_diagram
from attnflow.theory import transition_time
from small_sweep import spec

T, BETA = np.linspace(0, 10, 21), np.linspace(1, 5, 9)


@pytest.fixture
def data():
    """Two panels; in the second the transition is at t = β."""
    steps = np.stack([np.zeros((9, 21)), (T[None] > BETA[:, None]).astype(float)])
    counts = np.stack([np.full((9, 21), 3.0), 1 + 3.0 * (T[None] < BETA[:, None])])
    dims = ("d", "beta", "time")
    return xarray.Dataset(
        {"p": (dims, steps), "k": (dims, counts)},
        coords={"d": [2, 8], "beta": BETA, "time": T},
    )


def test_panels_show_the_values(data):
    figure = phase_diagram(data, "p", curve=Curve(32, 1e-3), counts="k")
    panels = [ax for ax in figure.axes if ax.collections and ax.get_title()]
    assert [ax.get_title() for ax in panels] == ["$d$ $= 2$", "$d$ $= 8$"]
    for ax, expected in zip(panels, data["p"].values, strict=True):
        mesh = ax.collections[0]
        assert np.array_equal(np.asarray(mesh.get_array()).reshape(9, 21), expected)
        assert mesh.get_clim() == (0.0, 1.0)


def test_the_curve_is_6_12(data):
    figure = phase_diagram(data, "p", curve=Curve(32, 1e-3, normalised=False))
    x, y = figure.axes[0].lines[0].get_data()
    assert np.array_equal(y, BETA)
    assert np.allclose(x, transition_time(BETA, 32, 1e-3, False))


def test_contours_run_where_the_number_of_clusters_changes(data):
    figure = phase_diagram(data.sel(d=[8]), "p", counts="k")
    contour = figure.axes[0].collections[1]
    points = np.concatenate([path.vertices for path in contour.get_paths()])
    assert len(points) > 5
    assert np.abs(points[:, 0] - points[:, 1]).max() < 0.6


def test_a_store_is_drawn_by_what_its_spec_says(tmp_path):
    keep = {"k": {"observable": "cluster_count"}, "p": {"observable": "pairs_clustered"}}
    sweep.run(spec(keep=keep), tmp_path / "store")
    with sweep.load(tmp_path / "store") as data:
        figure = sweep_diagram(data, tmp_path / "phase.png")
    assert (tmp_path / "phase.png").stat().st_size > 5_000
    x, y = figure.axes[0].lines[0].get_data()
    assert np.allclose(x, transition_time(y, 4, 1e-3))


def test_no_curve_where_it_does_not_hold(tmp_path):
    given = spec(system={"name": "SA", "V": -1.0}, keep={"p": {"observable": "pairs_clustered"}})
    sweep.run(given, tmp_path / "store")
    with sweep.load(tmp_path / "store") as data:
        assert not sweep_diagram(data).axes[0].lines


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda data: phase_diagram(data, "q"), "unknown variable 'q'"),
        (lambda data: phase_diagram(data, "p", across="n"), "must vary along time and n"),
        (lambda data: phase_diagram(data * np.nan, "p"), "no cell of the sweep is done"),
        (lambda data: phase_diagram(data.isel(d=[0] * 30), "p"), "30 panels"),
    ],
)
def test_what_cannot_be_drawn(data, call, said):
    with pytest.raises(InputError, match=said):
        call(data)
