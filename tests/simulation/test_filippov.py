"""Hardmax runs: the branches of Example 9.3, closed forms, and the inclusion they all solve."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import nnls

import attnflow as af
from attnflow.errors import IncompleteRun, InputError

EXAMPLE = np.array([[1.0, 1.0], [-1.0, 1.0], [0.0, 0.0]])  # [P] Example 9.3
TS = np.linspace(0, 2, 9)
TURN = np.array([[1.0, 0.6], [-0.6, 1.0]])


def states(system, x0, ts=TS, **options):
    return np.asarray(af.simulate(system, x0, ts, **options).xs)


def outside_inclusion(system, x0, t, rule, step=1e-4):
    """How far central differences of a run are from conv{V(z_j − z_i) : j ∈ C_i} at time t.

    C_i is the plain argmax of the scores, up to what the run errs; the distance to the hull is a
    non-negative least-squares problem. At an event between the three times it is not small.
    """
    M = _matrix(system.heads.Q).T @ _matrix(system.heads.K)
    V = _matrix(system.heads.V)
    ts = [0.0, t - step, t, t + step]
    before, z, after = states(system, x0, ts, method=af.Filippov(rule))[1:]
    scores = z @ M @ z.T
    worst = 0.0
    for i, v in enumerate((after - before) / (2 * step)):
        C = scores[i] >= scores[i].max() - 1e-7 * np.abs(scores).max()
        corners = (z[C] - z[i]) @ V.T
        big = 1e4  # makes the weights sum to 1
        _, distance = nnls(np.vstack([corners.T, big * np.ones(C.sum())]), np.append(v, big))
        worst = max(worst, distance)
    return worst


def _matrix(W):
    return (1.0 if W is None else 1.0 * np.asarray(W)) * (np.eye(2) if np.ndim(W) == 0 else 1)


@pytest.mark.parametrize(
    ("rule", "target"), [("all", [0.0, 1.0]), ("first", [1.0, 1.0]), ("minimal-norm", [0.0, 0.0])]
)
def test_example_9_3_shows_its_branches(rule, target):
    """z₁ and z₂ stay. z₃ goes to their mean, to z₁, or waits: `(1 − e^{−t})` times a target."""
    xs = states(af.Hardmax(), EXAMPLE, method=af.Filippov(rule))
    assert np.abs(xs[:, :2] - EXAMPLE[:2]).max() == 0
    assert np.abs(xs[:, 2] - (1 - np.exp(-TS))[:, None] * np.array(target)).max() < 1e-9
    assert outside_inclusion(af.Hardmax(), EXAMPLE, 1.0, rule) < 1e-6


def test_the_other_branch_is_that_of_the_other_order():
    xs = states(af.Hardmax(), EXAMPLE[[1, 0, 2]], method=af.Filippov("first"))
    assert np.abs(xs[:, 2] - (1 - np.exp(-TS))[:, None] * EXAMPLE[1]).max() < 1e-9


def test_a_token_that_waited_may_leave_along_another_branch():
    waited = af.simulate(af.Hardmax(), EXAMPLE, [0.0, 1.0], method=af.Filippov("minimal-norm"))
    after = af.simulate(af.Hardmax(), waited, [1.0, 2.0], method=af.Filippov("first"))
    assert np.abs(after.final[2] - (1 - np.exp(-1)) * EXAMPLE[0]).max() < 1e-9


def test_on_the_line_each_side_runs_to_its_end():
    """d = 1, V = I: the outermost tokens stay, all others run to the one on their side of 0."""
    x0 = np.array([[-1.0], [-0.5], [2.0], [0.25]])
    xs = states(af.Hardmax(), x0)[..., 0]
    decay = np.exp(-TS)
    expected = np.stack([-1 + 0 * TS, -1 + 0.5 * decay, 2 + 0 * TS, 2 - 1.75 * decay], axis=1)
    assert np.abs(xs - expected).max() < 1e-9


def test_sliding_is_that_of_the_closed_form():
    """V = −I: z₁ = (2, 2) and z₂ = (−2, 2) stand still and push z₃ away in turn.

    It starts where z₁ pushes, z' = z − z₁, and reaches the tie x = 0. There z₂ pushes back, so it
    slides with weights ½, `y' = y − 2`, down to the origin, where it prefers itself and stays.
    """
    x0 = np.array([[2.0, 2.0], [-2.0, 2.0], [0.1, 0.5]])
    ts = np.linspace(0, 0.8, 9)
    for rule in ("all", "first", "minimal-norm"):
        xs = states(af.Hardmax(V=-1.0), x0, ts, method=af.Filippov(rule))
        hit = np.log(2.0 / 1.9)
        growth = np.exp(ts)
        expected = np.stack(
            [np.where(ts < hit, 2 - 1.9 * growth, 0), np.maximum(2 - 1.5 * growth, 0)], axis=1
        )
        assert np.abs(xs[:, :2] - x0[:2]).max() == 0
        assert np.abs(xs[:, 2] - expected).max() < 1e-8


@pytest.mark.parametrize("V", [1.0, -1.0, TURN], ids=["attract", "repel", "turn"])
@pytest.mark.parametrize("rule", ["all", "first"])
def test_random_runs_solve_the_inclusion(V, rule):
    x0 = np.random.default_rng(3).normal(size=(6, 2))
    system = af.Hardmax(V=V)
    assert min(outside_inclusion(system, x0, t, rule) for t in (0.7, 0.71)) < 1e-6


def test_rotations_and_permutations_commute_with_the_flow():
    rng = np.random.default_rng(4)
    x0, order = rng.normal(size=(6, 2)), rng.permutation(6)
    O = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    for V in (1.0, -1.0):
        run = states(af.Hardmax(V=V), x0)
        assert np.abs(states(af.Hardmax(V=V), x0 @ O.T) - run @ O.T).max() < 1e-7
        assert np.abs(states(af.Hardmax(V=V), x0[order]) - run[:, order]).max() < 1e-7


def test_equal_tokens_are_one_with_a_mass():
    heavy = states(af.Hardmax(), EXAMPLE, masses=[3.0, 1.0, 1.0])
    plain = states(af.Hardmax(), np.repeat(EXAMPLE, [3, 1, 1], axis=0))
    assert np.abs(heavy[:, [0, 0, 0, 1, 2]] - plain).max() == 0
    assert np.abs(heavy[-1, 2] - states(af.Hardmax(), EXAMPLE)[-1, 2]).max() < 1e-9


def test_a_run_returns_an_ordinary_trajectory(tmp_path):
    run = af.simulate(af.Hardmax(), EXAMPLE.astype(np.float32), TS)
    assert run.xs.dtype == np.float32
    assert int(run.steps) > 0
    assert "Filippov(rule='all'" in repr(run)
    assert af.Trajectory.load(run.save(tmp_path / "run.zarr")).xs.shape == (9, 3, 2)
    heights = af.simulate(af.Hardmax(), EXAMPLE, TS, save=lambda t, z: z[2, 1])
    assert np.abs(heights.xs - (1 - np.exp(-TS))).max() < 1e-9


def test_what_it_cannot_do_it_says(untyped):
    with pytest.raises(InputError, match=r"single start \(n, d\)"):
        af.simulate(af.Hardmax(), EXAMPLE[None], TS)
    with pytest.raises(InputError, match=r"Filippov is for Hardmax.*Adaptive"):
        af.simulate(af.SA(1.0), af.initial.sphere(n=3, d=2, key=0), TS, method=af.Filippov())
    with pytest.raises(InputError, match="did you mean 'first'"):
        af.Filippov("frist")
    with pytest.raises(InputError, match=r"outside of jit, grad and vmap"):
        jax.jit(lambda x: af.simulate(af.Hardmax(), x, TS).final)(jnp.asarray(EXAMPLE))
    with pytest.raises(InputError, match="2 heads"):
        af.Hardmax(V=np.ones((2, 2, 2)))
    with pytest.raises(InputError, match="Q must be constant"):
        af.Hardmax(Q=lambda t: jnp.eye(2))
    with pytest.raises(InputError, match="d = 2, but the weights"):
        af.simulate(af.Hardmax(V=np.eye(3)), EXAMPLE, TS)


def test_a_run_out_of_events_keeps_its_part():
    x0 = np.array([[2.0, 2.0], [-2.0, 2.0], [0.1, 0.5]])
    with pytest.raises(IncompleteRun, match="Raise max_events") as error:
        af.simulate(af.Hardmax(V=-1.0), x0, [0.0, 0.02, 0.8], method=af.Filippov(max_events=1))
    assert abs(error.value.time - np.log(2 / 1.9)) < 1e-9
    assert len(error.value.trajectory.ts) == 2
