"""Large and many: what a long session and a large problem do to memory."""

import subprocess
import sys
import tracemalloc

import numpy as np
import psutil
import pytest

import attnflow as af
from attnflow import sweep
from attnflow.simulation import Coarsening, Fixed, Layers
from small_sweep import spec

pytestmark = pytest.mark.slow

MB = 2**20
RUNS = 1000


def resident():
    return psutil.Process().memory_info().rss / MB


def simulate_once(k):
    """A run that nobody made before: another β, another V, another start, one of four methods."""
    rng = np.random.default_rng(k)
    method = [None, Fixed(0.05), Layers(0.25), Coarsening()][k % 4]
    V = None if k % 4 == 3 else rng.standard_normal((3, 3))
    system = af.SA(float(rng.uniform(0.1, 9)), V=V)
    x0 = af.initial.sphere(16, 3, key=k)
    run = af.simulate(system, x0, np.array([0.0, 0.5, 1.0 + 0.25 * (k % 3)]), method=method)
    af.observe.clusters(run.final)
    return float(af.observe.energy(run.final, 1.0))


def test_memory_stays_flat_over_a_thousand_simulations():
    """What is compiled is compiled in the first runs; afterwards nothing is kept of a run."""
    for k in range(100):
        simulate_once(k)
    before = resident()
    seen = {simulate_once(k) for k in range(100, 100 + RUNS)}
    grown = resident() - before
    print(f"\n{RUNS} simulations: {grown:+.1f} MB")
    assert len(seen) == RUNS, "every run was another"
    assert grown < 20


MILLION = """
import resource, sys
import numpy as np
import attnflow as af

n, steps = 10**6, 100
system = af.SA(9.0)
x0 = af.initial.sphere(n, 2, key=0)
start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
run = af.simulate(system, x0, [0.0, 0.01 * steps], method=af.Fixed(0.01, solver="euler"))
grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start) / 2**10
x = np.asarray(run.final)
some = np.random.default_rng(0).choice(n, 20, replace=False)
scores = np.exp(9.0 * (x[some] @ x.T - 1))
mean = (scores @ x) / scores.sum(axis=1, keepdims=True)
exact = mean - (mean * x[some]).sum(axis=1, keepdims=True) * x[some]
error = np.abs(np.asarray(system.velocity(0.0, run.final))[some] - exact).max()
off = np.abs(np.linalg.norm(x, axis=1) - 1).max()
E0, E1 = (float(af.observe.energy(y, 9.0)) for y in (x0[:2000], run.final[:2000]))
print(int(run.steps), error, off, E1 > E0, grown)
"""


def test_a_million_tokens_for_a_hundred_steps():
    """On the circle by harmonics: the drift at the end is that of the whole sum, memory is O(n)."""
    made = subprocess.run([sys.executable, "-c", MILLION], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    steps, error, off, gathered, grown = made.stdout.split()
    print(f"\n10⁶ tokens, {steps} steps: error {error}, off the circle {off}, {grown} MB")
    assert int(steps) == 100
    assert float(error) < 1e-12
    assert float(off) < 1e-12
    assert gathered == "True"
    assert float(grown) < 2000, "n² numbers would be 8 TB"


def test_a_million_cells_are_planned_in_bounded_memory(tmp_path):
    """Each cell is a task of its own here: nothing is computed, and little is held."""
    given = spec(
        realisations=512,
        axes={
            "beta": {"start": 0.1, "stop": 9.0, "count": 1000},
            "system.V": {"start": 0.5, "stop": 2.0, "count": 1000},
        },
    )
    before = resident()
    tracemalloc.start()
    found = sweep.plan(given)
    assert (found.cells, found.tasks, found.compilations) == (10**6, 10**6, 1)
    assert found.runs == 512 * 10**6
    progress = []
    with pytest.raises(KeyboardInterrupt):
        sweep.run(
            given, tmp_path / "store.zarr", on_progress=lambda t: stop_after_planning(t, progress)
        )
    held = tracemalloc.get_traced_memory()[1] / MB
    tracemalloc.stop()
    print(f"\n10⁶ cells: {held:.0f} MB at most, {resident() - before:+.0f} MB in the end")
    assert (progress[0].cells, progress[0].done) == (10**6, 0)
    status = sweep.status(tmp_path / "store.zarr")
    assert (status.cells, status.done) == (10**6, 0)
    assert held < 200
    assert resident() - before < 300


def stop_after_planning(progress, kept):
    """End a sweep at the moment when all of it is planned and nothing has run."""
    kept.append(progress)
    raise KeyboardInterrupt
