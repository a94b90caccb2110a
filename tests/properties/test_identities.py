"""Runs that are others in disguise: batches, masses, spans, precision, observables on the way."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

import attnflow as af
from attnflow.simulation import solve
from properties.runs import Structure, runs
from properties.strategies import (
    always,
    arrays,
    betas,
    close,
    factors,
    masses,
    matrices,
    states,
    unit,
)

pytestmark = pytest.mark.slow

TOGETHER = (
    Structure("SA", heavy=True),
    Structure("RescaledAttention", "numbers", "layers"),
    Structure("Noisy", method="heun"),
)
MERGED = (Structure("SA", "matrices", "rk4"), Structure("RescaledAttention", "numbers", "layers"))
PLANE = ((4, 2),)
"""On the circle many small tasks have a way of their own."""


@always(runs(TOGETHER, PLANE), st.data())
def test_a_batch_is_its_members(run, data):
    """Of a batch of random runs, this holds for the first: each draws its own numbers."""
    name, (n, d) = run.case.name, PLANE[0]
    starts = [data.draw(states(name, n, d, run.case.arguments)) for _ in range(2)]
    batch = run.go(case=run.case._replace(x=np.stack([run.case.x, *starts]))).xs
    alone = [run.case.x] if name == "Noisy" else [run.case.x, *starts]
    for i, x in enumerate(alone):
        close(batch[i], run.go(case=run.case._replace(x=x)).xs, run.tolerance)


@always(runs(MERGED, ((2, 3),)), st.data())
def test_equal_tokens_are_one_token_of_their_mass(run, data):
    labels = np.concatenate(
        [np.arange(2), data.draw(st.lists(st.integers(0, 1), min_size=3, max_size=3))]
    )
    few = run.case._replace(masses=np.bincount(labels, minlength=2).astype(float))
    many = run.case._replace(x=run.case.x[labels], masses=None)
    close(run.go(case=many).xs, run.go(case=few).xs[:, labels], run.tolerance)


@jax.jit
def _whole(system, x, ts):
    """The run in R^d: a start that is traced is not reduced to the span of its tokens."""
    return solve(system, x, ts, method=af.Fixed(0.1)).xs


@always(
    st.sampled_from([af.SA, af.PureAttention]),
    betas,
    matrices(2, 10),
    matrices(2, 10),
    factors,
    arrays(3, 10).map(unit),
)
def test_tokens_in_high_dimension_run_in_their_span(make, beta, Q, K, c, x):
    system, ts = make(beta=beta, Q=Q, K=K, V=c), jnp.array([0.0, 0.5, 1.0])
    close(af.simulate(system, x, ts, method=af.Fixed(0.1)).xs, _whole(system, x, ts), 1e-8)


@always(betas, arrays(4, 2).map(unit), masses(4))
def test_single_precision_stays_single_and_is_nearly_double(beta, x, m):
    ts = [0.0, 0.5, 1.0]
    double = af.simulate(af.SA(beta), x, ts, masses=m)
    single = af.simulate(af.SA(beta), x.astype(np.float32), ts, masses=m)
    assert {a.dtype for a in (single.ts, single.xs, single.final, single.masses)} == {
        np.dtype("float32")
    }
    close(single.xs, double.xs, 1e-3)


def _energy(t, x):
    return af.observe.energy(x, 2.0)


@always(betas, arrays(4, 2).map(unit))
def test_what_is_kept_on_the_way_is_that_of_the_states(beta, x):
    ts = [0.0, 0.5, 1.0]
    states = af.simulate(af.SA(beta), x, ts).xs
    kept = af.simulate(af.SA(beta), x, ts, save=_energy).xs
    close(kept, [_energy(0.0, x) for x in states], 1e-12)
