"""Trajectories: labels, disk and back, what they print."""

import json
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import attnflow as af

X0 = af.initial.sphere(n=5, d=3, key=0)
TS = [0.0, 0.5, 2.0]


@pytest.fixture(scope="module")
def run():
    return af.simulate(af.SA(2.0), X0, TS, masses=np.arange(1.0, 6.0))


@pytest.fixture(scope="module")
def batch():
    return af.simulate(af.SA(2.0), X0 * np.ones((2, 1, 1)), TS)


def test_labels(run, batch):
    data = run.to_xarray()
    assert data["x"].dims == ("time", "token", "dim")
    assert data["mass"].dims == ("token",)
    assert np.array_equal(data["time"], TS)
    assert np.array_equal(data["x"].sel(time=0.5), run.xs[1])
    assert data.attrs["system"] == "SA(beta=2)"
    assert data.attrs["method"].startswith("Adaptive(rtol=1e-08")
    assert batch.to_xarray()["x"].dims == ("batch", "time", "token", "dim")


@pytest.mark.parametrize("which", ["run", "batch"])
def test_save_and_load_give_it_back(which, request, tmp_path):
    traj = request.getfixturevalue(which)
    path = traj.save(tmp_path / "folder" / "run.zarr")
    back = af.Trajectory.load(path)
    for name in ("ts", "xs", "final", "steps", "rejected"):
        assert np.array_equal(getattr(back, name), getattr(traj, name))
    assert (back.masses is None) == (traj.masses is None)
    assert back.system == str(traj.system)
    assert "SA(beta=2)" in repr(back)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(xarray.open_zarr(path)["x"], traj.xs)


@pytest.mark.slow
def test_float32_stays_float32_on_disk(tmp_path):
    traj = af.simulate(af.SA(2.0), X0.astype(np.float32), TS)
    back = af.Trajectory.load(traj.save(tmp_path / "run.zarr"))
    assert back.xs.dtype == np.float32


def test_a_loaded_run_is_continued(run, tmp_path):
    back = af.Trajectory.load(run.save(tmp_path / "run.zarr"))
    ours = af.simulate(af.SA(2.0), back, [2.0, 3.0])
    theirs = af.simulate(af.SA(2.0), run, [2.0, 3.0])
    assert np.array_equal(ours.xs, theirs.xs)
    assert np.array_equal(ours.masses, run.masses)


def test_saving_replaces_a_store_and_nothing_else(run, batch, tmp_path):
    path = tmp_path / "run.zarr"
    batch.save(path)
    run.save(path)
    assert af.Trajectory.load(path).final.shape == (5, 3)
    assert [p.name for p in tmp_path.iterdir()] == ["run.zarr"]
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(af.InputError, match=r"notes\.txt exists and is no store of a run"):
        run.save(tmp_path / "notes.txt")
    (tmp_path / "folder").mkdir()
    with pytest.raises(af.InputError, match="no store of a run"):
        run.save(tmp_path / "folder")


def test_a_failed_save_leaves_the_old_store(run, tmp_path, monkeypatch):
    path = run.save(tmp_path / "run.zarr")

    def fail(self, *args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(xarray.Dataset, "to_zarr", fail)
    with pytest.raises(OSError, match="disk full"):
        run.save(path)
    monkeypatch.undo()
    assert np.array_equal(af.Trajectory.load(path).xs, run.xs)
    assert [p.name for p in tmp_path.iterdir()] == ["run.zarr"]


def test_what_is_no_store_is_refused(run, tmp_path):
    with pytest.raises(af.InputError, match="no store at"):
        af.Trajectory.load(tmp_path / "nothing.zarr")
    (tmp_path / "file.zarr").write_text("no store")
    with pytest.raises(af.InputError, match="no Zarr store"):
        af.Trajectory.load(tmp_path / "file.zarr")
    other = xarray.Dataset({"y": ("t", np.arange(3))})
    other.to_zarr(tmp_path / "other.zarr", consolidated=False)
    with pytest.raises(af.InputError, match="not of an attnflow trajectory"):
        af.Trajectory.load(tmp_path / "other.zarr")
    damaged = run.save(tmp_path / "damaged.zarr")
    (damaged / "x" / "zarr.json").write_text("{")
    with pytest.raises(af.InputError, match="damaged"):
        af.Trajectory.load(damaged)


def test_join_refuses_what_does_not_follow(run):
    with pytest.raises(af.InputError, match="join"):
        run.join(run)


def test_repr_says_what_happened(run, batch):
    said = repr(run)
    assert "SA(beta=2)" in said
    assert "5 tokens in R^3" in said
    assert "3 times from 0 to 2" in said
    assert f"{int(run.steps)} steps" in said
    assert "2 runs of 5 tokens" in repr(batch)


@pytest.mark.slow
def test_a_trajectory_passes_through_jit(run):
    moved = jax.jit(lambda traj: traj.final + 1)(run)
    assert np.array_equal(moved, run.final + 1)
    inside = jax.jit(lambda x: af.simulate(af.SA(2.0), x, TS))(X0)
    assert np.abs(inside.final - af.simulate(af.SA(2.0), X0, TS).final).max() < 1e-9
    json.dumps(inside.to_xarray().attrs)


@pytest.mark.slow
def test_save_of_a_single_observable_is_labelled():
    traj = af.simulate(af.SA(2.0), X0, TS, save=lambda t, x: af.observe.overlaps(x))
    assert traj.to_xarray()["x"].dims == ("time", "axis_0", "axis_1")
    several = af.simulate(af.SA(2.0), X0, TS, save=lambda t, x: {"t": t})
    with pytest.raises(af.InputError, match="more than one array"):
        several.to_xarray()


@pytest.mark.parametrize(
    "save",
    [
        lambda t, x: t,
        lambda t, x: x[0],
        lambda t, x: jnp.stack([x @ x.T] * 2),
        lambda t, x: {"t": t, "x": x},
    ],
    ids=["a number", "a row", "three axes", "a table"],
)
def test_what_was_kept_is_joined_along_time(save):
    x0 = af.initial.sphere(n=4, d=3, key=0)
    first = af.simulate(af.SA(1.0), x0, [0.0, 1.0, 2.0], save=save)
    both = first.join(af.simulate(af.SA(1.0), first, [2.0, 3.0], save=save))
    whole = af.simulate(af.SA(1.0), x0, [0.0, 1.0, 2.0, 3.0], save=save)
    assert both.ts.tolist() == whole.ts.tolist()
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-7), both.xs, whole.xs)
    with pytest.raises(af.InputError, match="no positions"):
        _ = both.positions
