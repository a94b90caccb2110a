"""Accuracy: closed forms for every method, orders of convergence, tolerances, the sphere."""

import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
import reference
from known import ORTHOGONAL, PAIRS, cosines

METHODS = {
    "dopri8": (af.Adaptive(), 1e-7),
    "tsit5": (af.Adaptive(solver="tsit5"), 1e-7),
    "rk4": (af.Fixed(0.0123), 1e-6),
    "euler": (af.Fixed(1.1e-3, solver="euler"), 2e-2),
    "layers": (af.Layers(1 / 1024), 2e-2),
}


FAST = ("dopri8", "rk4", "layers")
CASES = [(known, method) for known in ORTHOGONAL[:3] for method in FAST]
CASES += [(known, "dopri8") for known in ORTHOGONAL[3:]]
CASES += [(known, "dopri8") for known in PAIRS]
OTHERS = [(ORTHOGONAL[1], method) for method in METHODS if method not in FAST]
CASES += [pytest.param(*case, marks=pytest.mark.slow) for case in OTHERS]


@pytest.mark.parametrize(("known", "method"), CASES)
def test_closed_forms_and_tokens_on_the_sphere_between_steps_too(known, method):
    how, tolerance = METHODS[method]
    xs = af.simulate(known.system, known.x0, known.ts, method=how).xs
    assert np.abs(cosines(xs) - known.cosine[:, None]).max() < tolerance
    assert np.abs(np.linalg.norm(xs, axis=-1) - 1).max() < 1e-12


def start():
    return af.initial.sphere(n=6, d=3, key=2)


def exact(x0, ts, beta=3.0):
    eye = [np.eye(3)]
    return reference.integrate(
        lambda t, x: reference.sphere_velocity(x, eye, eye, eye, beta), np.asarray(x0), ts
    )


@pytest.mark.parametrize(("solver", "order"), [("euler", 1), ("rk4", 4)])
def test_observed_order_of_fixed_steps(solver, order):
    x0, ts = start(), np.array([0.0, 1.0, 2.0])
    truth = exact(x0, ts)[-1]
    steps = np.array([0.1, 0.05, 0.025])
    errors = [
        np.abs(
            af.simulate(af.SA(3.0), x0, ts, method=af.Fixed(dt, solver=solver)).final - truth
        ).max()
        for dt in steps
    ]
    slope = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert slope == pytest.approx(order, abs=0.3)


def test_layers_converge_to_the_flow_with_order_one():
    x0, ts = start(), np.array([0.0, 1.0, 2.0])
    truth = exact(x0, ts)[-1]
    steps = np.array([0.1, 0.05, 0.025])
    errors = [
        np.abs(af.simulate(af.SA(3.0), x0, ts, method=af.Layers(dt)).final - truth).max()
        for dt in steps
    ]
    assert np.polyfit(np.log(steps), np.log(errors), 1)[0] == pytest.approx(1, abs=0.3)


@pytest.mark.parametrize("beta", [1.0, 9.0, 50.0])
@pytest.mark.parametrize("rtol", [1e-5, 1e-8, 1e-11])
def test_adaptive_meets_its_tolerance(beta, rtol):
    x0, ts = start(), np.linspace(0, 10, 23)
    truth = exact(x0, ts, beta)
    xs = af.simulate(af.SA(beta), x0, ts, method=af.Adaptive(rtol, rtol / 100)).xs
    assert np.abs(xs - truth).max() < 10 * rtol


@pytest.mark.slow
def test_tokens_stay_on_the_ellipsoid():
    D = jnp.array([2.0, 1.0, 0.5])
    system = af.EllipsoidAttention(3.0, D=D)
    traj = af.simulate(system, system.retract(start()), np.linspace(0, 5, 33))
    assert np.abs(np.linalg.norm(traj.xs / D, axis=-1) - 1).max() < 1e-12


@pytest.mark.slow
def test_post_norm_runs_as_layers_by_default_and_is_sad_for_unit_diagonal():
    ts = np.array([0.0, 2.0, 5.0])
    ours = af.simulate(af.PostNorm(3.0, D=np.ones(3)), start(), ts)
    assert isinstance(ours.method, af.Layers)
    theirs = af.simulate(af.SA(3.0), start(), ts, method=af.Layers(1.0))
    assert np.abs(ours.xs - theirs.xs).max() < 1e-14


def test_a_fixed_step_that_does_not_divide_the_span_is_shortened():
    traj = af.simulate(af.SA(3.0), start(), [0.0, 0.5, 1.0], method=af.Fixed(0.3))
    assert int(traj.steps) == 4


@pytest.mark.slow
def test_long_fixed_runs_take_the_right_number_of_steps():
    for method in (af.Fixed(0.1, solver="euler"), af.Layers(0.1)):
        traj = af.simulate(af.SA(3.0), start(), [0.0, 123.4, 700.0], method=method)
        assert int(traj.steps) == 7000


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_bad_numbers_in_methods_are_named(bad):
    for make, name in ((af.Fixed, "dt"), (af.Layers, "dt"), (af.Adaptive, "rtol")):
        with pytest.raises(af.InputError, match=name):
            make(bad)


def test_unknown_solvers_name_the_nearest():
    with pytest.raises(af.InputError, match=r"did you mean 'dopri8'"):
        af.Adaptive(solver="dopri5")
    with pytest.raises(af.InputError, match=r"did you mean 'rk4'"):
        af.Fixed(0.1, solver="RK-4")
    with pytest.raises(af.InputError, match="max_steps"):
        af.Adaptive(max_steps=0)
