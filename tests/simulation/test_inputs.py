"""Every bad input of the design gets an error that names the argument."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow import checks
from attnflow.simulation import inputs
from attnflow.systems.attention import as_beta

X0 = af.initial.sphere(n=4, d=3, key=0)
SA = af.SA(2.0)


def bad(match, call):
    with pytest.raises(af.InputError, match=match):
        call()


@pytest.mark.parametrize("shape", [(3,), (0, 3), (4, 0), ()])
def test_shapes_of_x0(shape):
    bad(r"x0 must have shape \(n, d\)", lambda: af.simulate(SA, np.ones(shape), [0, 1]))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_x0_that_is_not_finite(value):
    x = np.array(X0)
    x[2, 1] = value
    bad(r"x0 must be finite.*index \(2, 1\)", lambda: af.simulate(SA, x, [0, 1]))


def test_x0_that_is_no_array_of_numbers():
    bad("x0", lambda: af.simulate(SA, "tokens", [0, 1]))
    bad("x0", lambda: af.simulate(SA, X0.astype(complex), [0, 1]))
    bad("x0", lambda: af.simulate(SA, [[1.0, 0.0], [1.0]], [0, 1]))


def test_tokens_off_the_sphere():
    bad(r"token 0 has 2.*initial\.normalise", lambda: af.simulate(SA, X0.at[0].multiply(2), [0, 1]))
    bad("origin", lambda: af.simulate(SA, X0.at[1].set(0), [0, 1]))
    bad("origin", lambda: af.initial.normalise(X0.at[1].set(0)))


def test_tokens_nearly_on_the_sphere_are_normalised():
    admitted = inputs.check_start(SA, X0 * (1 + 5e-7))
    assert np.abs(np.linalg.norm(admitted, axis=-1) - 1).max() < 1e-12
    admitted = inputs.check_start(SA, X0.astype(np.float32) * np.float32(1 + 5e-5))
    assert admitted.dtype == np.float32
    assert np.abs(np.linalg.norm(admitted, axis=-1) - 1).max() < 1e-6
    bad("norm 1", lambda: af.simulate(SA, X0 * (1 + 5e-6), [0, 1]))


def test_tokens_off_the_ellipsoid():
    system = af.EllipsoidAttention(1.0, D=np.array([2.0, 1.0, 1.0]))
    bad("D⁻¹x", lambda: af.simulate(system, X0, [0, 1]))
    bad("d = 2", lambda: af.simulate(system, np.ones((4, 2)), [0, 1]))


@pytest.mark.parametrize("beta", [np.nan, np.inf, "four", [1.0, 2.0], None])
def test_beta_that_is_no_finite_number(beta):
    bad("beta", lambda: as_beta(beta))


def test_weights_of_wrong_shapes():
    bad(
        "Q and K must have the same height",
        lambda: af.SA(1.0, Q=np.ones((2, 3)), K=np.ones((4, 3))),
    )
    bad("K has 2.*Q is the identity|Q is the identity", lambda: af.SA(1.0, K=np.ones((2, 3))))
    bad("V must be square", lambda: af.SA(1.0, V=np.ones((2, 3))))
    bad("columns", lambda: af.SA(1.0, Q=np.eye(2), K=np.eye(2), V=np.eye(3)))
    bad("same number of heads", lambda: af.SA(1.0, Q=np.ones((2, 3, 3)), K=np.ones((4, 3, 3))))
    bad("V must be finite", lambda: af.SA(1.0, V=np.full((3, 3), np.nan)))
    bad("d = 3.*expect d = 2", lambda: af.simulate(af.SA(1.0, V=np.eye(2)), X0, [0, 1]))


@pytest.mark.parametrize(
    ("ts", "match"),
    [
        ([0.0], "at least two"),
        ([], "at least two"),
        ([[0.0, 1.0]], "at least two"),
        ([0.0, 2.0, 1.0], r"ts must increase.*ts\[2\] = 1"),
        ([0.0, 1.0, 1.0], "ts must increase"),
        ([0.0, np.nan], "ts must be finite"),
        ([0.0, np.inf], "ts must be finite"),
        ("soon", "ts must be increasing"),
    ],
)
def test_times(ts, match):
    bad(match, lambda: af.simulate(SA, X0, ts))


def test_times_that_collapse_in_float32():
    bad("float32", lambda: af.simulate(SA, X0.astype(np.float32), [0.0, 1.0, 1.0 + 1e-9]))


def test_save_times_between_layers_name_the_nearest():
    bad(
        r"ts\[1\] = 0\.7 .*0\.5 and 1",
        lambda: af.simulate(SA, X0, [0.0, 0.7], method=af.Layers(0.5)),
    )


@pytest.mark.parametrize(
    "masses", [np.ones(3), np.zeros(4), -np.ones(4), np.full(4, np.nan), np.ones((2, 4))]
)
def test_masses(masses):
    bad("masses", lambda: af.simulate(SA, X0, [0, 1], masses=masses))


def test_masks():
    bad("did you mean 'causal'", lambda: af.SA(1.0, mask="casual"))
    bad("mask", lambda: af.SA(1.0, mask=np.ones((2, 3), bool)))
    bad("nobody", lambda: af.SA(1.0, mask=np.zeros((3, 3), bool)))
    bad(
        "4 tokens.*mask is for 3",
        lambda: af.simulate(af.SA(1.0, mask=np.eye(3, dtype=bool)), X0, [0, 1]),
    )


def test_backends():
    bad("did you mean 'blocked'", lambda: af.SA(1.0, backend="block"))
    bad("backend", lambda: af.SA(1.0, backend=3))


def test_what_is_no_system_or_method():
    bad("system must be a System", lambda: inputs.check_system(af.SA))
    bad("method must be", lambda: inputs.check_method("rk4", SA, X0, [0.0, 1.0]))


def test_maps_have_no_velocity():
    system = af.PostNorm(1.0, D=np.ones(3))
    bad("no velocity", lambda: system.velocity(0.0, X0))
    bad(r"Layers\(dt\)", lambda: af.simulate(system, X0, [0, 1], method=af.Adaptive()))


def test_diagonals():
    bad(
        "D must be finite and positive", lambda: af.EllipsoidAttention(1.0, D=np.array([1.0, -1.0]))
    )
    bad("D", lambda: af.simulate(af.PostNorm(1.0, D=np.ones(2)), X0, [0, 1]))
    bad("origin", lambda: af.simulate(af.PreNorm(1.0, D=np.ones(3)), X0.at[0].set(0), [0, 1]))


def test_a_continued_run_starts_where_the_earlier_one_ended():
    traj = af.simulate(SA, X0, [0.0, 1.0])
    bad(r"ts\[0\] = 2.*ends at 1", lambda: af.simulate(SA, traj, [2.0, 3.0]))
    bad("masses", lambda: af.simulate(SA, traj, [1.0, 3.0], masses=np.ones(4)))
    bad(r"ts\[0\] = 1.*ends at 1", lambda: af.simulate(SA, traj, [1 + 1e-7, 3.0]))


@pytest.mark.parametrize("masses", [[1j, 1j, 1j, 1j], ["a", "b", "c", "d"]])
def test_masses_are_real_numbers(masses):
    bad("masses must be", lambda: af.simulate(SA, X0, [0.0, 1.0], masses=masses))


@pytest.mark.parametrize("method", [None, af.Fixed(0.01, "euler"), af.Layers(0.01)])
def test_noise_has_a_number_for_every_step(method):
    """Numbers of 32 bits ran out, and all steps got the same draw: a variance of 99 for 1."""
    noisy = af.Noisy(SA, 0.1)
    bad("below 2³¹", lambda: af.simulate(noisy, X0, [3e7, 3e7 + 1], method=method, key=0))


def test_a_size_that_does_not_fit_is_refused_with_the_number(monkeypatch):
    monkeypatch.setattr(checks, "available_memory", lambda: 2**30)
    bad(
        r"would need about .* GiB.*1\.0 GiB are available.*save=fn",
        lambda: af.simulate(SA, X0, np.linspace(0, 1, 20_000_000)),
    )
    x0 = jnp.tile(X0, (5000, 1))
    dense = af.SA(2.0, backend="dense")
    bad("GiB", lambda: af.simulate(dense, x0, [0.0, 1.0], method=af.Layers(1.0)))
    bad("GiB", lambda: af.initial.sphere(n=10**9, d=10, key=0))


def test_nothing_is_refused_that_fits():
    checks.require_memory(2**20, "a little", "nothing")


@pytest.mark.parametrize("method", [af.Fixed, af.Layers])
@pytest.mark.parametrize("dt", [1e-12, 5e-324])
def test_steps_that_never_end(method, dt):
    bad("dt = .* is too small", lambda: af.simulate(SA, X0, [0.0, 1e3], method=method(dt)))


@pytest.mark.parametrize("dt", [1e10, 1e300])
def test_a_step_beyond_the_end_is_one_step(dt):
    long = af.simulate(SA, X0, [0.0, 1.0], method=af.Fixed(dt))
    whole = af.simulate(SA, X0, [0.0, 1.0], method=af.Fixed(1.0))
    assert np.array_equal(long.final, whole.final)


def test_a_velocity_that_overflows():
    """Before any step, with the largest exponent instead of advice about max_steps."""
    near, apart = (np.array([[1.0, 0.0], [np.cos(a), np.sin(a)]]) for a in (0.5, 1.0))
    bad(
        r"x0 cannot be followed: it overflows, in USA\(beta=1000\) \(float64 .* s = 710\)\. Take",
        lambda: af.simulate(af.USA(1000.0), near, [0, 1]),
    )
    one = np.stack([X0, X0]).astype(np.float32)
    bad(
        r"run 0 of the batch.*\(float32 holds e\^s up to s = 89\)",
        lambda: af.simulate(af.USA(200.0), one, [0, 1]),
    )
    bad(r"it is \d\.\de\+234", lambda: af.simulate(af.USA(1000.0), apart, [0, 1]))


@pytest.mark.parametrize("method", [af.Fixed(1e-3), af.Layers(1e-3)])
def test_steps_that_float32_does_not_resolve(method):
    """999,991 steps for 1,000,000: diffrax made one of the last ten."""
    bad(
        r"dt = 0\.001 is too small for times in float32",
        lambda: af.simulate(SA, X0.astype(np.float32), [0.0, 1000.0], method=method),
    )


def test_steps_in_float32_are_counted_right():
    x = X0.astype(np.float32)
    assert int(af.simulate(SA, x, [0.0, 333.3], method=af.Layers(0.1)).steps) == 3333
    assert int(af.simulate(SA, x, [0.0, 70.7], method=af.Fixed(0.01, "euler")).steps) == 7070


def test_a_run_is_described_without_a_program(programs):
    x0, method = np.array(X0), af.Adaptive()
    jax.clear_caches()
    af.SA(4, Q=2 * np.eye(3), K=np.eye(3, dtype=int), V=-1.0)
    af.EllipsoidAttention(1.0, D=np.array([1.0, 2.0, 3.0]))
    af.RescaledAttention(V=np.diag([1.0, 2.0, -1.0]))
    inputs.check_run(SA, x0, [0, 1], method, np.ones(4))
    inputs.check_run(SA, x0.astype(np.float32), np.arange(3), method, [1, 2, 3, 4])
    assert programs == []
