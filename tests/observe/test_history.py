import dataclasses
from itertools import pairwise

import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InputError
from attnflow.observe import Merge, cluster_history, clusters, staircase
from attnflow.simulation import Merges


def moving(positions):
    """Numbers on a line as states (T, n, 1)."""
    return np.asarray(positions, float)[:, :, None]


def test_counts_and_merges_of_known_states():
    ts = np.array([0.0, 1.0, 2.5, 4.0, 6.0])
    xs = moving([[0, 1, 5, 6], [0, 1, 5, 5], [1, 1, 5, 5], [1, 1, 5, 6], [3, 3, 3, 3]])
    history = cluster_history((ts, xs))
    np.testing.assert_array_equal(history.times, ts)
    assert history.counts.tolist() == [4, 3, 2, 3, 1]
    assert history.merges == (Merge(1.0, 4, 3), Merge(2.5, 3, 2), Merge(6.0, 3, 1))
    assert history.coarsened is None


def test_the_tolerance_is_that_of_clusters():
    xs = moving([[0, 0.1, 1], [0, 0.1, 0.15]])
    for tol in (1e-3, 0.11, 2.0):
        counts = cluster_history((np.arange(2.0), xs), tol).counts
        assert counts.tolist() == [clusters(x, tol).count for x in xs]


def test_a_staircase_has_every_change():
    assert staircase([0.0, 1.0, 2.0, 3.0, 4.0], [4, 4, 2, 3, 3]) == [(0.0, 4), (2.0, 2), (3.0, 3)]
    assert staircase([7.0], [1]) == [(7.0, 1)]


def test_exact_times_come_from_the_merge_tree():
    """Merges of one step are one, and unused entries of the tree none."""
    time = jnp.array([0.5, 0.5, 7.0, jnp.nan])
    used = jnp.array([1, 2, 3, -1])
    tree = Merges(time, used - 1, used, time, time)
    run = dataclasses.replace(run_of(moving([[0, 1, 2, 3, 9], [3, 3, 3, 3, 9]])), merges=tree)
    history = cluster_history(run)
    assert history.coarsened == (Merge(0.5, 5, 3), Merge(7.0, 3, 2))
    assert history.merges == (Merge(1.0, 5, 2),)


@pytest.mark.slow
def test_exact_times_of_a_run():
    """Each exact merge lies in the interval in which the count was seen to fall."""
    x0 = af.initial.sphere(n=12, d=2, key=3)
    ts = np.concatenate([[0.0], np.geomspace(0.1, 1e9, 60)])
    run = af.simulate(af.SA(6.0), x0, ts, method=af.Coarsening(tol=1e-6))
    history = cluster_history(run, tol=1e-5)
    assert history.counts[0] == 12
    assert history.counts[-1] == 1
    exact = history.coarsened
    assert sum(merge.before - merge.after for merge in exact) == int(run.merges.count) == 11
    assert exact[0].before == 12
    assert exact[-1].after == 1
    assert all(a.after == b.before and a.time < b.time for a, b in pairwise(exact))
    left = np.array([12 - np.sum(np.asarray(run.merges.time) <= t) for t in ts])
    # eps < tol: a pair is counted as one cluster before it is merged, never after
    assert np.all(history.counts <= left)
    last = history.merges[-1]
    assert ts[list(ts).index(last.time) - 1] < exact[-1].time
    assert exact[-1].time == pytest.approx(float(np.nanmax(run.merges.time)))


def run_of(xs):
    """A trajectory with these states, as if it had been run."""
    xs = jnp.asarray(xs)
    final = xs[..., -1, :, :] if xs.ndim > 2 else jnp.zeros((4, 1))
    none = jnp.zeros(xs.shape[:-3], int)
    return af.Trajectory(jnp.arange(2.0), xs, final, None, none, none, "SA", "Layers")


def test_batches_and_other_things_are_refused():
    xs = moving([[0, 1], [1, 1]])
    run = run_of(np.stack([xs, xs, xs]))
    with pytest.raises(InputError, match=r"single run, but it is a batch of shape \(3,\)"):
        cluster_history(run)
    assert cluster_history((run.ts, run.xs[0])).counts.tolist() == [2, 1]
    assert cluster_history(run_of(xs)).counts.tolist() == [2, 1]
    with pytest.raises(InputError, match="something else than states"):
        cluster_history(run_of(np.zeros(2)))
    with pytest.raises(InputError, match=r"shape \(T, n, d\)"):
        cluster_history((np.arange(2.0), np.zeros(2)))
    with pytest.raises(InputError, match="a Trajectory or a pair"):
        cluster_history(xs)
    with pytest.raises(InputError, match="xs must be finite"):
        cluster_history((np.arange(2.0), moving([[0, 1], [np.nan, 1]])))
