"""What `simulate` promises beyond accuracy: batches, continuing, saving, time-dependent weights."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate

import attnflow as af
from attnflow.simulation import driver, programs
from attnflow.weights import Redrawn, ginibre

TS = np.linspace(0, 3, 7)
E4 = af.RescaledAttention(V=np.diag([1.0, 0.5, -0.2]))


def start(**more):
    return af.initial.sphere(n=6, d=3, key=2, **more)


def test_shapes_and_dtypes():
    traj = af.simulate(af.SA(2.0), start(batch=(2, 1)), TS)
    assert traj.ts.shape == (7,)
    assert traj.xs.shape == (2, 1, 7, 6, 3)
    assert traj.final.shape == (2, 1, 6, 3)
    assert traj.xs.dtype == np.float64
    assert np.abs(traj.xs[:, :, -1] - traj.final).max() < 1e-14


def test_the_first_save_is_the_start():
    traj = af.simulate(af.SA(2.0), start(), TS)
    assert np.abs(traj.xs[0] - start()).max() < 1e-15


@pytest.mark.parametrize(
    "method", [af.Adaptive(1e-4, 1e-6), pytest.param(af.Layers(0.5), marks=pytest.mark.slow)]
)
def test_float32_in_float32_out(method):
    V = ginibre(3, key=0)
    traj = af.simulate(af.SA(2.0, V=V), start().astype(np.float32), TS, method=method)
    assert traj.xs.dtype == traj.final.dtype == traj.ts.dtype == np.float32
    double = af.simulate(af.SA(2.0, V=V), start(), TS, method=method)
    assert np.abs(np.asarray(traj.final) - np.asarray(double.final)).max() < 1e-3


def test_a_batch_is_a_loop_with_own_step_sizes():
    x0 = jnp.stack([start(), af.initial.clustered(n=6, d=3, clusters=2, spread=0.05, key=0)])
    together = af.simulate(af.SA(20.0), x0, TS)
    apart = [af.simulate(af.SA(20.0), x, TS) for x in x0]
    for i in range(2):
        assert np.abs(together.xs[i] - apart[i].xs).max() < 1e-12
        assert int(together.steps[i]) == int(apart[i].steps)
    assert together.steps[0] != together.steps[1]


@pytest.mark.slow
def test_masses_may_differ_over_a_batch():
    masses = np.array([[1.0, 2, 1, 1, 1, 1], [1, 1, 1, 1, 3, 1]])
    x0 = jnp.stack([start(), start()])
    together = af.simulate(af.SA(2.0), x0, TS, masses=masses)
    for i in range(2):
        alone = af.simulate(af.SA(2.0), x0[i], TS, masses=masses[i])
        assert np.abs(together.xs[i] - alone.xs).max() < 1e-12


@pytest.mark.parametrize(
    ("system", "method", "tolerance"),
    [
        (af.SA(3.0), af.Adaptive(), 1e-8),
        (af.SA(3.0), af.Fixed(0.1), 1e-14),
        (E4, af.Adaptive(), 1e-8),
        (E4, af.Layers(0.5), 1e-14),
    ],
    ids=["SA adaptive", "SA fixed", "E4 adaptive", "E4 layers"],
)
def test_two_halves_are_the_whole(system, method, tolerance):
    masses = np.arange(1.0, 7.0)
    whole = af.simulate(system, start(), TS, method=method, masses=masses)
    first = af.simulate(system, start(), TS[:4], method=method, masses=masses)
    second = af.simulate(system, first, TS[3:], method=method)
    joined = first.join(second)
    assert np.abs(joined.xs - whole.xs).max() < tolerance * max(1, np.abs(whole.xs).max())
    assert np.array_equal(joined.ts, whole.ts)


def test_save_keeps_an_observable_and_the_last_state():
    def energy(t, x):
        return {"energy": af.observe.energy(x, 3.0), "t": t}

    plain = af.simulate(af.SA(3.0), start(batch=(2,)), TS)
    kept = af.simulate(af.SA(3.0), start(batch=(2,)), TS, save=energy)
    assert kept.xs["energy"].shape == (2, 7)
    assert np.allclose(kept.xs["t"], TS)
    direct = jax.vmap(jax.vmap(lambda x: af.observe.energy(x, 3.0)))(plain.xs)
    assert np.allclose(kept.xs["energy"], direct, atol=1e-14)
    assert np.array_equal(kept.final, plain.final)
    again = af.simulate(af.SA(3.0), kept, [3.0, 4.0])
    assert np.isfinite(again.final).all()


def test_a_new_beta_or_weight_compiles_nothing():
    V = ginibre(3, key=0)
    af.simulate(af.SA(2.0, V=V), start(), TS)
    before = programs.begin._cached._cache_size()
    af.simulate(af.SA(7.5, V=2 * V), start(), TS)
    af.simulate(af.SA(jnp.asarray(1.0), V=V), -start(), 2 * TS, method=af.Adaptive(1e-6))
    assert programs.begin._cached._cache_size() == before


@pytest.mark.parametrize("make", [af.Fixed, af.Layers])
def test_a_new_step_or_span_compiles_nothing(make):
    af.simulate(af.SA(2.0), start(), TS, method=make(0.5))
    before = programs.begin._cached._cache_size()
    af.simulate(af.SA(2.0), start(), TS, method=make(0.25))
    af.simulate(af.SA(2.0), start(), 2 * TS, method=make(0.5))
    assert programs.begin._cached._cache_size() == before


def test_chunks_of_steps_change_nothing(monkeypatch):
    whole = af.simulate(af.SA(3.0), start(), TS)
    monkeypatch.setattr(driver._ChunkedRun, "_chunk", lambda self, x: 3)
    pieces = af.simulate(af.SA(3.0), start(), TS)
    assert np.array_equal(pieces.xs, whole.xs)
    assert np.array_equal(pieces.steps, whole.steps)


def test_progress_shows_a_bar_and_changes_nothing(capfd):
    plain = af.simulate(af.SA(3.0), start(), TS)
    shown = af.simulate(af.SA(3.0), start(), TS, progress=True)
    assert "100%" in capfd.readouterr().err
    assert np.array_equal(plain.xs, shown.xs)


def test_progress_shows_a_bar_under_jit(capfd):
    run = jax.jit(lambda x: af.simulate(af.SA(3.0), x, TS, progress=True).final)
    run(start()).block_until_ready()
    jax.effects_barrier()
    assert "100" in capfd.readouterr().err


def test_ctrl_c_keeps_what_was_reached(monkeypatch):
    monkeypatch.setattr(driver._ChunkedRun, "_chunk", lambda self, x: 3)
    looked = []

    def look(self, reached, limit):
        looked.append(float(reached.at.t))
        if len(looked) == 5:
            raise KeyboardInterrupt

    monkeypatch.setattr(driver._ChunkedRun, "_raise_if_stuck", look)
    with pytest.raises(af.Interrupted, match="interrupted at t = ") as caught:
        af.simulate(af.SA(3.0), start(), 10 * TS)
    assert caught.value.time == looked[-1]
    assert caught.value.trajectory.ts[-1] <= looked[-1]
    monkeypatch.undo()
    rest = af.simulate(af.SA(3.0), start(), 10 * TS)
    part = caught.value.trajectory
    assert np.array_equal(part.xs, rest.xs[: len(part.ts)])


def test_ctrl_c_while_the_first_steps_are_compiled_leaves_the_start(monkeypatch):
    begin, calls = programs.begin, []

    def interrupted(*args):
        calls.append(args)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return begin(*args)

    monkeypatch.setattr(programs, "begin", interrupted)
    with pytest.raises(af.Interrupted, match="interrupted at t = 0 of") as caught:
        af.simulate(af.SA(3.0), start(), TS)
    part = caught.value.trajectory
    assert len(part.ts) == 1
    assert np.allclose(part.final, start(), atol=1e-15)


def test_a_function_is_told_of_progress_and_may_end_the_run(monkeypatch):
    monkeypatch.setattr(driver._ChunkedRun, "_chunk", lambda self, x: 3)
    parts = []
    af.simulate(af.SA(3.0), start(), TS, progress=parts.append)
    assert parts == sorted(parts)
    assert parts[0] < 0.9
    assert parts[-1] == pytest.approx(1.0)

    def on_progress(part):
        if part > 0.3:
            raise KeyboardInterrupt

    with pytest.raises(af.Interrupted) as caught:
        af.simulate(af.SA(3.0), start(), TS, progress=on_progress)
    assert 0.3 * TS[-1] < caught.value.time < TS[-1]


def test_a_step_limit_keeps_what_was_reached():
    ts = np.linspace(0, 60, 7)
    with pytest.raises(af.IncompleteRun, match=r"used up its 20 steps.*Raise max_steps") as caught:
        af.simulate(af.SA(3.0), start(), ts, method=af.Adaptive(max_steps=20))
    part = caught.value.trajectory
    whole = af.simulate(af.SA(3.0), start(), ts)
    assert 1 <= len(part.ts) < len(ts)
    assert np.array_equal(part.xs, whole.xs[: len(part.ts)])
    assert part.ts[-1] <= caught.value.time < ts[len(part.ts)]


def test_a_stopped_run_is_continued_from_the_time_that_it_reached(tmp_path):
    """Its last state is later than its last save: taken for that of ts[-1] it shifted all times."""
    ts = np.array([0.0, 1.0, 12.0])
    with pytest.raises(af.IncompleteRun) as caught:
        af.simulate(af.SA(3.0), start(), ts, method=af.Adaptive(max_steps=20))
    part, stop = caught.value.trajectory, caught.value.time
    assert float(part.t_final) == stop > float(part.ts[-1])
    assert f"stopped at t = {stop:g}" in repr(part)
    with pytest.raises(af.InputError, match=rf"ts\[0\] = 1, .*ends at {stop:g}"):
        af.simulate(af.SA(3.0), part, ts[1:])
    part.save(tmp_path / "part.zarr")
    for known in (part, af.Trajectory.load(tmp_path / "part.zarr")):
        later = af.simulate(af.SA(3.0), known, [stop, 12.0])
        whole = known.join(later)
        expected = af.simulate(af.SA(3.0), start(), np.insert(ts, 2, stop))
        np.testing.assert_array_equal(whole.ts, expected.ts)
        np.testing.assert_allclose(whole.xs, expected.xs, atol=1e-7)


def test_what_was_kept_is_left_as_it_is_where_a_run_stops():
    """log 0 is no reason to drop a save time that was reached."""
    few, ts = af.Adaptive(max_steps=20), [0.0, 0.5, 1.0, 12.0]
    with pytest.raises(af.IncompleteRun) as caught:
        af.simulate(af.SA(3.0), start(), ts, method=few, save=lambda t, x: jnp.log(t))
    assert caught.value.trajectory.ts.tolist() == ts[:3]


def test_members_that_stopped_at_different_times_are_continued_one_by_one():
    x0 = af.initial.sphere(8, 3, key=2, batch=2)
    with pytest.raises(af.IncompleteRun) as caught:
        af.simulate(af.SA(3.0), x0, [0.0, 12.0], method=af.Adaptive(max_steps=20))
    part = caught.value.trajectory
    assert len(np.unique(part.t_final)) == 2
    with pytest.raises(af.InputError, match="stopped at different times"):
        af.simulate(af.SA(3.0), part, [float(part.t_final[0]), 12.0])


@pytest.mark.slow
def test_a_failing_member_leaves_the_others_alone():
    x0 = jnp.stack([start(), 1e100 * start()])
    ts = np.arange(0.0, 301.0, 10.0)
    with pytest.raises(af.IncompleteRun, match=r"run 1 of the batch is no longer finite") as caught:
        af.simulate(af.PureAttention(V=1.0), x0, ts, method=af.Fixed(0.5))
    part = caught.value.trajectory
    alone = af.simulate(af.PureAttention(V=1.0), x0[0], ts, method=af.Fixed(0.5))
    assert np.allclose(part.xs[0], alone.xs, rtol=1e-12)
    reached = np.isfinite(part.xs[1]).all(axis=(1, 2))
    assert 5 < reached.sum() < len(ts)
    assert np.array_equal(part.final[1], part.xs[1][reached][-1])
    assert caught.value.time == ts[: len(reached)][reached][-1]


@pytest.mark.parametrize(
    "method", [pytest.param(af.Fixed(1.0), marks=pytest.mark.slow), af.Layers(1.0)]
)
def test_tokens_that_run_away_are_reported_with_what_was_kept(method):
    with pytest.raises(af.IncompleteRun, match="no longer finite") as caught:
        af.simulate(af.PureAttention(), 5 * start(), np.arange(0, 2000.0, 50), method=method)
    part = caught.value.trajectory
    assert np.isfinite(part.xs).all()
    assert np.isfinite(part.final).all()
    assert 3 < len(part.ts) < 40
    assert part.ts[-1] == caught.value.time


def test_weights_as_a_function_of_time():
    def V(t):
        return jnp.array([[jnp.cos(t), -jnp.sin(t), 0], [jnp.sin(t), jnp.cos(t), 0], [0, 0, 1.0]])

    x0 = start()
    ours = af.simulate(af.SA(2.0, V=V), x0, TS, method=af.Adaptive(1e-10, 1e-12)).xs

    def rhs(t, flat):
        x = flat.reshape(6, 3)
        A = np.exp(2 * x @ x.T)
        v = (A / A.sum(axis=1, keepdims=True)) @ x @ np.asarray(V(t)).T
        return (v - np.sum(x * v, axis=1, keepdims=True) * x).ravel()

    theirs = scipy.integrate.solve_ivp(
        rhs, (0, 3), np.ravel(x0), t_eval=TS, rtol=1e-11, atol=1e-12, method="DOP853"
    ).y.T.reshape(7, 6, 3)
    assert np.abs(ours - theirs).max() < 1e-8


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "tolerance"),
    [(af.Adaptive(), 1e-7), pytest.param(af.Fixed(0.05), 1e-5, marks=pytest.mark.slow)],
    ids=["adaptive", "fixed"],
)
def test_redrawn_weights_are_constant_between_draws(method, tolerance):
    V = Redrawn(partial(ginibre, 3), every=0.5, key=4)
    ours = af.simulate(af.SA(2.0, V=V), start(), TS, method=method)
    x = start()
    for i, t in enumerate(TS[:-1]):
        x = af.simulate(af.SA(2.0, V=V(t + 0.25)), x, [t, TS[i + 1]]).final
        assert np.abs(ours.xs[i + 1] - x).max() < tolerance


@pytest.mark.slow
def test_redrawn_weights_in_layers_change_at_their_layer():
    V = Redrawn(partial(ginibre, 3), every=0.5, key=4)
    ours = af.simulate(af.SA(2.0, V=V), start(), [0.0, 3.0], method=af.Layers(0.1)).final
    x = start()
    for k in range(30):
        x = af.SA(2.0, V=V(0.1 * k + 0.05)).layer(k, x, 0.1)
    assert np.abs(ours - x).max() < 1e-12


def test_n_20000_takes_a_step_within_a_gigabyte():
    x0 = af.initial.sphere(n=20_000, d=3, key=0)
    step = jax.jit(lambda x: af.SA(4.0).velocity(0.0, x)).lower(x0).compile()
    assert step.memory_analysis().temp_size_in_bytes < 2**29
    traj = af.simulate(af.SA(4.0), x0, [0.0, 0.1], method=af.Layers(0.1))
    assert np.isfinite(traj.final).all()


@pytest.mark.parametrize("system", [af.SA(1.0, V=-1.0), af.PostNorm(1.0, D=np.ones(2), V=-1.0)])
def test_a_layer_that_leads_to_the_origin_ends_the_run(system):
    """One token, V = −I, Δt = 1: x − x has no direction."""
    x0 = np.array([[0.6, 0.8]])
    with pytest.raises(af.IncompleteRun, match="to the origin, which has no direction") as caught:
        af.simulate(system, x0, [0.0, 1.0, 2.0], method=af.Layers(dt=1.0))
    np.testing.assert_allclose(caught.value.trajectory.xs, x0[None], rtol=1e-15)
