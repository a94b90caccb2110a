"""What holds for the runs of every system and method: symmetries, pieces, files, spaces."""

import tempfile
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

import attnflow as af
from attnflow.spec import write_spec
from attnflow.spec.read import parse_spec
from properties.runs import CERTAIN, EVERY, runs
from properties.strategies import (
    ANGLES,
    DIAGONAL,
    ON_ELLIPSOID,
    ON_SPHERE,
    always,
    close,
    orders,
    permuted,
    rotated,
    rotations,
    turned,
)

pytestmark = pytest.mark.slow

AUTONOMOUS = tuple(one for one in CERTAIN if one.name != "RescaledAttention")
TURNING = tuple(one for one in CERTAIN if one.name not in ANGLES)
BOUND = tuple(one for one in EVERY if one.name in (*ON_SPHERE, *ON_ELLIPSOID, "Noisy"))
CONTROLLED = tuple(one for one in EVERY if one.method == "adaptive")


@always(runs(CERTAIN), st.data())
def test_the_order_of_tokens_does_not_matter(run, data):
    order = data.draw(orders(len(run.case.x)))
    close(run.go(case=permuted(run.case, order)).xs, run.go().xs[:, order], run.tolerance)


@always(runs(TURNING), st.data())
def test_the_choice_of_axes_does_not_matter(run, data):
    d = run.case.x.shape[1] // (2 if run.case.name == "CuckerSmale" else 1)
    R = data.draw(rotations(d, axes=run.case.name in DIAGONAL))
    there = run.go(case=rotated(run.case, R)).xs
    close(there, turned(np.asarray(run.go().xs), R), run.tolerance)


@always(runs(AUTONOMOUS), st.integers(-20, 20))
def test_when_it_begins_does_not_matter(run, by):
    close(run.go(ts=run.ts + by).xs, run.go().xs, run.tolerance)


@always(runs())
def test_a_run_in_two_pieces_is_the_whole(run):
    whole = run.go()
    t0, t1, t2 = run.ts
    first = run.go(ts=np.array([t0, (t0 + t1) / 2, t1]))
    second = run.go(x0=first, ts=np.array([t1, (t1 + t2) / 2, t2]))
    close(second.final, whole.final, run.tolerance)
    both = first.join(second)
    close(both.xs[np.array([0, 2, 4])], whole.xs, run.tolerance)


@always(runs())
def test_a_run_that_was_saved_is_the_run(run):
    ran = run.go()
    with tempfile.TemporaryDirectory() as folder:
        loaded = af.Trajectory.load(ran.save(Path(folder) / "run.zarr"))
    for name in ("ts", "xs", "final", "steps", "rejected"):
        ours, theirs = getattr(loaded, name), getattr(ran, name)
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
    assert (loaded.system, loaded.method) == (str(ran.system), str(ran.method))
    further = run.ts[-1] + run.ts - run.ts[0]
    ours, theirs = (run.go(x0=earlier, ts=further) for earlier in (loaded, ran))
    np.testing.assert_array_equal(ours.xs, theirs.xs)


@always(runs(BOUND))
def test_tokens_stay_on_their_sphere_or_ellipsoid(run):
    xs = np.asarray(run.go().xs)
    lengths = np.linalg.norm(xs / run.case.arguments.get("D", 1.0), axis=-1)
    assert np.abs(lengths - 1).max() <= 1e-12


@always(runs(CONTROLLED), st.floats(-8, -4))
def test_an_error_keeps_to_the_tolerance(run, digits):
    """But for what the dynamics itself amplifies, here by no more than 20."""
    rtol, ts = 10.0**digits, 3 * run.ts
    loose, tight = (run.go(ts=ts, method=af.Adaptive(tol, tol)).xs for tol in (rtol, 1e-12))
    close(loose, tight, 20 * rtol)


@always(runs())
def test_a_run_that_is_written_runs_the_same(run):
    text = write_spec(run.case.system, run.case.x, run.ts, run.method, key=run.key)
    again = parse_spec(tomllib.loads(text)).build()
    given = {"method": again.method, "key": again.key, "masses": run.case.masses}
    ours = af.simulate(again.system, again.x0, again.ts, **given)
    theirs = af.simulate(run.case.system, run.case.x, run.ts, **given | {"method": run.method})
    np.testing.assert_array_equal(ours.xs, theirs.xs)
